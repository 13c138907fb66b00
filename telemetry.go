package ratelimit

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
)

// scopeName is the instrumentation scope of spans and metrics.
const scopeName = "github.com/gqlgen-ratelimit/ratelimit"

// Names of the attributes. Only tenant has values that the operator's customers choose, so metrics
// carry it by opt-in only.
const (
	attrOutcome   = "ratelimit.outcome"
	attrTier      = "ratelimit.tier"
	attrMode      = "ratelimit.mode"
	attrTenant    = "ratelimit.tenant"
	attrCost      = "ratelimit.cost"
	attrCharged   = "ratelimit.charged"
	attrRemaining = "ratelimit.remaining"
	attrStore     = "ratelimit.store.duration"
	attrCall      = "ratelimit.store.call"
	attrResult    = "ratelimit.store.result"
	// attrStoreName is that of a store of Config.Stores; the default one has none.
	attrStoreName = "ratelimit.store.name"
	attrUnit      = "ratelimit.unit"
	attrOperation = "graphql.operation.type"
	attrName      = "graphql.operation.name"
	attrRoot      = "ratelimit.root_field"
	// attrRefusal is the id that the client of a refusal was given. Only spans have it.
	attrRefusal = "ratelimit.refusal.id"
	// attrWouldRefuse is the code that an operation which ran would have been refused with.
	attrWouldRefuse = "ratelimit.would_refuse"
)

// telemetry holds the instruments of one extension.
type telemetry struct {
	tracer    trace.Tracer
	decisions metric.Int64Counter
	charges   metric.Int64Counter
	costs     metric.Int64Histogram
	latency   metric.Float64Histogram
	failures  metric.Int64Counter
	away      metric.Float64Counter
	// spared counts what was decided without asking the store.
	spared metric.Int64Counter
	limits *limitMetrics
	// withoutStore counts what is decided while the store is away.
	withoutStore *awayMetrics
	// candidates counts what candidates would have decided.
	candidates metric.Int64Counter
	tenants    *tenantNames
	spending   actualCosts
	// settlements count what becomes of charges.
	settlements settlementMetrics
	// attributes caches the attribute sets, whose number is bounded: outcomes × tiers × modes ×
	// operation types × named tenants.
	attributes sync.Map
}

// costBuckets are the boundaries of histograms of points.
var costBuckets = metric.WithExplicitBucketBoundaries(0, 1, 2, 5, 10, 20, 50, 100, 200, 500,
	1000, 2000, 5000, 10_000, 100_000, 1_000_000)

func newTelemetry(cfg TelemetryConfig) (*telemetry, error) {
	tracers, meters := cfg.TracerProvider, cfg.MeterProvider
	if tracers == nil {
		tracers = otel.GetTracerProvider()
	}
	if meters == nil {
		meters = otel.GetMeterProvider()
	}
	meter := meters.Meter(scopeName)
	t := &telemetry{tracer: tracers.Tracer(scopeName), tenants: newTenantNames(cfg.Tenants, cfg.TopTenants)}

	var errs [11]error
	t.withoutStore, errs[10] = newAwayMetrics(meter)
	t.spending, errs[6] = newActualCosts(meter, cfg.Operations)
	t.settlements, errs[9] = newSettlementMetrics(meter)
	t.limits, errs[7] = newLimitMetrics(meter)
	t.candidates, errs[8] = meter.Int64Counter("ratelimit.candidate.decisions",
		metric.WithUnit("{decision}"), metric.WithDescription("Decisions beside which a candidate policy was judged, by both outcomes."))
	t.decisions, errs[0] = meter.Int64Counter("ratelimit.decisions",
		metric.WithUnit("{decision}"), metric.WithDescription("Decisions by outcome, tier and mode."))
	t.charges, errs[5] = meter.Int64Counter("ratelimit.charges",
		metric.WithUnit("{charge}"), metric.WithDescription("Charges by resolvers, by outcome, tier, mode and unit."))
	t.costs, errs[1] = meter.Int64Histogram("ratelimit.operation.cost",
		metric.WithUnit("{point}"), metric.WithDescription("Static cost of operations."), costBuckets)
	t.latency, errs[2] = meter.Float64Histogram("ratelimit.store.duration",
		metric.WithUnit("s"), metric.WithDescription("Duration of store calls."),
		metric.WithExplicitBucketBoundaries(.00001, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1))
	t.failures, errs[3] = meter.Int64Counter("ratelimit.store.errors",
		metric.WithUnit("{error}"), metric.WithDescription("Store calls that failed."))
	t.spared, errs[9] = meter.Int64Counter("ratelimit.store.spared",
		metric.WithUnit("{take}"), metric.WithDescription("Takes that were refused without asking the store."))
	t.away, errs[4] = meter.Float64Counter("ratelimit.store.away",
		metric.WithUnit("s"), metric.WithDescription("Time between the first failed store call and the next that succeeds."))
	return t, errors.Join(errs[:]...)
}

// start opens the span of a decision.
func (t *telemetry) start(ctx context.Context) (context.Context, trace.Span) {
	return t.tracer.Start(ctx, "ratelimit.decide") //nolint:spancheck // end closes it
}

