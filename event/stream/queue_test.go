package stream_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
)

func TestWhatIsObservedReachesTheBrokerInOrderAndInBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &broker{}
		q := start(t, stream.Config{Sink: b, BatchEvents: 100})
		var want []string
		for i := range 250 {
			e := refusal("acme", i)
			require.True(t, q.Keep(t.Context(), e))
			want = append(want, e.RefusalID)
		}
		require.NoError(t, q.Close(t.Context()))
		require.Equal(t, want, b.ids())
		require.LessOrEqual(t, len(b.calls()), 10)
		for _, n := range b.calls() {
			require.LessOrEqual(t, n, 100)
		}
		require.Zero(t, q.Dropped())
		require.EqualValues(t, 250, q.Sent())
	})
}

// TestNoRequestWaitsForABrokerThatIsFrozen needs no clock: in a bubble, time passes only if somebody waits for it.
func TestNoRequestWaitsForABrokerThatIsFrozen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &broker{judge: frozen}
		q := start(t, stream.Config{Sink: b, MaxEvents: 1000, Timeout: 5 * time.Minute})
		q.Observe(t.Context(), refusal("acme", 0))
		synctest.Wait()
		require.Len(t, b.calls(), 1, "the broker has a batch, and does not answer")
		before := time.Now()
		var group sync.WaitGroup
		for g := range 8 {
			group.Go(func() {
				for i := range 10_000 {
					q.Observe(t.Context(), refusal(fmt.Sprint("tenant-", g, "-", i%50), i))
				}
			})
		}
		group.Wait()
		require.Zero(t, time.Since(before))
		b.recover()
		require.NoError(t, q.Close(t.Context()))
		require.Equal(t, 80_001, int(q.Dropped())+len(b.all()), "what was not dropped has arrived")
		require.LessOrEqual(t, len(b.all()), 1000)
	})
}

func TestToObserveAllocatesNothing(t *testing.T) {
	b := &broker{judge: frozen}
	q := start(t, stream.Config{Sink: b, MaxEvents: 100})
	var e event.Event = refusal("acme", 1)
	require.Zero(t, testing.AllocsPerRun(1000, func() { q.Observe(context.Background(), e) }))
	require.Positive(t, q.Dropped(), "with room and without")
	require.Error(t, q.Close(expired(t)))
}

func TestOneTenantHasHalfOfTheRoomAndOthersAlwaysSome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &broker{judge: frozen}
		q := start(t, stream.Config{Sink: b, MaxEvents: 1000, Timeout: time.Minute})
		flood := func(tenant string) (kept int) {
			for i := range 10_000 {
				if q.Keep(t.Context(), refusal(tenant, i)) {
					kept++
				}
			}
			return kept
		}
		// Who shares a hash shares the room. What is about no tenant has one as well.
		shared := map[uint8]bool{q.LaneOf(""): true}
		apart := func(name string) string {
			for i := 0; ; i++ {
				if tenant := fmt.Sprint(name, "-", i); !shared[q.LaneOf(tenant)] {
					shared[q.LaneOf(tenant)] = true
					return tenant
				}
			}
		}
		require.Equal(t, 500, flood(apart("loud")))
		require.Equal(t, 250, flood(apart("also loud")), "of what is left it is the only one")
		for range 20 {
			quiet := apart("quiet")
			require.True(t, q.Keep(t.Context(), refusal(quiet, 0)), quiet)
		}
		require.True(t, q.Keep(t.Context(), event.PolicyApplied{Revision: 7}))
		require.Error(t, q.Close(expired(t)))
	})
}

func TestWhatWaitsIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &broker{judge: frozen}
		q := start(t, stream.Config{Sink: b, MaxEvents: 100_000, MaxBytes: 64 << 10, Timeout: time.Minute})
		large := event.PolicyRefused{Error: strings.Repeat("x", 8<<10)}
		kept := 0
		for range 100 {
			if q.Keep(t.Context(), large) {
				kept++
			}
		}
		require.Equal(t, 4, kept, "half of 64 KiB is 32, and the fourth was due before that")
		require.False(t, q.Keep(t.Context(), event.PolicyRefused{Error: strings.Repeat("x", 1<<20)}))
		require.Error(t, q.Close(expired(t)))
		require.EqualValues(t, 101, q.Dropped(), "all, in the end")
	})
}

