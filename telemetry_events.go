package ratelimit

import (
	"context"
	"fmt"
	"math"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/event"
)

// watchDrops gives the metrics what the observer has dropped, if it counts that. It is read when metrics are
// collected, and so by nobody where there is no provider.
func watchDrops(cfg TelemetryConfig, observer event.Observer) error {
	counter, ok := observer.(event.DropCounter)
	if !ok {
		return nil
	}
	meters := cfg.MeterProvider
	if meters == nil {
		meters = otel.GetMeterProvider()
	}
	_, err := meters.Meter(scopeName).Int64ObservableCounter("ratelimit.events.dropped",
		metric.WithUnit("{event}"), metric.WithDescription("Events that the observer had no room for."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(min(counter.Dropped(), math.MaxInt64)))
			return nil
		}))
	if err != nil {
		return fmt.Errorf("ratelimit: the metric of dropped events: %w", err)
	}
	return nil
}
