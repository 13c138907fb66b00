package dispatch

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/meter"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook/delivery"
)

// instruments are the metrics. They name no tenant and no endpoint.
type instruments struct {
	meter                       *meter.Meter
	attempts, died, put, missed metric.Int64Counter
	waiting, dead, endpoints    metric.Int64ObservableGauge
	oldest, late, behind        metric.Float64ObservableGauge
	// readAt is when all streams were read to their end, in nanoseconds since 1970.
	readAt atomic.Int64
}

func newInstruments(provider metric.MeterProvider) (*instruments, error) {
	m := meter.Of(provider, "dispatch")
	var outcomes []metric.MeasurementOption
	for _, o := range []webhook.Outcome{webhook.Delivered, webhook.Failed, webhook.Slow, webhook.Gone, webhook.Refused} {
		outcomes = append(outcomes, of("outcome", string(o)))
	}
	i := &instruments{
		meter:     m,
		attempts:  m.Counter("ratelimit.webhook.attempts", "{attempt}", "Attempts to bring a message to an endpoint, by what they came to.", outcomes...),
		died:      m.Counter("ratelimit.webhook.died", "{message}", "Messages that are tried no more."),
		put:       m.Counter("ratelimit.webhook.messages", "{message}", "Messages that were put before endpoints."),
		missed:    m.Counter("ratelimit.webhook.dropped", "{message}", "Messages that no endpoint was given, by why.", of("reason", "full"), of("reason", "unreadable")),
		waiting:   m.Number("ratelimit.webhook.waiting", "{message}", "Messages that wait, in the database."),
		dead:      m.Number("ratelimit.webhook.dead", "{message}", "Messages that are tried no more, and can be replayed."),
		endpoints: m.Number("ratelimit.webhook.endpoints", "{endpoint}", "Endpoints, by whether they get events."),
		oldest:    m.Seconds("ratelimit.webhook.oldest", "For how long the oldest message waits. 0 if none waits."),
		late:      m.Seconds("ratelimit.webhook.late", "For how long a message waits for an attempt that is due. 0 if none does."),
		behind:    m.Seconds("ratelimit.webhook.behind", "For how long the streams of the instances were not read to their end."),
	}
	i.readAt.Store(time.Now().UnixNano())
	return i, m.Err()
}

// of is an attribute of a webhook.
func of(name, value string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("ratelimit.webhook."+name, value))
}

func (i *instruments) attempt(ctx context.Context, r delivery.Record, result webhook.Result) {
	i.attempts.Add(ctx, 1, of("outcome", string(result.Outcome)))
	if r.Delivery.State == webhook.Dead {
		i.died.Add(ctx, 1)
	}
}

func (i *instruments) took(ctx context.Context, in store.Intake) {
	i.put.Add(ctx, int64(in.Put))
	if in.Full > 0 {
		i.missed.Add(ctx, int64(in.Full), of("reason", "full"))
	}
}

func (i *instruments) unread(ctx context.Context) {
	i.missed.Add(ctx, 1, of("reason", "unreadable"))
}

func (i *instruments) read(at time.Time) { i.readAt.Store(at.UnixNano()) }

const (
	// totalsFor is for how long what was read from the database holds, or that it could not be read.
	totalsFor = 5 * time.Second
	// observePatience is for how long a scrape waits for the database: other alerts depend on it.
	observePatience = 2 * time.Second
)

// reads is a database that is read.
type reads interface {
	Read(ctx context.Context, read func(*store.View) error) error
}

// totals are those of the database, read at most every few seconds.
type totals struct {
	mu   sync.Mutex
	at   time.Time
	read store.WebhookTotals
	err  error
}

func (t *totals) get(ctx context.Context, db reads, now time.Time) (store.WebhookTotals, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at.IsZero() || now.Sub(t.at) >= totalsFor {
		t.at = now
		ctx, cancel := context.WithTimeout(ctx, observePatience)
		defer cancel()
		t.err = db.Read(ctx, func(v *store.View) (err error) {
			t.read, err = v.WebhookTotals(now)
			return err
		})
	}
	return t.read, t.err
}

// observe tells the gauges until the function is called that it returns.
func (i *instruments) observe(d *Dispatcher) (end func()) {
	kept := &totals{}
	since := func(at, now time.Time) float64 {
		if at.IsZero() {
			return 0
		}
		return max(0, now.Sub(at).Seconds())
	}
	return i.meter.Observe(d.cfg.Logger, func(ctx context.Context, o metric.Observer) error {
		now := time.Now()
		o.ObserveFloat64(i.behind, since(time.Unix(0, i.readAt.Load()), now))
		t, err := kept.get(ctx, d.cfg.Store, now)
		if err != nil {
			return err
		}
		o.ObserveInt64(i.waiting, t.Waiting)
		o.ObserveInt64(i.dead, t.Dead)
		o.ObserveInt64(i.endpoints, t.Enabled, of("state", "enabled"))
		o.ObserveInt64(i.endpoints, t.Disabled, of("state", "disabled"))
		o.ObserveFloat64(i.oldest, since(t.Oldest, now))
		o.ObserveFloat64(i.late, since(t.Due, now))
		return nil
	}, i.waiting, i.dead, i.endpoints, i.oldest, i.late, i.behind)
}
