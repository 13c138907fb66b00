package web

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// instruments say what is asked for, and how it is answered. No metric names an actor or a tenant.
type instruments struct{ duration metric.Float64Histogram }

func newInstruments(provider metric.MeterProvider) (*instruments, error) {
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	duration, err := provider.Meter("github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd").Float64Histogram("http.server.request.duration",
		metric.WithUnit("s"), metric.WithDescription("How long requests take, those that wait for a change included."),
		metric.WithExplicitBucketBoundaries(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10))
	if err != nil {
		return nil, fmt.Errorf("web: Config.MeterProvider: %w", err)
	}
	return &instruments{duration}, nil
}

// answered tells of an answer, in the names of the semantic conventions for HTTP servers.
func (i *instruments) answered(ctx context.Context, r *route, status int, took time.Duration) {
	i.duration.Record(context.WithoutCancel(ctx), took.Seconds(), metric.WithAttributes(
		attribute.String("http.request.method", r.method), attribute.String("http.route", r.pattern),
		attribute.Int("http.response.status_code", status),
	))
}