func TestABrokerThatWasAwayGetsEverythingInOrderOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &broker{judge: away}
		q := start(t, stream.Config{Sink: b, BatchEvents: 10})
		var want []string
		for i := range 100 {
			q.Observe(t.Context(), refusal("acme", i))
			want = append(want, fmt.Sprint("acme-", i))
		}
		pass(time.Minute) // in the bubble: many batches fail
		require.Empty(t, b.all())
		require.Less(t, len(b.calls()), 20, "they come later each time")
		b.recover()
		require.NoError(t, q.Close(t.Context()))
		require.Equal(t, want, b.ids())
	})
}

func TestWhatIsNotAcknowledgedIsSentAgainBeforeWhatCameLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries := map[string]int{}
		b := &broker{}
		b.judge = func(_ context.Context, e *stream.Envelope) error {
			// Each third event of a tenant fails twice, and some are stored and their acknowledgement is lost.
			if tries[e.ID]++; tries[e.ID] < 3 && e.Sequence%3 == 0 {
				if e.Sequence%2 == 0 {
					b.mu.Lock()
					b.stored = append(b.stored, *e)
					b.mu.Unlock()
				}
				return errAway
			}
			return nil
		}
		q := start(t, stream.Config{Sink: b, BatchEvents: 7})
		for i := range 300 {
			q.Observe(t.Context(), refusal(fmt.Sprint("tenant-", i%3), i))
		}
		require.NoError(t, q.Close(t.Context()))
		seen, last := map[string]bool{}, map[string]int64{}
		for _, e := range b.all() {
			if seen[e.ID] {
				continue
			}
			seen[e.ID] = true
			require.Greater(t, int64(e.Sequence), last[e.Subject])
			last[e.Subject] = int64(e.Sequence)
		}
		require.Len(t, seen, 300)
		require.Greater(t, len(b.all()), 300, "there were duplicates")
	})
}

func TestAnEventThatIsTooOldIsDroppedAndMakesRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &broker{}
		b.judge = func(_ context.Context, e *stream.Envelope) error {
			if e.Subject == "stuck" {
				return errAway
			}
			return nil
		}
		q := start(t, stream.Config{Sink: b, BatchEvents: 10, MaxAge: time.Minute})
		for i := range 10 {
			q.Observe(t.Context(), refusal("stuck", i))
		}
		for i := range 5 {
			q.Observe(t.Context(), refusal("acme", i))
		}
		pass(59 * time.Second)
		require.Empty(t, b.all(), "a batch is full of what is stuck")
		pass(22 * time.Second) // two more batches
		require.Len(t, b.all(), 5)
		require.EqualValues(t, 10, q.Dropped())
		require.NoError(t, q.Close(t.Context()))
	})
}

func TestWhatTheBrokerNeverTakesIsDroppedAndHoldsUpNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &broker{}
		b.judge = func(_ context.Context, e *stream.Envelope) error {
			switch e.Sequence {
			case 3:
				return fmt.Errorf("1 MB: %w", stream.ErrTooLarge)
			case 5:
				return fmt.Errorf("no: %w", stream.ErrRefused)
			}
			return nil
		}
		reader := metric.NewManualReader()
		q := start(t, stream.Config{Sink: b, MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))})
		for i := range 10 {
			q.Observe(t.Context(), refusal("acme", i))
		}
		require.NoError(t, q.Close(t.Context()))
		require.Len(t, b.all(), 8)
		require.Zero(t, time.Since(began), "nothing was tried again")
		q.Observe(t.Context(), refusal("acme", 10))
		require.Equal(t, map[string]float64{
			"ratelimit.stream.sent ratelimit.denials": 8, "ratelimit.stream.sent ratelimit.thresholds": 0, "ratelimit.stream.sent ratelimit.policy.updates": 0,
			"ratelimit.stream.dropped full": 0, "ratelimit.stream.dropped too_large": 1, "ratelimit.stream.dropped refused": 1,
			"ratelimit.stream.dropped expired": 0, "ratelimit.stream.dropped closed": 1,
			"ratelimit.stream.waiting ": 0, "ratelimit.stream.lag ": 0,
		}, measured(t, reader))
	})
}

