package collect

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/meter"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// The kinds of what is written.
const (
	kindUsage     = "usage"
	kindDecisions = "decisions"
	kindReached   = "reached"
	kindSums      = "sums"
)

// instruments are the metrics. They name no tenant.
type instruments struct {
	meter                                    *meter.Meter
	rows, leftOut, minutes, missed, failures metric.Int64Counter
	lag, sumsLag                             metric.Float64ObservableGauge
	leads                                    metric.Int64ObservableGauge
}

func newInstruments(provider metric.MeterProvider) (*instruments, error) {
	m := meter.Of(provider, "collect")
	kinds := []metric.MeasurementOption{ofKind(kindUsage), ofKind(kindDecisions), ofKind(kindReached), ofKind(kindSums)}
	i := &instruments{
		meter: m,
		rows:  m.Counter("ratelimit.collector.rows", "{row}", "Rows of usage that the collector has brought to the database, changed or not, by what they are of.", kinds...),
		leftOut: m.Counter("ratelimit.collector.left_out", "{row}",
			"Rows of usage that have no place in the database: of a minute that is forgotten or in the future, or with a name that is too long.", kinds...),
		minutes: m.Counter("ratelimit.collector.minutes", "{minute}", "Minutes of which everything was collected that instances had told in them."),
		missed: m.Counter("ratelimit.collector.missed", "{minute}",
			"Minutes that nobody has collected before what instances had told in them was forgotten. A search finds what was charged in them for as long as Redis keeps it."),
		failures: m.Counter("ratelimit.collector.failures", "{failure}", "How often the collector could not go on and waited, or could not read the counts of a tenant."),
		lag:      m.Seconds("ratelimit.collector.lag", "How long ago the newest minute ended of which everything was collected. A minute and a half is the least."),
		sumsLag:  m.Seconds("ratelimit.collector.sums.lag", "For how long the oldest sum of an hour, a day or a month waits to be computed anew. 0 if none waits."),
		leads:    m.Number("ratelimit.collector.leads", "", "1 in the daemon that collects usage, 0 in the others."),
	}
	return i, m.Err()
}

func ofKind(kind string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("ratelimit.collector.kind", kind))
}

// observePatience is for how long a scrape waits for the database.
const observePatience = 2 * time.Second

// observe tells the gauges of a collector until the function is called that it returns.
func (i *instruments) observe(c *Collector) (end func()) {
	return i.meter.Observe(c.cfg.Logger, func(ctx context.Context, o metric.Observer) error {
		r := c.leading.Load()
		if r == nil {
			o.ObserveInt64(i.leads, 0)
			return nil
		}
		o.ObserveInt64(i.leads, 1)
		now := c.cfg.Now()
		if noted := r.noted.Load(); noted > 0 {
			o.ObserveFloat64(i.lag, max(0, now.Sub(startOf(noted+1)).Seconds()))
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
}

func (i *instruments) wrote(ctx context.Context, kind string, rows, left int) {
	of := ofKind(kind)
	i.rows.Add(ctx, int64(rows), of)
	if left > 0 {
		i.leftOut.Add(ctx, int64(left), of)
	}
}

func (i *instruments) failed(ctx context.Context) { i.failures.Add(ctx, 1) }
