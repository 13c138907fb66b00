package meter_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/meter"
)

func of(name string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("of", name))
}

// points are the series of a metric with their values.
func points(t *testing.T, reader sdk.Reader, name string) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &all))
	found := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		require.Equal(t, "github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/part", scope.Scope.Name)
		for _, m := range scope.Metrics {
			if m.Name != name {
				continue
			}
			var data []metricdata.DataPoint[int64]
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				data = d.DataPoints
			case metricdata.Gauge[int64]:
				data = d.DataPoints
			}
			for _, p := range data {
				value, _ := p.Attributes.Value("of")
				found[value.AsString()] = p.Value
			}
		}
	}
	return found
}

func TestACounterIsZeroBeforeAnythingIsCounted(t *testing.T) {
	t.Parallel()
	reader := sdk.NewManualReader()
	m := meter.Of(sdk.NewMeterProvider(sdk.WithReader(reader)), "part")
	m.Counter("plain", "{it}", "What.")
	each := m.Counter("each", "{it}", "What.", of("a"), of("b"))
	require.NoError(t, m.Err())
	each.Add(t.Context(), 2, of("b"))
	require.Equal(t, map[string]int64{"": 0}, points(t, reader, "plain"))
	require.Equal(t, map[string]int64{"a": 0, "b": 2}, points(t, reader, "each"))
}

func TestGaugesAreReadUntilTheyEnd(t *testing.T) {
	t.Parallel()
	reader := sdk.NewManualReader()
	m := meter.Of(sdk.NewMeterProvider(sdk.WithReader(reader)), "part")
	number, seconds := m.Number("number", "", "What."), m.Seconds("seconds", "What.")
	end := m.Observe(slog.Default(), func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(number, 3)
		o.ObserveFloat64(seconds, 0.5)
		return nil
	}, number, seconds)
	require.Equal(t, map[string]int64{"": 3}, points(t, reader, "number"))
	end()
	require.Empty(t, points(t, reader, "number"))
}

// broken is a provider whose meter makes nothing.
type broken struct{ noop.MeterProvider }

// Meter implements metric.MeterProvider.
func (broken) Meter(string, ...metric.MeterOption) metric.Meter { return brokenMeter{} }

type brokenMeter struct{ noop.Meter }

var errBroken = errors.New("no")

// Int64Counter implements metric.Meter.
func (brokenMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return nil, errBroken
}

// RegisterCallback implements metric.Meter.
func (brokenMeter) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	return nil, errBroken
}

func TestWhatCannotBeMadeIsSaidAndNothingElseFails(t *testing.T) {
	t.Parallel()
	m := meter.Of(broken{}, "part")
	m.Counter("counter", "{it}", "What.")
	m.Number("number", "", "What.")
	require.ErrorIs(t, m.Err(), errBroken)
	var log bytes.Buffer
	m.Observe(slog.New(slog.NewTextHandler(&log, nil)), nil)()
	require.Contains(t, log.String(), "there are no gauges")
}
