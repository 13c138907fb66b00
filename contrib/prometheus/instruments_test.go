package prometheus_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// instrument is one that a meter was asked for.
type instrument struct {
	name, unit, description string
	again                   func(*testing.T, metric.Meter)
}

// recorder notes the instruments that a provider is asked for.
type recorder struct {
	noop.Meter
	instruments []instrument
}

type provider struct {
	noop.MeterProvider
	recorder *recorder
}

func (p *provider) Meter(string, ...metric.MeterOption) metric.Meter { return p.recorder }

func (r *recorder) note(name, unit, description string, again func(*testing.T, metric.Meter)) {
	r.instruments = append(r.instruments, instrument{name, unit, description, again})
}

func (r *recorder) Int64Counter(name string, options ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	cfg := metric.NewInt64CounterConfig(options...)
	r.note(name, cfg.Unit(), cfg.Description(), func(t *testing.T, m metric.Meter) {
		t.Helper()
		counter, err := m.Int64Counter(name, options...)
		require.NoError(t, err)
		counter.Add(t.Context(), 1)
	})
	return r.Meter.Int64Counter(name, options...)
}

func (r *recorder) Float64Counter(name string, options ...metric.Float64CounterOption) (metric.Float64Counter, error) {
	cfg := metric.NewFloat64CounterConfig(options...)
	r.note(name, cfg.Unit(), cfg.Description(), func(t *testing.T, m metric.Meter) {
		t.Helper()
		counter, err := m.Float64Counter(name, options...)
		require.NoError(t, err)
		counter.Add(t.Context(), 1)
	})
	return r.Meter.Float64Counter(name, options...)
}

func (r *recorder) Int64Histogram(name string, options ...metric.Int64HistogramOption) (metric.Int64Histogram, error) {
	cfg := metric.NewInt64HistogramConfig(options...)
	r.note(name, cfg.Unit(), cfg.Description(), func(t *testing.T, m metric.Meter) {
		t.Helper()
		histogram, err := m.Int64Histogram(name, options...)
		require.NoError(t, err)
		histogram.Record(t.Context(), 1)
	})
	return r.Meter.Int64Histogram(name, options...)
}

func (r *recorder) Float64Histogram(name string, options ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	cfg := metric.NewFloat64HistogramConfig(options...)
	r.note(name, cfg.Unit(), cfg.Description(), func(t *testing.T, m metric.Meter) {
		t.Helper()
		histogram, err := m.Float64Histogram(name, options...)
		require.NoError(t, err)
		histogram.Record(t.Context(), 1)
	})
	return r.Meter.Float64Histogram(name, options...)
}

func (r *recorder) Int64ObservableCounter(
	name string, options ...metric.Int64ObservableCounterOption,
) (metric.Int64ObservableCounter, error) {
	cfg := metric.NewInt64ObservableCounterConfig(options...)
	r.note(name, cfg.Unit(), cfg.Description(), func(t *testing.T, m metric.Meter) {
		t.Helper()
		if len(cfg.Callbacks()) == 0 {
			options = append(options, metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
				o.Observe(1)
				return nil
			}))
		}
		_, err := m.Int64ObservableCounter(name, options...)
		require.NoError(t, err)
	})
	return r.Meter.Int64ObservableCounter(name, options...)
}

func (r *recorder) Int64ObservableGauge(
	name string, options ...metric.Int64ObservableGaugeOption,
) (metric.Int64ObservableGauge, error) {
	cfg := metric.NewInt64ObservableGaugeConfig(options...)
	r.note(name, cfg.Unit(), cfg.Description(), func(t *testing.T, m metric.Meter) {
		t.Helper()
		if len(cfg.Callbacks()) == 0 {
			options = append(options, metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
				o.Observe(1)
				return nil
			}))
		}
		_, err := m.Int64ObservableGauge(name, options...)
		require.NoError(t, err)
	})
	return r.Meter.Int64ObservableGauge(name, options...)
}

func (r *recorder) Float64ObservableGauge(
	name string, options ...metric.Float64ObservableGaugeOption,
) (metric.Float64ObservableGauge, error) {
	cfg := metric.NewFloat64ObservableGaugeConfig(options...)
	r.note(name, cfg.Unit(), cfg.Description(), func(t *testing.T, m metric.Meter) {
		t.Helper()
		_, err := m.Float64ObservableGauge(name, append(options, metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			o.Observe(1)
			return nil
		}))...)
		require.NoError(t, err)
	})
	return r.Meter.Float64ObservableGauge(name, options...)
}
