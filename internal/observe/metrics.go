package observe

import (
	"context"

	"github.com/vektah/gqlparser/v2/ast"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
)

// metrics are the instruments.
type metrics struct {
	sets sets

	decisions, charges, candidates metric.Int64Counter
	costs                          metric.Int64Histogram

	used                         metric.Float64Histogram
	exceeded, crossings, refused metric.Int64Counter

	estimated, actual, difference metric.Int64Histogram

	settlements, refunded, excess metric.Int64Counter

	latency                                    metric.Float64Histogram
	failures, spared, awayPoints, localSettled metric.Int64Counter
	away                                       metric.Float64Counter
}

func newMetrics(m *meter) *metrics {
	bounds := []float64{0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 100_000, 1_000_000}
	return &metrics{
		decisions: m.counter("ratelimit.decisions", "{decision}", "Decisions by outcome, tier and mode."),
		charges:   m.counter("ratelimit.charges", "{charge}", "Charges by resolvers, by outcome, tier, mode and unit."),
		candidates: m.counter("ratelimit.candidate.decisions", "{decision}",
			"Decisions beside which a candidate policy was judged, by both outcomes."),
		costs: m.points("ratelimit.operation.cost", "Static cost of operations.", bounds...),

		used: m.histogram("ratelimit.limit.used", "1",
			"Share that is used of the limit with the smallest remaining share, after a decision.",
			.1, .25, .5, .7, .8, .9, .95, .99, 1),
		exceeded: m.counter("ratelimit.limit.exceeded", "{decision}",
			"Decisions for which a limit did not have the amount, by its mode."),
		crossings: m.counter("ratelimit.limit.crossings", "{crossing}",
			"Thresholds that the used share of a limit has risen over."),
		refused: m.counter("ratelimit.tenant.refused_repeatedly", "{tenant}", "Tenants that kept being refused."),

		estimated: m.points("ratelimit.operation.estimated_cost",
			"Estimated cost of operations that ran to their end; of a subscription for as many events as it had.", bounds...),
		actual: m.points("ratelimit.operation.actual_cost",
			"Actual cost of the same operations, priced from their responses.", bounds...),
		difference: m.points("ratelimit.operation.cost_difference",
			"Estimated less actual cost of the same operations. "+
				"It is negative where a response has more than the declared sizes allow.",
			-1000, -100, -10, -1, 0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000, 100_000),

		settlements: m.counter("ratelimit.settlements", "{settlement}",
			"Charges that were to be corrected, by reason and by what became of it."),
		refunded: m.counter("ratelimit.refunded", "{point}",
			"Points that were given back, at most what was still owed, by reason."),
		excess: m.counter("ratelimit.excess", "{point}",
			"Points that were charged on because operations came to more than their estimate."),

		latency: m.histogram("ratelimit.store.duration", "s", "Duration of store calls.",
			.00001, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1),
		failures: m.counter("ratelimit.store.errors", "{error}", "Store calls that failed."),
		spared:   m.counter("ratelimit.store.spared", "{take}", "Takes that were refused without asking the store."),
		away: m.seconds("ratelimit.store.away",
			"Time between the first failed store call and the next that succeeds."),
		awayPoints: m.counter("ratelimit.store.away.points", "{point}",
			"Points of operations that were decided without the store, by outcome."),
		localSettled: m.counter("ratelimit.local.settled", "1",
			"What the store was charged for what was admitted without it, by limit."),
	}
}

// decided counts a decision. Its kind is empty for a document that did not validate, which has no cost.
func (m *metrics) decided(ctx context.Context, d *decision.Decision, tenants *tenantNames) {
	if !m.decisions.Enabled(ctx) && !m.costs.Enabled(ctx) {
		return
	}
	key := decisionKey{outcome: d.Outcome, tier: d.Tier, mode: d.Mode, kind: d.Kind}
	if tenants != nil {
		key.tenant, key.named = tenants.name(d.Subject.Tenant), true
	}
	set := of(&m.sets, key)
	m.decisions.Add(ctx, 1, set)
	if d.Kind != "" {
		m.costs.Record(ctx, d.Points, set)
	}
}

