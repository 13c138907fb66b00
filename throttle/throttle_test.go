package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/throttle"
)

// quiet is a throttle without signals of its own.
func quiet(centre throttle.Centre) throttle.Config {
	return throttle.Config{Centre: centre, Processor: throttle.None, Memory: throttle.None, Logger: slog.New(slog.DiscardHandler)}
}

// running starts a throttle, which ends with the test.
func running(t *testing.T, cfg throttle.Config) *throttle.Throttle {
	t.Helper()
	one, err := throttle.New(cfg)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- one.Run(context.WithoutCancel(t.Context())) }()
	t.Cleanup(func() {
		require.NoError(t, one.Shutdown(context.Background()))
		require.NoError(t, <-ended)
	})
	return one
}

// load is what a tenant asks for in a second, in operations of a point.
type load struct {
	tenant string
	order  int
	floor  float64
	rate   int
}

// drive offers loads for some seconds, and returns which share of each has run in the last one.
func drive(one *throttle.Throttle, seconds int, loads ...load) []float64 {
	const slices = 50
	ran := make([]int, len(loads))
	for second := range seconds {
		for range slices {
			for i, l := range loads {
				for range l.rate / slices {
					if !one.Offer(l.tenant, l.order, l.floor, 1).Shed && second == seconds-1 {
						ran[i]++
					}
				}
			}
			time.Sleep(time.Second / slices) //nolint:forbidigo // in a synctest bubble
		}
	}
	shares := make([]float64, len(loads))
	for i, l := range loads {
		shares[i] = float64(ran[i]) / float64(l.rate)
	}
	return shares
}

// pressed feeds a signal until the test ends it.
func pressed(t *testing.T, one *throttle.Throttle, pressure *atomic.Uint64) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var feeding sync.WaitGroup
	feeding.Go(func() {
		for ctx.Err() == nil {
			one.Signal("queue", math.Float64frombits(pressure.Load()), 1)
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // in a synctest bubble
		}
	})
	stop = func() {
		cancel()
		feeding.Wait()
	}
	t.Cleanup(stop)
	return stop
}

func over(pressure float64) *atomic.Uint64 {
	var p atomic.Uint64
	p.Store(math.Float64bits(pressure))
	return &p
}

func TestTheLowestTierIsShedToItsFloorBeforeTheNextOneIsTouched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := running(t, quiet(throttle.NewMemory(nil)))
		pressure := over(1.5)
		stop := pressed(t, one, pressure)
		defer stop()
		loads := []load{{"small", 1, 0.1, 500}, {"middle", 2, 0.25, 300}, {"large", 3, 0.5, 200}}
		touched := [3]bool{}
		for range 60 {
			ran := drive(one, 1, loads...)
			for i := range ran {
				require.GreaterOrEqual(t, ran[i], loads[i].floor-0.02, "tier %d is below its floor", i+1)
				touched[i] = touched[i] || ran[i] < 0.99
				if depth := one.Status().Depth; i > 0 && depth[i] > 0 {
					require.InDelta(t, 1, depth[i-1], 1e-9, "tier %d is shed while tier %d is not at its floor", i+1, i)
				}
			}
		}
		require.Equal(t, [3]bool{true, true, true}, touched)
		ran := drive(one, 1, loads...)
		for i := range ran {
			require.InDelta(t, loads[i].floor, ran[i], 0.02)
		}
		// Slowly it comes back.
		pressure.Store(math.Float64bits(0))
		before := ran
		for range 60 {
			ran = drive(one, 1, loads...)
			for i := range ran {
				require.GreaterOrEqual(t, ran[i], before[i]-0.05)
			}
			before = ran
		}
		require.Equal(t, []float64{1, 1, 1}, ran)
	})
}

func TestWithinATierThoseAboveTheirFairShareAreShedFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := running(t, quiet(throttle.NewMemory(nil)))
		loads := []load{{"greedy", 1, 0.1, 800}}
		for _, tenant := range one.Apart(10, func(i int) string { return fmt.Sprint("modest", i) }, "greedy") {
			loads = append(loads, load{tenant, 1, 0.1, 50})
		}
		drive(one, 15, loads...)
		pressure := over(4)
		stop := pressed(t, one, pressure)
		ran := drive(one, 2, loads...)
		status := one.Status()
		require.InDelta(t, 0.3, status.Shed, 0.01)
		// 390 of 1300 points are shed, all of them the greedy tenant's.
		require.InDelta(t, 1-0.3*1300/800, ran[0], 0.04)
		for _, share := range ran[1:] {
			require.InDelta(t, 1, share, 0.021)
		}
		drive(one, 30, loads...)
		ran = drive(one, 1, loads...)
		stop()
		// At the floor of a tenth there is less for each than anybody asks for: everybody has the same.
		fair := 0.1 * 1300 / 11
		require.InDelta(t, fair/800, ran[0], 0.02)
		for _, share := range ran[1:] {
			require.InDelta(t, fair/50, share, 0.1)
		}
	})
}

