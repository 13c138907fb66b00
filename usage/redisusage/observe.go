package redisusage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

const scopeName = "github.com/gqlgen-ratelimit/ratelimit/usage/redisusage"

// instruments count what was told, and what a recorder had no room for.
type instruments struct {
	duration  metric.Float64Histogram
	forgotten metric.Int64Counter
	ok, bad   metric.MeasurementOption
	ends      func() error
}

func newInstruments(provider metric.MeterProvider, recorder *usage.Recorder) (*instruments, error) {
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	i, meter := &instruments{}, provider.Meter(scopeName)
	var errs [4]error
	i.duration, errs[0] = meter.Float64Histogram("ratelimit.usage.duration", metric.WithUnit("s"),
		metric.WithDescription("Time that it took to tell the usage of a second."),
		metric.WithExplicitBucketBoundaries(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10))
	i.forgotten, errs[1] = meter.Int64Counter("ratelimit.usage.forgotten", metric.WithUnit("{minute}"),
		metric.WithDescription("Minutes of reports that were deleted for want of room."))
	losses, err := meter.Int64ObservableCounter("ratelimit.usage.losses",
		metric.WithDescription("What an instance had no room for: decisions under another name, decisions that are lost, and tenants that are not told."))
	errs[2] = err
	reading, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		all := recorder.Losses()
		for kind, n := range map[string]uint64{"other": all.Other, "lost": all.Lost, "untold": all.Untold} {
			o.ObserveInt64(losses, int64(n), metric.WithAttributes(attribute.String("ratelimit.usage.loss", kind)))
		}
		return nil
	}, losses)
	errs[3] = err
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("redisusage: the meter provider: %w", err)
	}
	i.ends = reading.Unregister
	result := func(text string) metric.MeasurementOption {
		return metric.WithAttributes(attribute.String("ratelimit.usage.result", text))
	}
	i.ok, i.bad = result("written"), result("failed")
	return i, nil
}

func (i *instruments) wrote(ctx context.Context, took time.Duration, err error) {
	option := i.ok
	if err != nil {
		option = i.bad
	}
	i.duration.Record(ctx, took.Seconds(), option)
	// Zeros tell readers that the counter exists.
	i.forgot(ctx, 0)
}

func (i *instruments) forgot(ctx context.Context, minutes int) { i.forgotten.Add(ctx, int64(minutes)) }
