package collect

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/meter"
)

// The kinds of what is written.
const (
	kindUsage   = "usage"
	kindRefused = "refused"
)

// instruments are the metrics. They name no tenant.
type instruments struct {
	meter                           *meter.Meter
	rows, leftOut, missed, failures metric.Int64Counter
	lag                             metric.Float64ObservableGauge
	leads                           metric.Int64ObservableGauge
}

func newInstruments(provider metric.MeterProvider) (*instruments, error) {
	m := meter.Of(provider, "collect")
	kinds := []metric.MeasurementOption{ofKind(kindUsage), ofKind(kindRefused)}
	i := &instruments{
		meter: m,
		rows:  m.Counter("ratelimit.collector.rows", "{row}", "Rows of usage that the collector has brought to the database, changed or not, by what they are of.", kinds...),
		leftOut: m.Counter("ratelimit.collector.left_out", "{row}",
			"Rows of usage that have no place in the database: of a time that is forgotten or in the future, with a name that is too long, or too many.", kinds...),
		missed:   m.Counter("ratelimit.collector.missed", "{minute}", "Minutes that nobody has collected before their counts were gone."),
		failures: m.Counter("ratelimit.collector.failures", "{failure}", "How often the collector could not go on and waited, or could not read the counts of a tenant."),
		lag:      m.Seconds("ratelimit.collector.lag", "How long ago the newest minute ended of which everything was collected."),
		leads:    m.Number("ratelimit.collector.leads", "", "1 in the daemon that collects usage, 0 in the others."),
	}
	return i, m.Err()
}

func ofKind(kind string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("ratelimit.collector.kind", kind))
}

// observe tells the gauges of a collector until the function is called that it returns.
func (i *instruments) observe(c *Collector) (end func()) {
	return i.meter.Observe(c.cfg.Logger, func(_ context.Context, o metric.Observer) error {
		r := c.leading.Load()
		if r == nil {
			o.ObserveInt64(i.leads, 0)
			return nil
		}
		o.ObserveInt64(i.leads, 1)
		now := c.cfg.Now()
		since := r.since
		if collected := r.collected.Load(); collected > 0 {
			since = startOf(collected)
		}
		o.ObserveFloat64(i.lag, max(0, now.Sub(since).Seconds()))
		return nil
	}, i.lag, i.leads)
}

func (i *instruments) wrote(ctx context.Context, kind string, rows, left int) {
	of := ofKind(kind)
	i.rows.Add(ctx, int64(rows), of)
	if left > 0 {
		i.leftOut.Add(ctx, int64(left), of)
	}
}

func (i *instruments) failed(ctx context.Context) { i.failures.Add(ctx, 1) }