// end closes the span and counts the decision. kind is empty for a document that did not validate.
func (t *telemetry) end(ctx context.Context, span trace.Span, d *Decision, kind ast.Operation) {
	if span.IsRecording() {
		span.SetAttributes(
			attribute.String(attrOutcome, string(d.Outcome)),
			attribute.String(attrTenant, boundedName(d.Subject.Tenant)),
			attribute.String(attrTier, d.Tier),
			attribute.String(attrMode, d.Mode.String()),
			attribute.Int64(attrCost, d.Points),
			attribute.Int64(attrCharged, d.Charged),
			attribute.Float64(attrStore, d.StoreDuration.Seconds()),
		)
		if tightest := d.tightest(); tightest != nil {
			span.SetAttributes(attribute.Int64(attrRemaining, tightest.Remaining))
		}
		if d.Refusal != nil {
			span.SetAttributes(attribute.String(attrRefusal, d.Refusal.ID))
		}
		if d.WouldRefuse != nil {
			span.SetAttributes(attribute.String(attrWouldRefuse, d.WouldRefuse.Code))
		}
		if d.StoreErr != nil {
			span.SetStatus(codes.Error, storeResult(d.StoreErr))
		}
	}
	span.End()
	if !t.decisions.Enabled(ctx) && !t.costs.Enabled(ctx) {
		return
	}
	set := t.decisionSet(d, kind)
	t.decisions.Add(ctx, 1, set)
	if kind != "" {
		t.costs.Record(ctx, d.Points, set)
	}
}

// decisionAttributes are what decisions are counted by.
type decisionAttributes struct {
	outcome Outcome
	tier    string
	mode    bucket.Mode
	kind    ast.Operation
	tenant  string
}

func (t *telemetry) decisionSet(d *Decision, kind ast.Operation) metric.MeasurementOption {
	key := decisionAttributes{outcome: d.Outcome, tier: d.Tier, mode: d.Mode, kind: kind}
	if t.tenants != nil {
		key.tenant = t.tenants.name(d.Subject.Tenant)
	}
	if cached, ok := t.cached(key); ok {
		return cached
	}
	attributes := []attribute.KeyValue{
		attribute.String(attrOutcome, string(key.outcome)),
		attribute.String(attrTier, key.tier),
		attribute.String(attrMode, key.mode.String()),
		attribute.String(attrOperation, string(kind)),
	}
	if t.tenants != nil {
		attributes = append(attributes, attribute.String(attrTenant, key.tenant))
	}
	option := metric.WithAttributeSet(attribute.NewSet(attributes...))
	t.attributes.Store(key, option)
	return option
}

// chargeAttributes are what charges by resolvers are counted by.
type chargeAttributes struct {
	outcome Outcome
	tier    string
	mode    bucket.Mode
	unit    bucket.Unit
}

// charged counts a charge by a resolver.
func (t *telemetry) charged(ctx context.Context, d *Decision, unit bucket.Unit, outcome Outcome) {
	if !t.charges.Enabled(ctx) {
		return
	}
	key := chargeAttributes{outcome: outcome, tier: d.Tier, mode: d.Mode, unit: unit}
	option, ok := t.cached(key)
	if !ok {
		option = metric.WithAttributeSet(attribute.NewSet(
			attribute.String(attrOutcome, string(outcome)),
			attribute.String(attrTier, d.Tier),
			attribute.String(attrMode, d.Mode.String()),
			attribute.String(attrUnit, boundedName(string(unit)))))
		t.attributes.Store(key, option)
	}
	t.charges.Add(ctx, 1, option)
}

// stored measures one call of the store. away is for how long it was away and was not counted before.
func (t *telemetry) stored(ctx context.Context, store, call string, took, away time.Duration, err error) {
	if !errors.Is(err, bucket.ErrInvalid) && t.away.Enabled(ctx) {
		// Zeros tell readers that the counter exists.
		t.away.Add(ctx, away.Seconds(), t.storeSet(store, "", ""))
	}
	if !t.latency.Enabled(ctx) && !t.failures.Enabled(ctx) {
		return
	}
	set := t.storeSet(store, call, storeResult(err))
	t.latency.Record(ctx, took.Seconds(), set)
	if err != nil {
		t.failures.Add(ctx, 1, set)
	}
}

func (t *telemetry) cached(key any) (metric.MeasurementOption, bool) {
	value, _ := t.attributes.Load(key)
	option, ok := value.(metric.MeasurementOption)
	return option, ok
}

// storeCall is what calls of stores are measured by.
type storeCall struct{ store, call, result string }

// storeSet returns the attributes of a call of a store, or of the store alone.
func (t *telemetry) storeSet(store, call, result string) metric.MeasurementOption {
	key := storeCall{store, call, result}
	if cached, ok := t.cached(key); ok {
		return cached
	}
	var attributes []attribute.KeyValue
	if call != "" {
		attributes = append(attributes, attribute.String(attrCall, call), attribute.String(attrResult, result))
	}
	option := metric.WithAttributeSet(attribute.NewSet(storeAttributes(store, attributes...)...))
	t.attributes.Store(key, option)
	return option
}

// storeAttributes adds the name of the store, if it has one.
func storeAttributes(store string, attributes ...attribute.KeyValue) []attribute.KeyValue {
	if store != "" {
		attributes = append(attributes, attribute.String(attrStoreName, store))
	}
	return attributes
}

func storeResult(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, bucket.ErrAmbiguous):
		return "ambiguous"
	case errors.Is(err, bucket.ErrInvalid):
		return "invalid"
	case errors.Is(err, redisclient.ErrBreakerOpen):
		return "breaker_open"
	default:
		return "unavailable"
	}
}

// boundedName keeps a name from outside short enough for an attribute, and valid UTF-8, without which
// exporters drop whole batches.
func boundedName(name string) string {
	return cutName(name, 64)
}

func cutName(name string, longest int) string {
	if len(name) > longest {
		name = name[:longest]
	}
	return strings.ToValidUTF8(name, "?")
}