type decisionKey struct {
	outcome decision.Outcome
	tier    string
	mode    bucket.Mode
	kind    ast.Operation
	tenant  string
	named   bool
}

func (k decisionKey) attributes() []attribute.KeyValue {
	attributes := []attribute.KeyValue{
		attribute.String(attrOutcome, string(k.outcome)), attribute.String(attrTier, k.tier),
		attribute.String(attrMode, k.mode.String()), attribute.String(attrOperation, string(k.kind)),
	}
	if k.named {
		attributes = append(attributes, attribute.String(attrTenant, k.tenant))
	}
	return attributes
}

func (m *metrics) charged(ctx context.Context, d *decision.Decision, unit bucket.Unit) {
	if m.charges.Enabled(ctx) {
		m.charges.Add(ctx, 1, of(&m.sets, chargeKey{d.Outcome, d.Tier, d.Mode, unit}))
	}
}

type chargeKey struct {
	outcome decision.Outcome
	tier    string
	mode    bucket.Mode
	unit    bucket.Unit
}

func (k chargeKey) attributes() []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String(attrOutcome, string(k.outcome)), attribute.String(attrTier, k.tier),
		attribute.String(attrMode, k.mode.String()), attribute.String(attrUnit, boundedName(string(k.unit))),
	}
}

type candidateKey struct {
	id            string
	outcome, also decision.Outcome
}

func (k candidateKey) attributes() []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String(attrCandidate, k.id), attribute.String(attrOutcome, string(k.outcome)),
		attribute.String(attrCandidateOutcome, string(k.also)),
	}
}

// limitKey is what limits are counted by. The threshold is zero where there is none.
type limitKey struct {
	limit     string
	level     bucket.Level
	tier      string
	mode      bucket.Mode
	threshold float64
}

func limitKeyOf(tier string, l *bucket.LimitState) limitKey {
	return limitKey{limit: l.Limit.Name, level: l.Owner.Level, tier: tier, mode: l.Limit.Mode}
}

func (k limitKey) attributes() []attribute.KeyValue {
	attributes := []attribute.KeyValue{
		attribute.String(attrLimit, k.limit), attribute.String(attrLevel, k.level.String()),
		attribute.String(attrTier, k.tier), attribute.String(attrMode, k.mode.String()),
	}
	if k.threshold > 0 {
		attributes = append(attributes, attribute.Float64(attrThreshold, k.threshold))
	}
	return attributes
}

type tierKey struct{ tier string }

func (k tierKey) attributes() []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String(attrTier, k.tier)}
}

// severalRoots stands for the root fields of an operation that selects more than one.
const severalRoots = "several"

// otherOperations stands for all operations that metrics do not name.
const otherOperations = "other"

// Spent compares what an operation that ran to its end was estimated at with what it came to, so that a team sees which
// weights and assumed sizes are wrong. Both are points, of a subscription for as many events as it had.
func (r *Reporter) Spent(ctx context.Context, d *decision.Decision, estimated, actual int64) {
	m := r.metrics
	if !m.actual.Enabled(ctx) && !m.estimated.Enabled(ctx) && !m.difference.Enabled(ctx) {
		return
	}
	key := spentKey{kind: d.Kind, root: severalRoots}
	if len(d.RootFields) == 1 {
		key.root = d.RootFields[0]
	}
	if len(r.operations) > 0 {
		key.name = otherOperations
		if r.operations[d.Name] {
			key.name = d.Name
		}
	}
	set := of(&m.sets, key)
	m.estimated.Record(ctx, estimated, set)
	m.actual.Record(ctx, actual, set)
	// Both are at most 2^53, so the difference is exact.
	m.difference.Record(ctx, estimated-actual, set)
}

// spentKey is what actual costs are measured by: the fields of the root types, and the names on the list.
type spentKey struct {
	kind       ast.Operation
	root, name string
}

func (k spentKey) attributes() []attribute.KeyValue {
	attributes := []attribute.KeyValue{attribute.String(attrOperation, string(k.kind)), attribute.String(attrRoot, k.root)}
	if k.name != "" {
		attributes = append(attributes, attribute.String(attrName, boundedName(k.name)))
	}
	return attributes
}
