package placement

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// scopeName is the instrumentation scope of the metrics.
const scopeName = "github.com/gqlgen-ratelimit/ratelimit/placement"

// attrStore is the attribute of the metrics. Nobody outside chooses its values: stores are named by operators.
const attrStore = "ratelimit.placement.store"

// ObserveConfig says who is told of what a [Store] does.
type ObserveConfig struct {
	// Logger is told what goes on without anybody who asks. Nil means slog.Default().
	Logger *slog.Logger
	// MeterProvider takes the metrics. Nil means the global provider.
	MeterProvider metric.MeterProvider
}

// watch counts what a store does.
type watch struct {
	logger *slog.Logger
	// refused counts maps.
	refused atomic.Int64
	reading metric.Registration
}

func newWatch(cfg ObserveConfig, s *Store) (*watch, error) {
	w := &watch{logger: cfg.Logger}
	if w.logger == nil {
		w.logger = slog.Default()
	}
	provider := cfg.MeterProvider
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	meter := provider.Meter(scopeName)
	generation, err := meter.Int64ObservableGauge("ratelimit.placement.generation", metric.WithDescription("Generation of the map of stores that holds."))
	if err != nil {
		return nil, fmt.Errorf("placement: %w", err)
	}
	calls, err := meter.Int64ObservableCounter("ratelimit.placement.calls", metric.WithUnit("{call}"), metric.WithDescription("Calls by the store in which their tenant is."))
	if err != nil {
		return nil, fmt.Errorf("placement: %w", err)
	}
	refused, err := meter.Int64ObservableCounter("ratelimit.placement.refused", metric.WithUnit("{map}"), metric.WithDescription("Maps of stores that do not hold because something is wrong with them."))
	if err != nil {
		return nil, fmt.Errorf("placement: %w", err)
	}
	w.reading, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		l := s.current.Load()
		if l == nil || l.of == nil {
			return nil
		}
		o.ObserveInt64(generation, int64(l.of.Generation))
		for _, m := range l.members {
			o.ObserveInt64(calls, m.calls.Load(), metric.WithAttributes(attribute.String(attrStore, m.name)))
		}
		o.ObserveInt64(refused, w.refused.Load())
		return nil
	}, generation, calls, refused)
	if err != nil {
		return nil, fmt.Errorf("placement: %w", err)
	}
	return w, nil
}

// close ends the metrics.
func (w *watch) close() {
	// A provider that has ended has none any more.
	_ = w.reading.Unregister()
}