func TestWithoutSignalsTheShareFallsToNothingWithinFiveSecondsAfterThree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := running(t, quiet(throttle.NewMemory(nil)))
		stop := pressed(t, one, over(4))
		drive(one, 20, load{"a", 1, 0.1, 100})
		shed := one.Status().Shed
		require.InDelta(t, 0.9, shed, 1e-3)
		stop()
		require.Less(t, drive(one, 2, load{"a", 1, 0.1, 100})[0], 0.15, "it holds for three seconds at least")
		before := shed
		for range 11 {
			time.Sleep(time.Second) //nolint:forbidigo // in a synctest bubble
			now := one.Status().Shed
			require.LessOrEqual(t, now, before+1e-9)
			require.LessOrEqual(t, before-now, 0.9*0.21, "a fifth a second at most")
			before = now
		}
		require.Zero(t, before)
		require.Equal(t, []float64{1}, drive(one, 1, load{"a", 1, 0.1, 100}))
	})
}

// broken is a centre that can be away.
type broken struct {
	throttle.Centre

	away atomic.Bool
}

var errAway = errors.New("away")

func (b *broken) Exchange(ctx context.Context, r throttle.Report) (throttle.Share, error) {
	if b.away.Load() {
		return throttle.Share{}, errAway
	}
	return b.Centre.Exchange(ctx, r)
}

func TestACentreThatIsAwayLetsTheShareFallAndReturn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		centre := &broken{Centre: throttle.NewMemory(nil)}
		one := running(t, quiet(centre))
		stop := pressed(t, one, over(4))
		defer stop()
		drive(one, 20, load{"a", 1, 0.1, 100})
		centre.away.Store(true)
		require.Less(t, drive(one, 2, load{"a", 1, 0.1, 100})[0], 0.15)
		require.Equal(t, []float64{1}, drive(one, 9, load{"a", 1, 0.1, 100}), "no instance sheds by itself")
		require.GreaterOrEqual(t, one.Status().Age, 8*time.Second)
		centre.away.Store(false)
		require.Less(t, drive(one, 4, load{"a", 1, 0.1, 100})[0], 0.75)
	})
}

func TestAThrottleThatRunsNoMoreLetsItsShareFall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one, err := throttle.New(quiet(throttle.NewMemory(nil)))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- one.Run(ctx) }()
		stop := pressed(t, one, over(4))
		defer stop()
		drive(one, 20, load{"a", 1, 0.1, 100})
		cancel()
		require.NoError(t, <-ended)
		require.Less(t, drive(one, 1, load{"a", 1, 0.1, 100})[0], 0.15)
		require.Equal(t, []float64{1}, drive(one, 9, load{"a", 1, 0.1, 100}))
		require.ErrorIs(t, one.Run(t.Context()), throttle.ErrRuns)
		require.NoError(t, one.Shutdown(t.Context()))
		require.NoError(t, one.Shutdown(t.Context()))
	})
}

func TestAThrottleThatIsShutDownBeforeItRunsDoesNotRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		centre := &leaving{Centre: throttle.NewMemory(nil)}
		one, err := throttle.New(quiet(centre))
		require.NoError(t, err)
		require.NoError(t, one.Shutdown(t.Context()))
		require.NoError(t, one.Run(t.Context()), "it returns at once")
		require.NoError(t, one.Run(t.Context()))
		require.Equal(t, []string{"left"}, centre.calls)
	})
}

// leaving is a centre that notes what it is told. One goroutine uses it.
type leaving struct {
	throttle.Centre

	calls []string
}

func (l *leaving) Exchange(ctx context.Context, r throttle.Report) (throttle.Share, error) {
	l.calls = append(l.calls, "told")
	return l.Centre.Exchange(ctx, r)
}

func (l *leaving) Leave(ctx context.Context, instance string) error {
	l.calls = append(l.calls, "left")
	return l.Centre.Leave(ctx, instance)
}

func TestATierWithAFloorOfOneIsNeverShed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := running(t, quiet(throttle.NewMemory(nil)))
		stop := pressed(t, one, over(16))
		defer stop()
		internal := one.Apart(1, func(i int) string { return fmt.Sprint("internal", i) }, "free")[0]
		for range 30 {
			ran := drive(one, 1, load{"free", 1, 0, 100}, load{internal, 1, 1, 100})
			require.InDelta(t, 1, ran[1], 1e-9)
		}
		require.Zero(t, drive(one, 1, load{"free", 1, 0, 100}, load{internal, 1, 1, 100})[0])
	})
}

func TestTenantsWhoCameOnlyNowAreShedLikeOthersWhereNothingElseIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := running(t, quiet(throttle.NewMemory(nil)))
		stop := pressed(t, one, over(4))
		defer stop()
		ran, asked := 0, 0
		for second := range 40 {
			for i := range 400 {
				// Each tenant asks once and never again.
				if shed := one.Offer(fmt.Sprint("once", second, "-", i), 1, 0.2, 1).Shed; second >= 30 {
					asked++
					if !shed {
						ran++
					}
				}
				time.Sleep(time.Second / 400) //nolint:forbidigo // in a synctest bubble
			}
		}
		require.InDelta(t, 0.2, float64(ran)/float64(asked), 0.05)
	})
}

func TestAnOfferAndItsEndTakeNoMemory(t *testing.T) {
	one, err := throttle.New(quiet(throttle.NewMemory(nil)))
	require.NoError(t, err)
	one.Offer("a", 1, 0.1, 5)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if !one.Offer("a", 1, 0.1, 5).Shed && one.Weigh(1, 0.1, 5) == 0 {
			one.End(one.Begin("a"), false)
		}
	}))
}

func BenchmarkOffer(b *testing.B) {
	one, err := throttle.New(quiet(throttle.NewMemory(nil)))
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if !one.Offer("tenant-17", 1, 0.1, 5).Shed {
			one.End(one.Begin("a"), false)
		}
	}
}
