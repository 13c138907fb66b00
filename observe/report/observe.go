package report

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

const scopeName = "github.com/gqlgen-ratelimit/ratelimit/observe/report"

// instruments measure the writes.
type instruments struct {
	duration metric.Float64Histogram
	ok, bad  metric.MeasurementOption
}

func newInstruments(provider metric.MeterProvider) (*instruments, error) {
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	duration, err := provider.Meter(scopeName).Float64Histogram("ratelimit.report.duration", metric.WithUnit("s"),
		metric.WithDescription("Time that it took to write what an instance has to report."),
		metric.WithExplicitBucketBoundaries(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5))
	if err != nil {
		return nil, fmt.Errorf("report: the meter provider: %w", err)
	}
	result := func(text string) metric.MeasurementOption {
		return metric.WithAttributes(attribute.String("ratelimit.report.result", text))
	}
	return &instruments{duration: duration, ok: result("written"), bad: result("failed")}, nil
}

func (i *instruments) wrote(ctx context.Context, took time.Duration, err error) {
	option := i.ok
	if err != nil {
		option = i.bad
	}
	i.duration.Record(ctx, took.Seconds(), option)
}
