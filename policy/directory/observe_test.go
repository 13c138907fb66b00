package directory_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/gqlgen-ratelimit/ratelimit/policy/directory"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// collect returns the values of the metrics by their name and their last attribute.
func collect(t *testing.T, reader *sdkmetric.ManualReader) map[string]float64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &all))
	values := make(map[string]float64)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					result, _ := p.Attributes.Value("ratelimit.directory.result")
					values[m.Name+" "+result.AsString()] += float64(p.Value)
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					state, _ := p.Attributes.Value("ratelimit.directory.state")
					values[m.Name+" "+state.AsString()] = float64(p.Value)
				}
			case metricdata.Gauge[float64]:
				values[m.Name] = data.DataPoints[0].Value
			default:
				t.Fatalf("%s is a %T", m.Name, data)
			}
		}
	}
	return values
}

func TestEachQuestionAndEachRequestThatDidNotWaitForItIsCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reader := sdkmetric.NewManualReader()
		from := newSource()
		from.write(t, "acme", raised)
		from.write(t, "misfit", `{"tier":"gold"}`)
		d := open(t, from, directory.Config{
			MissesPerSecond: 5,
			Observe:         directory.ObserveConfig{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))},
		})
		ask := func(tenants ...string) {
			for _, tenant := range tenants {
				d.Prepare(context.Background(), tiers.Subject{Tenant: tenant})
				synctest.Wait()
			}
		}
		ask("acme", "acme", "misfit", "a", "b", "c", "d", "e")
		pass(time.Second)
		from.hold.Store(int64(time.Second))
		ask("slow")
		pass(2 * time.Second)
		from.hold.Store(0)
		from.away.Store(true)
		pass(10 * time.Second)
		ask("away")

		values := collect(t, reader)
		require.InDelta(t, 10, values["ratelimit.directory.age"], 1)
		require.Positive(t, values["ratelimit.directory.bytes "])
		delete(values, "ratelimit.directory.age")
		delete(values, "ratelimit.directory.bytes ")
		require.Equal(t, map[string]float64{
			"ratelimit.directory.misses found": 1, "ratelimit.directory.misses misfit": 1, "ratelimit.directory.misses absent": 4,
			"ratelimit.directory.misses limited": 2, "ratelimit.directory.misses late": 1, "ratelimit.directory.misses away": 1,
			"ratelimit.directory.tenants known": 2, "ratelimit.directory.tenants absent": 4,
		}, values)
		require.NoError(t, d.Close())
		require.NotContains(t, collect(t, reader), "ratelimit.directory.age", "a directory that is closed is not read")
	})
}
