package throttle_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/throttle"
)

func TestLatencyAndWhatNeverEndsAreSignals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := quiet(throttle.NewMemory(nil))
		cfg.Latency = 100 * time.Millisecond
		one := running(t, cfg)
		serve := func(seconds int, took time.Duration) {
			for i := range seconds * 100 {
				tenant := fmt.Sprint("t", i%10)
				one.Offer(tenant, 1, 0.1, 1)
				start := one.Begin(tenant)
				if took < time.Minute {
					time.AfterFunc(took, func() { one.End(start, false) })
				}
				time.Sleep(10 * time.Millisecond) //nolint:forbidigo // The clock of the bubble is not the real one: this waits for nothing.
			}
		}
		serve(10, 50*time.Millisecond)
		require.Zero(t, one.Status().Shed)
		require.InDelta(t, math.Sqrt(math.Sqrt(0.5)), one.Status().Fleet.Pressure, 0.03)
		serve(4, 400*time.Millisecond)
		require.InDelta(t, math.Sqrt(math.Sqrt(4)), one.Status().Fleet.Pressure, 0.15)
		require.Greater(t, one.Status().Shed, 0.1, "by when its first beat was")
		serve(120, 50*time.Millisecond)
		require.Zero(t, one.Status().Shed)
		// A dependency that hangs has no latencies, and ends nothing.
		serve(10, time.Hour)
		require.Greater(t, one.Status().Shed, 0.8)
	})
}

func TestErrorsAreASignal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := quiet(throttle.NewMemory(nil))
		cfg.Errors = 0.02
		one := running(t, cfg)
		for i := range 500 {
			tenant := fmt.Sprint("t", i/5%50)
			one.Offer(tenant, 1, 0.1, 1)
			one.End(one.Begin(tenant), i%5 == 0)
			time.Sleep(10 * time.Millisecond) //nolint:forbidigo // The clock of the bubble is not the real one: this waits for nothing.
		}
		require.InDelta(t, math.Sqrt(math.Sqrt(10)), one.Status().Fleet.Pressure, 0.1)
		require.Positive(t, one.Status().Shed)
	})
}

func TestSourcesAreReadAndAPanicInOneIsNoValue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := quiet(throttle.NewMemory(nil))
		cfg.Sources = []throttle.Source{
			{Name: "pool", Target: 0.9, Read: func() (float64, bool) { return 1.8, true }},
			{Name: "bad", Target: 1, Read: func() (float64, bool) { panic("bad") }},
			{Name: "none", Target: 1, Read: func() (float64, bool) { return 100, false }},
		}
		one := running(t, cfg)
		drive(one, 3, load{"a", 1, 0.1, 100})
		require.InDelta(t, 2, one.Status().Fleet.Pressure, 1e-9)
	})
}

func TestASourceThatPanicsInEachBeatIsLoggedAtOnceAndThenOnceAMinuteWithTheNumber(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		cfg := quiet(throttle.NewMemory(nil))
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		beats, early := 0, ""
		cfg.Sources = []throttle.Source{
			{Name: "bad", Target: 1, Read: func() (float64, bool) {
				if beats++; beats == 3 {
					early = log.String()
				}
				panic("broken")
			}},
			{Name: "worse", Target: 1, Read: func() (float64, bool) { panic("broken too") }},
		}
		one := running(t, cfg)
		time.Sleep(10*time.Minute + 3*time.Second) //nolint:forbidigo // The clock of the bubble is not the real one: this waits for nothing.
		require.NoError(t, one.Shutdown(t.Context()))
		require.Greater(t, beats, 600)
		require.Equal(t, 1, strings.Count(early, "signal=bad"), "the first at once")
		require.Contains(t, early, `level=ERROR msg="ratelimit: a source of the throttle panicked, and says nothing" signal=bad `+
			`error="ratelimit: Config.Sources panicked: broken" panics=1`+"\n")
		require.Equal(t, 11, strings.Count(log.String(), "signal=bad"))
		require.Equal(t, 11, strings.Count(log.String(), "signal=worse"), "each source has lines of its own")
		require.Equal(t, 20, strings.Count(log.String(), " panics=60\n"))
		require.Equal(t, 22, strings.Count(log.String(), "\n"))
		require.Zero(t, one.Status().Fleet.Fresh, "neither is a value")
	})
}

func TestALatencyOfTheServersOwnIsASignal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := running(t, quiet(throttle.NewMemory(nil)))
		latency := one.Latency("search", 100*time.Millisecond)
		for range 200 {
			latency.Observe(1600 * time.Millisecond)
		}
		time.Sleep(time.Second) //nolint:forbidigo // The clock of the bubble is not the real one: this waits for nothing.
		require.InEpsilon(t, 2, one.Status().Fleet.Pressure, 0.04)
		for range 20 {
			one.Latency("more", time.Second)
		}
	})
}

func TestAThrottleNamesAllMistakesInItsConfiguration(t *testing.T) {
	t.Parallel()
	_, err := throttle.New(throttle.Config{
		Instance: string(make([]byte, 200)), Processor: 1.5, Memory: -2, Latency: -1, Errors: math.NaN(),
		Sources: []throttle.Source{{}, {Name: "processor", Target: 1, Read: func() (float64, bool) { return 0, false }}, {Name: "a"}, {Name: "b", Target: 1}},
	})
	for _, field := range []string{
		"Centre is nil", "Instance has 200", "Processor is 1.5", "Memory is -2", "Latency is", "Errors is NaN",
		"Sources[0].Name", `Sources[1].Name is "processor"`, "Sources[2].Target", "Sources[3].Read",
	} {
		require.ErrorContains(t, err, field)
	}
	_, err = throttle.New(throttle.Config{Centre: (*throttle.Memory)(nil)})
	require.ErrorContains(t, err, "Centre is nil")
}

func TestSignalsAreBoundedInNumberAndOnlyNumbersCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := running(t, quiet(throttle.NewMemory(nil)))
		for range 3 {
			for _, wrong := range []float64{math.NaN(), math.Inf(1), -1} {
				one.Signal("wrong", wrong, 1)
				one.Steep("wrong", 1, wrong)
			}
			one.Signal("", 1, 1)
			one.Signal(string(make([]byte, 65)), 9, 1)
			time.Sleep(time.Second) //nolint:forbidigo // The clock of the bubble is not the real one: this waits for nothing.
		}
		require.Zero(t, one.Status().Fleet.Fresh, "there is no signal yet")
		for i := range 1000 {
			one.Signal(fmt.Sprint("s", i), 1e300, 1e-300)
		}
		one.Signal("late", 1, 1)
		time.Sleep(time.Second) //nolint:forbidigo // The clock of the bubble is not the real one: this waits for nothing.
		require.InDelta(t, 16, one.Status().Fleet.Pressure, 1e-9)
	})
}

func TestASignalWithoutATargetIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	cfg := quiet(throttle.NewMemory(nil))
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	one, err := throttle.New(cfg)
	require.NoError(t, err)
	one.Signal("jobs", math.NaN(), 100)
	require.Empty(t, log.String(), "a value that is none is no mistake")
	for range 3 {
		one.Signal("jobs", 5, 0)
		one.Steep("rows", 5, math.NaN())
		one.Signal(strings.Repeat("x", 65), 5, 1)
	}
	require.Equal(t, 1, strings.Count(log.String(), "level=WARN"))
	require.Contains(t, log.String(), "name=jobs target=0")
}
