package redisdigest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/digest"
)

const scopeName = "github.com/gqlgen-ratelimit/ratelimit/digest/redisdigest"

// instruments count what was written, and have the shares of the last digest.
type instruments struct {
	duration metric.Float64Histogram
	ok, bad  metric.MeasurementOption
	meter    metric.Meter
	share    metric.Float64ObservableGauge
	seen     metric.Int64ObservableGauge
	// groups are those of the last digest, nil before the first.
	groups atomic.Pointer[digest.Groups]
	ends   func() error
}

func newInstruments(provider metric.MeterProvider) (*instruments, error) {
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	i := &instruments{meter: provider.Meter(scopeName)}
	var errs [4]error
	i.duration, errs[0] = i.meter.Float64Histogram("ratelimit.digest.duration", metric.WithUnit("s"),
		metric.WithDescription("Time that it took to make the digest of a second and to write it."),
		metric.WithExplicitBucketBoundaries(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5))
	i.share, errs[1] = i.meter.Float64ObservableGauge("ratelimit.digest.refused_share",
		metric.WithDescription("About which share of those whom the instance has seen within a minute it has refused something."))
	i.seen, errs[2] = i.meter.Int64ObservableGauge("ratelimit.digest.seen", metric.WithUnit("{owner}"),
		metric.WithDescription("About how many the instance has seen within a minute."))
	reading, err := i.meter.RegisterCallback(i.observe, i.share, i.seen)
	errs[3] = err
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("redisdigest: the meter provider: %w", err)
	}
	i.ends = reading.Unregister
	result := func(text string) metric.MeasurementOption {
		return metric.WithAttributes(attribute.String("ratelimit.digest.result", text))
	}
	i.ok, i.bad = result("written"), result("failed")
	return i, nil
}

// observe says what the last digest has.
func (i *instruments) observe(_ context.Context, o metric.Observer) error {
	groups := i.groups.Load()
	if groups == nil {
		return nil
	}
	for of, group := range map[string]*digest.Group{"tenants": &groups.Tenants, "users": &groups.Users} {
		set := metric.WithAttributes(attribute.String("ratelimit.digest.of", of))
		o.ObserveFloat64(i.share, group.RefusedShare(), set)
		o.ObserveInt64(i.seen, int64(group.Seen.Count()), set)
	}
	return nil
}

func (i *instruments) wrote(ctx context.Context, took time.Duration, err error) {
	option := i.ok
	if err != nil {
		option = i.bad
	}
	i.duration.Record(ctx, took.Seconds(), option)
}
