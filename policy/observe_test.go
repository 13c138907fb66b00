package policy_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

// collect returns what metrics say, by their names and attributes.
func collect(t *testing.T, reader sdk.Reader) map[string]float64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &all))
	values := map[string]float64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					values[m.Name+" "+p.Attributes.Encoded(attributes)] = float64(p.Value)
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					values[m.Name+" "+p.Attributes.Encoded(attributes)] = p.Value
				}
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					values[m.Name+" "+p.Attributes.Encoded(attributes)] = float64(p.Value)
				}
			}
		}
	}
	return values
}

func TestMetricsSayWhatAnInstanceServesAndSinceWhen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reader := sdk.NewManualReader()
		feed := &memory{newest: revision(3)}
		f, _ := follow(t, feed, policy.Config{Observe: policy.ObserveConfig{
			Name: "main", MeterProvider: sdk.NewMeterProvider(sdk.WithReader(reader)),
		}})
		const named = "ratelimit.policy.name=main"
		got := collect(t, reader)
		for name, want := range map[string]float64{
			"ratelimit.policy.revision " + named:                                     3,
			"ratelimit.policy.rejected " + named:                                     0,
			"ratelimit.policy.state " + named + ",ratelimit.policy.state=current":    1,
			"ratelimit.policy.state " + named + ",ratelimit.policy.state=stale":      0,
			"ratelimit.policy.state " + named + ",ratelimit.policy.state=never":      0,
			"ratelimit.policy.changes " + named + ",ratelimit.policy.result=applied": 1,
		} {
			value, found := got[name]
			require.True(t, found, "%s in %v", name, got)
			require.Equal(t, want, value, name)
		}
		feed.set(other(4, []byte("[")), nil)
		pass(2 * time.Second)
		got = collect(t, reader)
		require.Equal(t, 4., got["ratelimit.policy.rejected "+named])
		require.Equal(t, 3., got["ratelimit.policy.revision "+named])
		require.Equal(t, 1., got["ratelimit.policy.changes "+named+",ratelimit.policy.result=document"])
		feed.set(nil, errAway)
		pass(time.Minute)
		got = collect(t, reader)
		require.Equal(t, 1., got["ratelimit.policy.state "+named+",ratelimit.policy.state=stale"])
		require.GreaterOrEqual(t, got["ratelimit.policy.age "+named], 59.)
		require.NoError(t, f.Close())
		require.NotContains(t, collect(t, reader), "ratelimit.policy.revision "+named, "who has ended says nothing")
	})
}

func TestAnObserverMayAskForTheStatusAndMayPanic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		feed := &memory{newest: revision(1)}
		var f *policy.Follower
		var seen []uint64
		cfg := policy.Config{Observe: policy.ObserveConfig{Observer: event.Func(func(context.Context, event.Event) {
			if f != nil {
				seen = append(seen, f.Status().Number, f.Snapshot().Generation())
			}
			panic("an observer")
		})}}
		f, _ = follow(t, feed, cfg)
		feed.set(revision(2), nil)
		pass(2 * time.Second)
		require.Equal(t, []uint64{2, 2}, seen, "what it is told of holds already")
	})
}
