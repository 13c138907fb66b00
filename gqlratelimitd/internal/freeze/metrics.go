package freeze

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// scopeName is the instrumentation scope of the metrics.
const scopeName = "github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/freeze"

// instruments are the metrics. They name no tenant.
type instruments struct {
	meter            metric.Meter
	statements, left metric.Int64Counter
	overdue          metric.Float64ObservableGauge
	waits            metric.Int64ObservableGauge
}

func newInstruments(provider metric.MeterProvider) (*instruments, error) {
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	i := &instruments{meter: provider.Meter(scopeName)}
	var errs [4]error
	i.statements, errs[0] = i.meter.Int64Counter("ratelimit.freezer.statements", metric.WithUnit("{statement}"),
		metric.WithDescription("Statements that this daemon has made by itself, by whether they are the first of their period or correct one."))
	i.left, errs[1] = i.meter.Int64Counter("ratelimit.freezer.left", metric.WithUnit("{tenant}"),
		metric.WithDescription("Tenants that have no statement of a period that was frozen: their names cannot be written, or somebody has frozen other periods of them."))
	i.overdue, errs[2] = i.meter.Float64ObservableGauge("ratelimit.freezer.overdue", metric.WithUnit("s"),
		metric.WithDescription("For how long the oldest billing period is due that is not frozen. 0 if none is."))
	i.waits, errs[3] = i.meter.Int64ObservableGauge("ratelimit.freezer.waits",
		metric.WithDescription("1 for the reason for which a billing period that is due is not frozen, 0 for the others."))
	return i, errors.Join(errs[:]...)
}

// observePatience is for how long a scrape waits for the database.
const observePatience = 2 * time.Second

// observe tells the gauges until the function is called that it returns. Every daemon has them, so that nobody has to lead for an alert.
func (i *instruments) observe(cfg *Config) (end func()) {
	reading, err := i.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		ctx, cancel := context.WithTimeout(ctx, observePatience)
		defer cancel()
		status, err := cfg.Status(ctx)
		if err != nil {
			return err
		}
		o.ObserveFloat64(i.overdue, status.Overdue(cfg.Now()).Seconds())
		for _, reason := range Reasons() {
			is := int64(0)
			if status.Wait != nil && status.Wait.Reason == reason {
				is = 1
			}
			o.ObserveInt64(i.waits, is, metric.WithAttributes(attribute.String("ratelimit.freezer.reason", string(reason))))
		}
		return nil
	}, i.overdue, i.waits)
	if err != nil {
		// A freezer without metrics freezes all the same.
		otel.Handle(err)
		return func() {}
	}
	return func() { _ = reading.Unregister() }
}

// made counts what was made.
func (i *instruments) made(ctx context.Context, page *Page) {
	for kind, n := range map[string]int{"first": page.Made, "correction": page.Corrected} {
		i.statements.Add(ctx, int64(n), metric.WithAttributes(attribute.String("ratelimit.freezer.kind", kind)))
	}
	i.left.Add(ctx, int64(len(page.Left)))
}
