package relay

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// scopeName is the instrumentation scope of the metrics.
const scopeName = "github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/relay"

// instruments are the metrics. They name no tenant.
type instruments struct {
	meter                            metric.Meter
	writes, failures                 metric.Int64Counter
	lag                              metric.Float64ObservableGauge
	waiting, leads, unmanaged, wrong metric.Int64ObservableGauge
}

func newInstruments(provider metric.MeterProvider) (*instruments, error) {
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	i := &instruments{meter: provider.Meter(scopeName)}
	var errs [7]error
	i.writes, errs[0] = i.meter.Int64Counter("ratelimit.relay.writes", metric.WithUnit("{write}"),
		metric.WithDescription("What the relay has written to Redis, by the kind of what has changed."))
	i.failures, errs[1] = i.meter.Int64Counter("ratelimit.relay.failures", metric.WithUnit("{failure}"),
		metric.WithDescription("How often the relay could not go on, and waited."))
	i.lag, errs[2] = i.meter.Float64ObservableGauge("ratelimit.relay.lag", metric.WithUnit("s"),
		metric.WithDescription("For how long the oldest change waits that Redis has not been given. 0 if none waits."))
	i.waiting, errs[3] = i.meter.Int64ObservableGauge("ratelimit.relay.waiting", metric.WithUnit("{change}"),
		metric.WithDescription("How many things have changed that Redis has not been given."))
	i.leads, errs[4] = i.meter.Int64ObservableGauge("ratelimit.relay.leads",
		metric.WithDescription("1 in the daemon that relays, 0 in the others."))
	i.unmanaged, errs[5] = i.meter.Int64ObservableGauge("ratelimit.relay.unmanaged", metric.WithUnit("{override}"),
		metric.WithDescription("Override records in Redis that nobody has set through the control plane."))
	i.wrong, errs[6] = i.meter.Int64ObservableGauge("ratelimit.relay.refused", metric.WithUnit("{change}"),
		metric.WithDescription("What Redis has not as the database has it, and will not have before somebody changes it."))
	return i, errors.Join(errs[:]...)
}

// observe tells the gauges of a relay until the function is called that it returns.
func (i *instruments) observe(r *Relay) (end func()) {
	reading, err := i.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := r.Status()
		leads := int64(0)
		if s.Leads {
			leads = 1
			o.ObserveFloat64(i.lag, s.Lag.Seconds())
			o.ObserveInt64(i.waiting, s.Waiting)
			o.ObserveInt64(i.unmanaged, s.Unmanaged)
			o.ObserveInt64(i.wrong, int64(len(s.Refused)))
		}
		o.ObserveInt64(i.leads, leads)
		return nil
	}, i.lag, i.waiting, i.leads, i.unmanaged, i.wrong)
	if err != nil {
		// A relay without metrics relays all the same.
		otel.Handle(err)
		return func() {}
	}
	return func() { _ = reading.Unregister() }
}

func (i *instruments) wrote(ctx context.Context, kind string) {
	i.writes.Add(ctx, 1, metric.WithAttributes(attribute.String("ratelimit.relay.kind", kind)))
}

func (i *instruments) failed(ctx context.Context) { i.failures.Add(ctx, 1) }
