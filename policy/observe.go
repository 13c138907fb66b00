package policy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
)

// scopeName is the instrumentation scope of the metrics.
const scopeName = "github.com/gqlgen-ratelimit/ratelimit/policy"

// The attributes of the metrics. None has a value that the author of a policy chooses.
const (
	attrName   = "ratelimit.policy.name"
	attrState  = "ratelimit.policy.state"
	attrResult = "ratelimit.policy.result"
)

// resultApplied is the result of a revision that holds; the others are those of [Reason].
const resultApplied = "applied"

// teller tells operators what a follower does. What is to be told is queued by whoever holds the follower's lock, and
// told by flush without it.
type teller struct {
	name     string
	logger   *slog.Logger
	observer event.Observer
	provider metric.MeterProvider

	changes metric.Int64Counter
	reading metric.Registration

	// telling is held by whoever tells, so that one call of the observer ends before the next.
	telling sync.Mutex
	// started says that the start has succeeded. Why one has failed is its error, and told by nobody else.
	started bool
	mu      sync.Mutex
	queue   []event.Event
}

func newTeller(cfg *ObserveConfig) *teller {
	t := &teller{name: cfg.Name, logger: cfg.Logger, observer: cfg.Observer, provider: cfg.MeterProvider}
	if t.provider == nil {
		t.provider = otel.GetMeterProvider()
	}
	return t
}

// applied queues that a policy holds.
func (t *teller) applied(c *candidate, at time.Time, again bool) {
	e := event.PolicyApplied{At: at, Policy: t.name, Origin: c.origin, Again: again}
	if r := c.revision; r != nil {
		e.Revision, e.Hash, e.Author, e.Reason, e.Published = r.Number, r.Hash.String(), r.Author, r.Reason, r.Published
	}
	t.enqueue(e)
}

// refused queues that a revision is refused.
func (t *teller) refused(r *RefusedError, holds uint64, at time.Time) {
	t.enqueue(event.PolicyRefused{
		At: at, Policy: t.name, Revision: r.Revision.Number, Hash: r.Revision.Hash.String(),
		Cause: string(r.Reason), Error: errorText(r.Err, maxToldText), Holds: holds,
	})
}

// state queues that the state is another one than it was, or that the policy is kept on the disk no longer or again.
func (t *teller) state(was string, s *Status, now time.Time) {
	t.enqueue(event.PolicyState{
		At: now, Policy: t.name, From: was, To: s.State.String(), Age: s.Age(now), Revision: s.Number, Error: s.Failure, Unsaved: s.Unsaved,
	})
}

func (t *teller) enqueue(e event.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue = append(t.queue, e)
}

func (t *teller) next() (e event.Event, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) == 0 {
		return nil, false
	}
	e, t.queue = t.queue[0], t.queue[1:]
	return e, true
}

// start begins to tell.
func (t *teller) start(ctx context.Context) {
	t.telling.Lock()
	t.started = true
	t.telling.Unlock()
	t.flush(ctx)
}

// flush tells what is queued, in order.
func (t *teller) flush(ctx context.Context) {
	t.telling.Lock()
	defer t.telling.Unlock()
	for t.started {
		e, found := t.next()
		if !found {
			return
		}
		t.count(ctx, e)
		guard.Run(ctx, t.logger, "Config.Observe.Observer", func() { t.observer.Observe(ctx, e) })
	}
}

func (t *teller) count(ctx context.Context, e event.Event) {
	result := ""
	switch e := e.(type) {
	case event.PolicyApplied:
		if !e.Again {
			result = resultApplied
		}
	case event.PolicyRefused:
		result = e.Cause
	default:
	}
	if result != "" && t.changes != nil {
		t.changes.Add(ctx, 1, metric.WithAttributes(t.labels(attribute.String(attrResult, result))...))
	}
}

// labels are the attributes with the name of the follower, if it has one.
func (t *teller) labels(more ...attribute.KeyValue) []attribute.KeyValue {
	if t.name != "" {
		more = append(more, attribute.String(attrName, t.name))
	}
	return more
}

// prepare makes the counter, which counts from the start on.
func (t *teller) prepare() (err error) {
	t.changes, err = t.provider.Meter(scopeName).Int64Counter("ratelimit.policy.changes", metric.WithUnit("{revision}"),
		metric.WithDescription("Revisions of the policy that were applied, and those that were refused by reason."))
	if err != nil {
		return fmt.Errorf("policy: the meter provider: %w", err)
	}
	return nil
}

// observe has the status read whenever metrics are collected.
func (t *teller) observe(status func() Status) error {
	meter := t.provider.Meter(scopeName)
	gauge := func(name, unit, description string) (metric.Int64ObservableGauge, error) {
		return meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
	}
	age, err1 := meter.Float64ObservableGauge("ratelimit.policy.age", metric.WithUnit("s"),
		metric.WithDescription("For how long the feed has not said that this instance is in step with it."))
	revision, err2 := gauge("ratelimit.policy.revision", "{revision}", "Number of the revision that holds, 0 for a policy that is of no feed.")
	rejected, err3 := gauge("ratelimit.policy.rejected", "{revision}", "Number of the newest revision of the feed if it is refused, else 0.")
	state, err4 := gauge("ratelimit.policy.state", "{instance}", "1 for the state that this instance is in, 0 for the others.")
	err := errors.Join(err1, err2, err3, err4)
	if err == nil {
		t.reading, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
			s := status()
			named := metric.WithAttributes(t.labels()...)
			o.ObserveFloat64(age, s.Age(time.Now()).Seconds(), named)
			o.ObserveInt64(revision, int64(min(s.Number, math.MaxInt64)), named)
			o.ObserveInt64(rejected, int64(min(s.rejected(), math.MaxInt64)), named)
			for _, one := range [...]State{Never, Current, Stale} {
				is := int64(0)
				if one == s.State {
					is = 1
				}
				o.ObserveInt64(state, is, metric.WithAttributes(t.labels(attribute.String(attrState, one.String()))...))
			}
			return nil
		}, age, revision, rejected, state)
	}
	if err != nil {
		return fmt.Errorf("policy: the meter provider: %w", err)
	}
	return nil
}

// close has the status read no more.
func (t *teller) close() {
	if t.reading != nil {
		// It only fails where there is nothing to unregister.
		_ = t.reading.Unregister()
	}
}