// measured are the sums and gauges of a reader, by name and attribute.
func measured(t *testing.T, reader metric.Reader) map[string]float64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.Background(), &all))
	got := map[string]float64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					got[m.Name+" "+p.Attributes.ToSlice()[0].Value.AsString()] = float64(p.Value)
				}
			case metricdata.Gauge[int64]:
				got[m.Name+" "] = float64(data.DataPoints[0].Value)
			case metricdata.Gauge[float64]:
				got[m.Name+" "] = data.DataPoints[0].Value
			}
		}
	}
	return got
}

func TestTheLagIsTheAgeOfTheOldestEventThatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &broker{judge: away}
		reader := metric.NewManualReader()
		q := start(t, stream.Config{Sink: b, MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))})
		q.Observe(t.Context(), refusal("acme", 1))
		pass(17 * time.Second)
		q.Observe(t.Context(), refusal("acme", 2))
		pass(13 * time.Second)
		got := measured(t, reader)
		require.Equal(t, 30.0, got["ratelimit.stream.lag "])
		require.Equal(t, 2.0, got["ratelimit.stream.waiting "])
		b.recover()
		require.NoError(t, q.Close(t.Context()))
		require.Zero(t, measured(t, reader)["ratelimit.stream.lag "])
	})
}

func TestTheSequenceOfATopicHasAGapForEachEventThatWasDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &broker{judge: frozen}
		q := start(t, stream.Config{Sink: b, MaxEvents: 20, Timeout: time.Second})
		for i := range 100 {
			q.Observe(t.Context(), refusal("acme", i))
		}
		q.Observe(t.Context(), event.ThresholdCrossed{})
		b.recover()
		pass(2 * time.Second)
		q.Observe(t.Context(), refusal("acme", 100))
		require.NoError(t, q.Close(t.Context()))
		last, gaps := map[string]uint64{}, uint64(0)
		for _, e := range b.all() {
			gaps += e.Sequence - last[e.Topic] - 1
			last[e.Topic] = e.Sequence
		}
		require.EqualValues(t, 101, last["ratelimit.denials"])
		require.EqualValues(t, 1, last["ratelimit.thresholds"])
		require.Positive(t, gaps)
		require.Equal(t, q.Dropped(), gaps)
	})
}

func TestWhatLeavesCanBeEdited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &broker{}
		var asked atomic.Int32
		q := start(t, stream.Config{Sink: b, Edit: func(e event.Event) event.Event {
			asked.Add(1)
			d, ok := e.(event.Decided)
			if !ok {
				return nil
			}
			switch d.Cost {
			case 1:
				panic("broken")
			case 2:
				return event.LimitReached{}
			case 3:
				return event.StoreAway{}
			case 4:
				return nil
			}
			d.User = ""
			return d
		}})
		for i := range 6 {
			d := refusal("acme", i)
			d.User = "mira"
			q.Observe(t.Context(), d)
		}
		q.Observe(t.Context(), event.LimitReached{})
		require.NoError(t, q.Close(t.Context()))
		require.Equal(t, []string{"acme-0", "acme-5"}, b.ids())
		require.NotContains(t, string(b.all()[0].Data), "mira")
		require.EqualValues(t, 7, asked.Load())
		require.EqualValues(t, 3, q.Dropped(), "what stays was not dropped")
	})
}

func TestMistakesOfTheConfigurationAreReportedAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := stream.Start(stream.Config{
		Namespace: "a b", Instance: "a\nb", Topics: stream.Topics{Denials: "a..b", Thresholds: "a/b", PolicyUpdates: "é"},
		MaxEvents: -1, MaxBytes: 1, MaxAge: 1, BatchEvents: -1, Timeout: 1,
	})
	for _, part := range []string{
		"Config.Sink is nil", "Config.Namespace", "Config.Instance", "Config.Topics.Denials", "Config.Topics.Thresholds", "Config.Topics.PolicyUpdates",
		"Config.MaxEvents is -1", "Config.MaxBytes is 1", "Config.MaxAge is 1ns", "Config.BatchEvents is -1", "Config.Timeout is 1ns",
	} {
		require.ErrorContains(t, err, part)
	}
}
