// Package observe tells operators what was decided and what stores did: by spans, by metrics, and by events to the
// observer of the server.
package observe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Config says who is told, and of what. Package ratelimit documents the fields in its ObserveConfig.
type Config struct {
	Logger *slog.Logger
	// TracerProvider and MeterProvider are the global ones if they are nil.
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
	Tenants        []string
	TopTenants     int
	Operations     []string
	RootSpan       bool
	// Observer is the Logger if it is nil, and then only of single refusals.
	Observer event.Observer
	// Refusals is negative where nobody is told of single refusals.
	Refusals       int
	TenantRefusals int
	Thresholds     []float64
	Admissions     float64
	// Facts is how many facts about limits are remembered.
	Facts int
	// RepeatedRefusals is negative where nobody is told of them.
	RepeatedRefusals int
	RepeatedWithin   time.Duration
}

// Reporter tells of decisions. It is safe for concurrent use.
type Reporter struct {
	cfg    Config
	tracer trace.Tracer
	// placeholder is what OpenTelemetry has in the place of a global provider as long as none is set, nil if it is not used.
	placeholder trace.TracerProvider
	metrics     *metrics
	meter       *meter
	tenants     *tenantNames
	// operations are the names that metrics carry.
	operations map[string]bool
	early      *early
	facts      facts
	refusals   *sample
	// keeper is told of single decisions.
	keeper event.Keeper
	// counter is told of all of them, nil if the observer does not count.
	counter event.Counter
}

// scopeName is the instrumentation scope of spans and metrics.
const scopeName = "github.com/gqlgen-ratelimit/ratelimit"

// New returns a reporter, of stores by their names. The error says which instruments the meter refused.
func New(cfg Config, stores map[string]bucket.Store) (*Reporter, error) {
	tracers, meters := cfg.TracerProvider, cfg.MeterProvider
	var placeholder trace.TracerProvider
	if tracers == nil {
		tracers = otel.GetTracerProvider()
		if isPlaceholder(tracers) {
			placeholder = tracers
		}
	}
	if meters == nil {
		meters = otel.GetMeterProvider()
	}
	r := &Reporter{
		cfg: cfg, tracer: tracers.Tracer(scopeName), placeholder: placeholder, tenants: newTenantNames(cfg.Tenants, cfg.TopTenants),
		operations: make(map[string]bool, len(cfg.Operations)), early: newEarly(), facts: newFacts(cfg.Facts),
		refusals: newSample(cfg.Refusals, cfg.TenantRefusals), keeper: event.NewLogger(cfg.Logger),
		counter: event.CounterOf(cfg.Observer),
	}
	if cfg.Observer != nil {
		r.keeper = event.All(cfg.Observer)
	}
	for _, name := range cfg.Operations {
		r.operations[name] = true
	}
	m := &meter{Meter: meters.Meter(scopeName)}
	r.meter, r.metrics = m, newMetrics(m)
	if counter, ok := cfg.Observer.(event.DropCounter); ok {
		m.observable("ratelimit.events.dropped", "{event}", "Events that the observer had no room for.", source{counter.Dropped, r.metrics.sets.of(&labels{})})
	}
	if evictions := r.evictions(stores); len(evictions) > 0 {
		m.observable("ratelimit.store.evicted", "{budget}",
			"Budgets that a store forgot for want of room, although something of them was spent: each is full again.", evictions...)
	}
	if err := errors.Join(m.errs...); err != nil {
		return nil, fmt.Errorf("ratelimit: the meter provider: %w", err)
	}
	return r, nil
}

// isPlaceholder reports whether a global provider is the one that OpenTelemetry has before another is set: its spans record
// nothing, and take memory all the same.
func isPlaceholder(tracers trace.TracerProvider) bool {
	t := reflect.TypeOf(tracers)
	return t.Kind() == reflect.Pointer && t.Elem().PkgPath() == "go.opentelemetry.io/otel/internal/global"
}

// Start opens the span of a decision, which [Reporter.Decided] closes. As long as nobody has set a provider there is none.
func (r *Reporter) Start(ctx context.Context) (context.Context, trace.Span) {
	if r.placeholder != nil && otel.GetTracerProvider() == r.placeholder {
		return ctx, noop.Span{}
	}
	return r.tracer.Start(ctx, "ratelimit.decide") //nolint:spancheck // Decided closes it
}

// Decided tells everybody of a decision about an operation: it closes the span, counts, and tells the observer what its
// limits came to and, of a sample of the refusals and of the rest, what was decided. It gives a refusal that somebody will
// find its id, and so comes before the answer.
func (r *Reporter) Decided(ctx context.Context, span trace.Span, d *decision.Decision) {
	id := r.identify(ctx, d, span.IsRecording() && span.SpanContext().IsSampled())
	r.endSpan(span, d)
	r.decided(ctx, d)
	r.retriedEarly(ctx, d)
	r.count(ctx, d)
	r.limits(ctx, d)
	r.candidate(ctx, d)
	r.event(ctx, d, false, id)
}

