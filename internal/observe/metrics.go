package observe

import (
	"context"

	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
)

// metrics are the instruments.
type metrics struct {
	sets sets

	decisions, charges, candidates metric.Int64Counter
	costs                          metric.Int64Histogram

	tenantDecisions, tenantPoints, operationDecisions metric.Int64Counter
	retriedEarly                                      metric.Int64Counter

	used                         metric.Float64Histogram
	exceeded, crossings, refused metric.Int64Counter
	untold, untoldFacts          metric.Int64Counter

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

		tenantDecisions: m.counter("ratelimit.tenant.decisions", "{decision}", "Decisions by outcome, of the tenants that metrics name."),
		tenantPoints: m.counter("ratelimit.tenant.points", "{point}",
			"Points that operations of the tenants which metrics name were charged before they ran."),
		operationDecisions: m.counter("ratelimit.operation.decisions", "{decision}",
			"Decisions by outcome, of the operations that metrics name."),
		retriedEarly: m.counter("ratelimit.retried_early", "{decision}",
			"Refusals of clients that were told to come back later and have not waited."),

		used: m.histogram("ratelimit.limit.used", "1",
			"Share that is used of the limit with the smallest remaining share, after a decision.",
			.1, .25, .5, .7, .8, .9, .95, .99, 1),
		exceeded: m.counter("ratelimit.limit.exceeded", "{decision}",
			"Decisions for which a limit did not have the amount, by its mode."),
		crossings: m.counter("ratelimit.limit.crossings", "{crossing}",
			"Thresholds that the used share of a limit has risen over."),
		untold: m.counter("ratelimit.refusals.untold", "{refusal}",
			"Refusals that no event and no line tells of one by one, because there were too many."),
		untoldFacts: m.counter("ratelimit.events.untold", "{event}",
			"Events about limits that were not told: too many in a second (rate), or no room to remember them (room)."),
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
func (r *Reporter) decided(ctx context.Context, d *decision.Decision) {
	m := r.metrics
	if m.decisions.Enabled(ctx) || m.costs.Enabled(ctx) {
		set := m.sets.of(&decisionLabels, string(d.Outcome), d.Tier, d.Mode.String(), string(d.Kind))
		m.decisions.Add(ctx, 1, set)
		if d.Kind != "" {
			m.costs.Record(ctx, d.Points, set)
		}
	}
	if r.tenants != nil && (m.tenantDecisions.Enabled(ctx) || m.tenantPoints.Enabled(ctx)) {
		tenant := r.tenants.name(d.Subject.Tenant)
		sets := r.tenants.sets.Load()
		m.tenantDecisions.Add(ctx, 1, sets.of(&tenantLabels, tenant, string(d.Outcome)))
		m.tenantPoints.Add(ctx, d.Charged, sets.of(&tenantPointLabels, tenant))
	}
	if len(r.operations) > 0 && m.operationDecisions.Enabled(ctx) {
		m.operationDecisions.Add(ctx, 1, m.sets.of(&operationLabels, r.operationName(d), string(d.Outcome)))
	}
}

// operationName is what metrics call the operation, where they name some.
func (r *Reporter) operationName(d *decision.Decision) string {
	if r.operations[d.Name] {
		return boundedName(d.Name)
	}
	return otherOperations
}

// limit returns the set by which a limit is counted, with the threshold that it has crossed, zero if none.
func (m *metrics) limit(tier string, l *bucket.LimitState, threshold float64) metric.MeasurementOption {
	return m.sets.above(threshold, &limitLabels, l.Limit.Name, l.Owner.Level.String(), tier, l.Limit.Mode.String())
}

// severalRoots stands for the root fields of an operation that selects more than one.
const severalRoots = "several"

// otherOperations stands for all operations that metrics do not name.
const otherOperations = "other"

// ReadsSpent reports whether [Reporter.Spent] tells anybody.
func (r *Reporter) ReadsSpent(ctx context.Context) bool {
	m := r.metrics
	return m.actual.Enabled(ctx) || m.estimated.Enabled(ctx) || m.difference.Enabled(ctx)
}

// Spent compares what an operation that ran to its end was estimated at with what it came to, so that a team sees which
// weights and assumed sizes are wrong. Both are points, of a subscription for as many events as it had.
func (r *Reporter) Spent(ctx context.Context, d *decision.Decision, estimated, actual int64) {
	if !r.ReadsSpent(ctx) {
		return
	}
	m := r.metrics
	root, name := severalRoots, ""
	if len(d.RootFields) == 1 {
		root = d.RootFields[0]
	}
	if len(r.operations) > 0 {
		name = r.operationName(d)
	}
	set := m.sets.of(&spentLabels, string(d.Kind), root, name)
	m.estimated.Record(ctx, estimated, set)
	m.actual.Record(ctx, actual, set)
	// Both are at most 2^53, so the difference is exact.
	m.difference.Record(ctx, estimated-actual, set)
}
