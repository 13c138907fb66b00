package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/event/webhook"
	"github.com/gqlgen-ratelimit/ratelimit/event/webhook/delivery"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// scopeName is the instrumentation scope of the metrics.
const scopeName = "github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/dispatch"

// instruments are the metrics. They name no tenant and no endpoint.
type instruments struct {
	meter                       metric.Meter
	attempts, died, put, missed metric.Int64Counter
	waiting, dead, endpoints    metric.Int64ObservableGauge
	oldest, late, behind        metric.Float64ObservableGauge
	// readAt is when all streams were read to their end, in nanoseconds since 1970.
	readAt atomic.Int64
}

func newInstruments(provider metric.MeterProvider) (*instruments, error) {
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	i := &instruments{meter: provider.Meter(scopeName)}
	var errs [10]error
	counter := func(n int, name, unit, description string) (c metric.Int64Counter) {
		c, errs[n] = i.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		return c
	}
	gauge := func(n int, name, unit, description string) (g metric.Int64ObservableGauge) {
		g, errs[n] = i.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
		return g
	}
	seconds := func(n int, name, description string) (g metric.Float64ObservableGauge) {
		g, errs[n] = i.meter.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(description))
		return g
	}
	i.attempts = counter(0, "ratelimit.webhook.attempts", "{attempt}", "Attempts to bring a message to an endpoint, by what they came to.")
	i.died = counter(1, "ratelimit.webhook.died", "{message}", "Messages that are tried no more.")
	i.put = counter(2, "ratelimit.webhook.messages", "{message}", "Messages that were put before endpoints.")
	i.missed = counter(3, "ratelimit.webhook.dropped", "{message}", "Messages that no endpoint was given, by why.")
	i.waiting = gauge(4, "ratelimit.webhook.waiting", "{message}", "Messages that wait, in the database.")
	i.dead = gauge(5, "ratelimit.webhook.dead", "{message}", "Messages that are tried no more, and can be replayed.")
	i.endpoints = gauge(6, "ratelimit.webhook.endpoints", "{endpoint}", "Endpoints, by whether they get events.")
	i.oldest = seconds(7, "ratelimit.webhook.oldest", "For how long the oldest message waits. 0 if none waits.")
	i.late = seconds(8, "ratelimit.webhook.late", "For how long a message waits for an attempt that is due. 0 if none does.")
	i.behind = seconds(9, "ratelimit.webhook.behind", "For how long the streams of the instances were not read to their end.")
	i.readAt.Store(time.Now().UnixNano())
	return i, errors.Join(errs[:]...)
}

func (i *instruments) attempt(ctx context.Context, r delivery.Record, result webhook.Result) {
	i.attempts.Add(ctx, 1, metric.WithAttributes(attribute.String("ratelimit.webhook.outcome", string(result.Outcome))))
	if r.Delivery.State == webhook.Dead {
		i.died.Add(ctx, 1)
	}
}

func (i *instruments) took(ctx context.Context, in store.Intake) {
	i.put.Add(ctx, int64(in.Put))
	if in.Full > 0 {
		i.missed.Add(ctx, int64(in.Full), metric.WithAttributes(attribute.String("ratelimit.webhook.reason", "full")))
	}
}

func (i *instruments) unread(ctx context.Context) {
	i.missed.Add(ctx, 1, metric.WithAttributes(attribute.String("ratelimit.webhook.reason", "unreadable")))
}

func (i *instruments) read(at time.Time) { i.readAt.Store(at.UnixNano()) }

// totalsFor is for how long what was read from the database holds.
const totalsFor = 5 * time.Second

// totals are those of the database, read at most every few seconds.
type totals struct {
	mu   sync.Mutex
	at   time.Time
	read store.WebhookTotals
	err  error
}

func (t *totals) get(ctx context.Context, db *store.DB, now time.Time) (store.WebhookTotals, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at.IsZero() || now.Sub(t.at) >= totalsFor {
		t.at = now
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
	state := func(name string) metric.MeasurementOption {
		return metric.WithAttributes(attribute.String("ratelimit.webhook.state", name))
	}
	since := func(at, now time.Time) float64 {
		if at.IsZero() {
			return 0
		}
		return max(0, now.Sub(at).Seconds())
	}
	reading, err := i.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		now := time.Now()
		o.ObserveFloat64(i.behind, since(time.Unix(0, i.readAt.Load()), now))
		t, err := kept.get(ctx, d.cfg.Store, now)
		if err != nil {
			return err
		}
		o.ObserveInt64(i.waiting, t.Waiting)
		o.ObserveInt64(i.dead, t.Dead)
		o.ObserveInt64(i.endpoints, t.Enabled, state("enabled"))
		o.ObserveInt64(i.endpoints, t.Disabled, state("disabled"))
		o.ObserveFloat64(i.oldest, since(t.Oldest, now))
		o.ObserveFloat64(i.late, since(t.Due, now))
		return nil
	}, i.waiting, i.dead, i.endpoints, i.oldest, i.late, i.behind)
	if err != nil {
		// Who has no metrics delivers all the same.
		d.cfg.Logger.Error("dispatch: there are no gauges", slog.Any("error", err))
		return func() {}
	}
	return func() { _ = reading.Unregister() }
}
