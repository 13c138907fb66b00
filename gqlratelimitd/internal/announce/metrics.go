package announce

import (
	"context"

	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/meter"
)

// instruments are the metrics. They name no tenant.
type instruments struct {
	meter                             *meter.Meter
	sent, repeated, dropped, failures metric.Int64Counter
	lag                               metric.Float64ObservableGauge
	waiting, leads                    metric.Int64ObservableGauge
}

func newInstruments(provider metric.MeterProvider) (*instruments, error) {
	m := meter.Of(provider, "announce")
	i := &instruments{
		meter:    m,
		sent:     m.Counter("ratelimit.announce.sent", "{event}", "Entries of the audit log that the broker has acknowledged, those that were sent again included."),
		repeated: m.Counter("ratelimit.announce.repeated", "{event}", "Entries that this daemon has sent again, because nothing said that all before them had arrived."),
		dropped:  m.Counter("ratelimit.announce.dropped", "{event}", "Entries of the audit log that the broker never takes."),
		failures: m.Counter("ratelimit.announce.failures", "{failure}", "How often entries could not be announced, and waited."),
		lag:      m.Seconds("ratelimit.announce.lag", "Age of the oldest entry of the audit log that the broker has not acknowledged. 0 if none waits."),
		waiting:  m.Number("ratelimit.announce.waiting", "{event}", "Entries of the audit log that the broker has not acknowledged."),
		leads:    m.Number("ratelimit.announce.leads", "", "1 in the daemon that announces, 0 in the others."),
	}
	return i, m.Err()
}

// observe tells the gauges of an announcer until the function is called that it returns.
func (i *instruments) observe(a *Announcer) (end func()) {
	return i.meter.Observe(a.cfg.Logger, func(_ context.Context, o metric.Observer) error {
		s := a.Status()
		leads := int64(0)
		if s.Leads {
			leads = 1
			lag := 0.0
			if s.Waiting > 0 && !s.Oldest.IsZero() {
				// The clock of who has written it may be another one.
				lag = max(0, a.cfg.Now().Sub(s.Oldest).Seconds())
			}
			o.ObserveFloat64(i.lag, lag)
			o.ObserveInt64(i.waiting, s.Waiting)
		}
		o.ObserveInt64(i.leads, leads)
		return nil
	}, i.lag, i.waiting, i.leads)
}
