package announce

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
)

// scopeName is the instrumentation scope of the metrics.
const scopeName = "github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/announce"

// instruments are the metrics. They name no tenant.
type instruments struct {
	meter                   metric.Meter
	sent, dropped, failures metric.Int64Counter
	lag                     metric.Float64ObservableGauge
	waiting, leads          metric.Int64ObservableGauge
}

func newInstruments(provider metric.MeterProvider) (*instruments, error) {
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	i := &instruments{meter: provider.Meter(scopeName)}
	var errs [6]error
	i.sent, errs[0] = i.meter.Int64Counter("ratelimit.announce.sent", metric.WithUnit("{event}"),
		metric.WithDescription("Entries of the audit log that the broker has acknowledged, those that were sent again included."))
	i.dropped, errs[1] = i.meter.Int64Counter("ratelimit.announce.dropped", metric.WithUnit("{event}"),
		metric.WithDescription("Entries of the audit log that the broker never takes."))
	i.failures, errs[2] = i.meter.Int64Counter("ratelimit.announce.failures", metric.WithUnit("{failure}"),
		metric.WithDescription("How often entries could not be announced, and waited."))
	i.lag, errs[3] = i.meter.Float64ObservableGauge("ratelimit.announce.lag", metric.WithUnit("s"),
		metric.WithDescription("Age of the oldest entry of the audit log that the broker has not acknowledged. 0 if none waits."))
	i.waiting, errs[4] = i.meter.Int64ObservableGauge("ratelimit.announce.waiting", metric.WithUnit("{event}"),
		metric.WithDescription("Entries of the audit log that the broker has not acknowledged."))
	i.leads, errs[5] = i.meter.Int64ObservableGauge("ratelimit.announce.leads",
		metric.WithDescription("1 in the daemon that announces, 0 in the others."))
	return i, errors.Join(errs[:]...)
}

// observe tells the gauges of an announcer until the function is called that it returns.
func (i *instruments) observe(a *Announcer) (end func()) {
	reading, err := i.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
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
	if err != nil {
		// An announcer without metrics announces all the same.
		otel.Handle(err)
		return func() {}
	}
	return func() { _ = reading.Unregister() }
}
