package relay

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/meter"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// instruments are the metrics. They name no tenant.
type instruments struct {
	meter                            *meter.Meter
	writes, failures                 metric.Int64Counter
	lag                              metric.Float64ObservableGauge
	waiting, leads, unmanaged, wrong metric.Int64ObservableGauge
}

func newInstruments(provider metric.MeterProvider) (*instruments, error) {
	m := meter.Of(provider, "relay")
	i := &instruments{
		meter: m,
		writes: m.Counter("ratelimit.relay.writes", "{write}", "What the relay has written to Redis, by the kind of what has changed.",
			ofKind(store.PolicyMessage), ofKind(store.TenantMessage), ofKind(store.OverridesMessage)),
		failures:  m.Counter("ratelimit.relay.failures", "{failure}", "How often the relay could not go on, and waited."),
		lag:       m.Seconds("ratelimit.relay.lag", "For how long the oldest change waits that Redis has not been given. 0 if none waits."),
		waiting:   m.Number("ratelimit.relay.waiting", "{change}", "How many things have changed that Redis has not been given."),
		leads:     m.Number("ratelimit.relay.leads", "", "1 in the daemon that relays, 0 in the others."),
		unmanaged: m.Number("ratelimit.relay.unmanaged", "{override}", "Override records in Redis that nobody has set through the control plane."),
		wrong:     m.Number("ratelimit.relay.refused", "{change}", "What Redis has not as the database has it, and will not have before somebody changes it."),
	}
	return i, m.Err()
}

func ofKind(kind string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("ratelimit.relay.kind", kind))
}

// observe tells the gauges of a relay until the function is called that it returns.
func (i *instruments) observe(r *Relay) (end func()) {
	return i.meter.Observe(r.cfg.Logger, func(_ context.Context, o metric.Observer) error {
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
}

func (i *instruments) wrote(ctx context.Context, kind string) {
	i.writes.Add(ctx, 1, ofKind(kind))
}

func (i *instruments) failed(ctx context.Context) { i.failures.Add(ctx, 1) }
