package collect

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// scopeName is the instrumentation scope of the metrics.
const scopeName = "github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/collect"

// The kinds of what is written.
const (
	kindUsage     = "usage"
	kindDecisions = "decisions"
	kindReached   = "reached"
	kindSums      = "sums"
)

// instruments are the metrics. They name no tenant.
type instruments struct {
	meter                   metric.Meter
	rows, leftOut, failures metric.Int64Counter
	lag, sumsLag            metric.Float64ObservableGauge
	leads                   metric.Int64ObservableGauge
}

func newInstruments(provider metric.MeterProvider) (*instruments, error) {
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	i := &instruments{meter: provider.Meter(scopeName)}
	var errs [6]error
	i.rows, errs[0] = i.meter.Int64Counter("ratelimit.collector.rows", metric.WithUnit("{row}"),
		metric.WithDescription("Rows of usage that the collector has brought to the database, changed or not, by what they are of."))
	i.leftOut, errs[1] = i.meter.Int64Counter("ratelimit.collector.left_out", metric.WithUnit("{row}"),
		metric.WithDescription("Rows of usage that have no place in the database: of a minute that is forgotten or in the future, or with a name that is too long."))
	i.failures, errs[2] = i.meter.Int64Counter("ratelimit.collector.failures", metric.WithUnit("{failure}"),
		metric.WithDescription("How often the collector could not go on and waited, or could not read the counts of a tenant."))
	i.lag, errs[3] = i.meter.Float64ObservableGauge("ratelimit.collector.lag", metric.WithUnit("s"),
		metric.WithDescription("How long ago the newest minute ended of which everything was collected. A minute and a half is the least."))
	i.sumsLag, errs[4] = i.meter.Float64ObservableGauge("ratelimit.collector.sums.lag", metric.WithUnit("s"),
		metric.WithDescription("For how long the oldest sum of an hour, a day or a month waits to be computed anew. 0 if none waits."))
	i.leads, errs[5] = i.meter.Int64ObservableGauge("ratelimit.collector.leads",
		metric.WithDescription("1 in the daemon that collects usage, 0 in the others."))
	return i, errors.Join(errs[:]...)
}

// observePatience is for how long a scrape waits for the database.
const observePatience = 2 * time.Second

// observe tells the gauges of a collector until the function is called that it returns.
func (i *instruments) observe(c *Collector) (end func()) {
	reading, err := i.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		r := c.leading.Load()
		if r == nil {
			o.ObserveInt64(i.leads, 0)
			return nil
		}
		o.ObserveInt64(i.leads, 1)
		now := c.cfg.Now()
		if read := r.read.Load(); read > 0 {
			o.ObserveFloat64(i.lag, max(0, now.Sub(startOf(read+1)).Seconds()))
		} else {
			// It has not begun.
			o.ObserveFloat64(i.lag, now.Sub(r.since).Seconds())
		}
		ctx, cancel := context.WithTimeout(ctx, observePatience)
		defer cancel()
		var since time.Time
		err := c.db.Read(ctx, func(v *store.View) (err error) {
			since, err = v.UsageWaiting()
			return err
		})
		if err != nil {
			// It is not known, and the other gauges are.
			return nil
		}
		lag := time.Duration(0)
		if !since.IsZero() {
			lag = max(0, now.Sub(since))
		}
		o.ObserveFloat64(i.sumsLag, lag.Seconds())
		return nil
	}, i.lag, i.sumsLag, i.leads)
	if err != nil {
		// A collector without metrics collects all the same.
		otel.Handle(err)
		return func() {}
	}
	return func() { _ = reading.Unregister() }
}

func (i *instruments) wrote(ctx context.Context, kind string, rows, left int) {
	of := metric.WithAttributes(attribute.String("ratelimit.collector.kind", kind))
	i.rows.Add(ctx, int64(rows), of)
	if left > 0 {
		i.leftOut.Add(ctx, int64(left), of)
	}
}

func (i *instruments) failed(ctx context.Context) { i.failures.Add(ctx, 1) }