// Charged tells everybody of a charge inside an operation, which is a decision of its own.
func (r *Reporter) Charged(ctx context.Context, d *decision.Decision) {
	id := r.identify(ctx, d, false)
	r.limits(ctx, d)
	r.event(ctx, d, true, id)
}

// Counted counts a charge, of whomever: a resolver's, and those of this library for replays and stored answers.
func (r *Reporter) Counted(ctx context.Context, d *decision.Decision, unit bucket.Unit) {
	if r.metrics.charges.Enabled(ctx) {
		set := r.metrics.sets.of(&chargeLabels, string(d.Outcome), d.Tier, d.Mode.String(), boundedName(string(unit)))
		r.metrics.charges.Add(ctx, 1, set)
	}
}

// Stored tells what the limits of stored answers came to, which decides nothing about the operation.
func (r *Reporter) Stored(ctx context.Context, d *decision.Decision) { r.limits(ctx, d) }

// event tells the observer of a decision: of the refusals that were chosen, and a random share of the rest. A refusal that
// nobody has kept loses its id.
func (r *Reporter) event(ctx context.Context, d *decision.Decision, charge bool, id identity) {
	//nolint:gosec // a sample that could be foreseen does no harm
	admission := d.Refusal == nil && r.cfg.Observer != nil && r.cfg.Admissions > 0 && rand.Float64() < r.cfg.Admissions
	if !admission && !id.chosen {
		return
	}
	e := decidedEvent(d)
	e.Charge, e.Untold = charge, id.untold
	kept := false
	guard.Run(ctx, r.cfg.Logger, "Config.Observe.Observer", func() { kept = r.keeper.Keep(ctx, e) })
	if d.Refusal != nil && !kept && !id.found {
		d.Refusal.ID = ""
	}
}

// tell calls the observer.
func (r *Reporter) tell(ctx context.Context, e event.Event) {
	if r.cfg.Observer == nil {
		return
	}
	guard.Run(ctx, r.cfg.Logger, "Config.Observe.Observer", func() { r.cfg.Observer.Observe(ctx, e) })
}

// MarkRoot says in the span of a request what was decided about its operation.
func (r *Reporter) MarkRoot(request context.Context, d *decision.Decision) {
	if root := trace.SpanFromContext(request); root.IsRecording() {
		root.SetAttributes(attribute.String(attrOutcome, string(d.Outcome)), attribute.String(attrTier, d.Tier))
	}
}

// endSpan says in the span what was decided, and closes it.
func (r *Reporter) endSpan(span trace.Span, d *decision.Decision) {
	defer span.End()
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(
		attribute.String(attrOutcome, string(d.Outcome)),
		attribute.String(attrTenant, boundedName(d.Subject.Tenant)),
		attribute.String(attrTier, d.Tier),
		attribute.String(attrMode, d.Mode.String()),
		attribute.Int64(attrCost, d.Points),
		attribute.Int64(attrCharged, d.Charged),
		attribute.Float64(attrStore, d.StoreDuration.Seconds()),
	)
	if l := tightest(d); l != nil {
		span.SetAttributes(attribute.Int64(attrRemaining, l.Remaining))
	}
	if d.Refusal != nil {
		span.SetAttributes(attribute.String(attrRefusal, d.Refusal.ID))
	}
	if d.WouldRefuse != nil {
		span.SetAttributes(attribute.String(attrWouldRefuse, d.WouldRefuse.Outcome.Code()))
	}
	if d.StoreErr != nil {
		span.SetStatus(codes.Error, storeResult(d.StoreErr))
	}
}

// tightest returns the limit with the smallest remaining share of those that are not soft, nil if there is none.
func tightest(d *decision.Decision) *bucket.LimitState {
	return d.Tightest(func(l *bucket.LimitState) bool { return !l.Limit.Soft })
}

// boundedName keeps a name from outside short enough for an attribute, and valid UTF-8, without which
// exporters drop whole batches.
func boundedName(name string) string { return cutName(name, 64) }

// eventName keeps a name from outside as long as those that a policy can have, so that what waits in a
// channel is bounded: what it may be a part of, such as a header, does not wait with it.
func eventName(name string) string { return strings.Clone(cutName(name, tiers.MaxLongName)) }

func cutName(name string, longest int) string {
	if len(name) > longest {
		name = name[:longest]
	}
	return strings.ToValidUTF8(name, "?")
}
