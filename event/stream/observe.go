package stream

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

const scopeName = "github.com/gqlgen-ratelimit/ratelimit/event/stream"

// Names of attributes of metrics.
const (
	attrTopic  = "ratelimit.stream.topic"
	attrReason = "ratelimit.stream.reason"
	attrResult = "ratelimit.stream.result"
)

// instruments count what becomes of events. They stay with the provider, so that what the end of a queue drops is in the last that is
// exported, and the sums of a process never fall.
type instruments struct {
	duration metric.Float64Histogram
	ok, bad  metric.MeasurementOption
}

func newInstruments(provider metric.MeterProvider, q *Queue) (*instruments, error) {
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	meter := provider.Meter(scopeName)
	var errs [5]error
	var i instruments
	i.duration, errs[0] = meter.Float64Histogram("ratelimit.stream.batch.duration", metric.WithUnit("s"),
		metric.WithDescription("Time that a batch of events took until its broker had answered."),
		metric.WithExplicitBucketBoundaries(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10))
	sent, err := meter.Int64ObservableCounter("ratelimit.stream.sent", metric.WithUnit("{event}"),
		metric.WithDescription("Events that the broker has acknowledged."))
	errs[1] = err
	dropped, err := meter.Int64ObservableCounter("ratelimit.stream.dropped", metric.WithUnit("{event}"),
		metric.WithDescription("Events that were not brought to the broker."))
	errs[2] = err
	waiting, err := meter.Int64ObservableGauge("ratelimit.stream.waiting", metric.WithUnit("{event}"),
		metric.WithDescription("Events that wait for the broker."))
	errs[3] = err
	lag, err := meter.Float64ObservableGauge("ratelimit.stream.lag", metric.WithUnit("s"),
		metric.WithDescription("Age of the oldest event that waits for the broker."))
	errs[4] = err
	for _, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("stream: the meter provider: %w", err)
		}
	}
	option := func(key, value string) metric.MeasurementOption {
		return metric.WithAttributes(attribute.String(key, value))
	}
	i.ok, i.bad = option(attrResult, "acknowledged"), option(attrResult, "failed")
	_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for t, name := range q.encoder.topics {
			if topic(t) == q.topicNamed(name) {
				o.ObserveInt64(sent, int64(q.sent[t].Load()), option(attrTopic, name))
			}
		}
		for r := range reasons {
			o.ObserveInt64(dropped, int64(q.dropped[r].Load()), option(attrReason, r.String()))
		}
		o.ObserveInt64(waiting, int64(q.unsent()))
		o.ObserveFloat64(lag, q.lag().Seconds())
		return nil
	}, sent, dropped, waiting, lag)
	if err != nil {
		return nil, fmt.Errorf("stream: the meter provider: %w", err)
	}
	return &i, nil
}

// batch counts one.
func (i *instruments) batch(ctx context.Context, took time.Duration, err error) {
	option := i.ok
	if err != nil {
		option = i.bad
	}
	i.duration.Record(ctx, took.Seconds(), option)
}
