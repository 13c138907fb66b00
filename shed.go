package ratelimit

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
	"github.com/gqlgen-ratelimit/ratelimit/throttle"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// ThrottleConfig says how load is shed while the servers are overloaded. The zero value sheds nothing.
//
// A policy says of each tier in which order, down to which floor and how it is shed (tiers.Throttle). Tiers in another mode than
// enforce are not shed, nor are subjects that are exempt and documents that did not validate.
type ThrottleConfig struct {
	// Throttle decides what is shed. Start its Run, and end it with its Shutdown: the extension does neither. Queries and
	// mutations tell it when they begin and when their first answer is ready. Nil sheds nothing.
	Throttle *throttle.Throttle
	// Failed says of the first answer of a query or a mutation whether it is an error of the server, as throttle.Config.Errors counts
	// them. One that panics is logged, and says no. Nil means an answer with errors and without data: set it where clients can cause those.
	// An operation whose client has gone has not failed, and is not asked about.
	Failed func(*graphql.Response) bool
}

// percent is a floor of 1.
const percent = 100

// shed refuses an operation for the load of the servers, and reports whether it has.
func (e *Extension) shed(op *operation) bool {
	t := e.cfg.Throttle.Throttle
	if t == nil {
		return false
	}
	d := &op.decision
	how := d.Rules.Throttle
	order, floor := int(how.Order), float64(how.Floor)/percent
	switch {
	case d.Subject.Exempt || d.Rules.Mode != bucket.Enforce || how.Acts == tiers.ThrottleNone:
		// It is load, of which nothing can be shed.
		op.load = load{weighed: true, order: how.Order, floor: percent, points: d.Points}
		t.Weigh(order, 1, d.Points)
		return false
	case how.Acts == tiers.ThrottleLimits:
		op.load = load{weighed: true, order: how.Order, floor: how.Floor, points: d.Points}
		op.shrink(t.Weigh(order, floor, d.Points))
		return false
	default:
	}
	op.load = load{order: how.Order, floor: how.Floor, points: d.Points}
	verdict := t.OfferAs(voiceOf(&d.Subject), d.Subject.Tenant, order, floor, d.Points)
	if verdict.Shed {
		d.Refuse(&decision.Refusal{Outcome: decision.Shed, RetryAfter: verdict.RetryAfter, ShedShare: verdict.Share})
	}
	return verdict.Shed
}

// anonymous is the voice of all whom nobody knows. No tenant has such a name.
const anonymous = "\x00anonymous"

// voiceOf is the name under which the throttle hears a subject. Who is known by an address alone can have as many tenants as addresses: all of them are heard as one.
func voiceOf(s *Subject) string {
	if s.Anonymous {
		return anonymous
	}
	return s.Tenant
}

// load is what the throttle has counted of an operation.
type load struct {
	points int64
	// weighed says that it could not be shed.
	weighed      bool
	order, floor uint8
}

// withdraw tells the throttle of an operation that it has not shed that it does not run: it is no load that could be shed in the place of others.
func (e *Extension) withdraw(op *operation) {
	t := e.cfg.Throttle.Throttle
	if t == nil {
		return
	}
	l, floor := &op.load, float64(op.load.floor)/percent
	if l.weighed {
		t.WithdrawWeight(int(l.order), floor, l.points)
		return
	}
	t.Withdraw(op.decision.Subject.Tenant, int(l.order), floor, l.points)
}

// shrink takes a share from the limits of the operation that come back within a minute.
func (op *operation) shrink(share float64) {
	if share <= 0 || len(op.decision.Rules.Buckets) == 0 {
		return
	}
	beside := op.withBeside()
	beside.sold, beside.soldShare = op.decision.Rules, share
	rules := op.decision.Rules.Shrunk(share)
	op.apply(&rules)
}

// Refusals for the load of the servers ask to wait for this long, and for up to so much more: those who are refused together must not come back together.
const (
	retryShrunk  = time.Second
	shrunkSpread = 3 * time.Second
)

// asSold returns what the store refuses by limits: what those refuse that would refuse as they were sold, or that the servers are overloaded if none would. What was
// spent is compared with what was sold, so that nothing more is asked of the store.
func (op *operation) asSold(refusal *decision.Refusal, limits []bucket.LimitState) *decision.Refusal {
	if refusal == nil || refusal.Limit == nil || op.beside == nil || op.beside.sold == nil {
		return refusal
	}
	var refusing []bucket.LimitState
	for i := range limits {
		l := &limits[i]
		if !decision.RefusesIn(bucket.Enforce, l) {
			continue
		}
		sold := soldAs(op.beside.sold, l)
		if l.Asked <= sold.Capacity-(l.Limit.Capacity-l.Remaining+l.Overdraft) {
			continue
		}
		one := *l
		if one.Never && one.Asked <= sold.Capacity {
			// It passes once the limit is as it was sold, and full again.
			one.Never, one.RetryAfter = false, one.ResetAfter
		}
		refusing = append(refusing, one)
	}
	if len(refusing) > 0 {
		return decision.RefusedBy(refusing)
	}
	wait := retryShrunk + rand.N(shrunkSpread) //nolint:gosec // It spreads load and is no secret.
	return &decision.Refusal{Outcome: decision.Shed, RetryAfter: wait.Truncate(time.Millisecond), ShedShare: op.beside.soldShare}
}

// soldAs returns a limit as the rules have it: as it is where they have none, and where an override record says what it is, whatever the load.
func soldAs(rules *tiers.Rules, l *bucket.LimitState) *bucket.Limit {
	for i := range rules.Buckets {
		b := &rules.Buckets[i]
		if l.Overridden || b.Owner != l.Owner {
			continue
		}
		all := b.Limits.All()
		for j := range all {
			if all[j].Name == l.Limit.Name && all[j].Unit == l.Limit.Unit {
				return &all[j]
			}
		}
	}
	return l.Limit
}

// run begins an operation that was admitted, and has the throttle know how long its first answer takes.
func (e *Extension) run(ctx context.Context, op *operation, next graphql.OperationHandler) graphql.ResponseHandler {
	t := e.cfg.Throttle.Throttle
	if t == nil || op.decision.Kind == ast.Subscription {
		return op.begin(ctx, next)
	}
	start := t.Begin(voiceOf(&op.decision.Subject))
	answers := op.begin(ctx, next)
	return func(ctx context.Context) *graphql.Response {
		response := answers(ctx)
		// Deferred parts, which come later, have a path.
		if response != nil && len(response.Path) == 0 {
			t.End(start, e.failed(ctx, response))
		}
		return response
	}
}

// begin begins an operation that was admitted.
func (op *operation) begin(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
	if op.claim == nil {
		return next(ctx)
	}
	return op.hold(ctx, next)
}

// failed reports whether an answer is an error of the server.
func (e *Extension) failed(ctx context.Context, response *graphql.Response) (failed bool) {
	// Whoever goes before the answer is there cancels what runs for it. A deadline is the server's own.
	if errors.Is(ctx.Err(), context.Canceled) {
		return false
	}
	if e.cfg.Throttle.Failed == nil {
		return len(response.Errors) > 0 && (len(response.Data) == 0 || string(response.Data) == "null")
	}
	guard.Run(ctx, e.cfg.Observe.Logger, "Config.Throttle.Failed", func() { failed = e.cfg.Throttle.Failed(response) })
	return failed
}
