package ratelimit

import (
	"context"
	"errors"

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
	if d.Subject.Exempt || d.Rules.Mode != bucket.Enforce || how.Acts == tiers.ThrottleNone {
		// Count it; this tier is never shed.
		op.load = load{weighed: true, order: how.Order, floor: percent, points: d.Points}
		t.Weigh(order, 1, d.Points)
		return false
	}
	op.load = load{order: how.Order, floor: how.Floor, points: d.Points}
	verdict := t.Offer(voiceOf(&d.Subject), order, floor, d.Points)
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
	t.Withdraw(voiceOf(&op.decision.Subject), int(l.order), floor, l.points)
}

// start has the throttle know that an operation begins, once. What is returned is zero if there is nothing to end.
func (e *Extension) start(op *operation) throttle.Start {
	t := e.cfg.Throttle.Throttle
	if t == nil || op.begun || op.decision.Kind == ast.Subscription {
		return throttle.Start{}
	}
	op.begun = true
	return t.Begin(voiceOf(&op.decision.Subject))
}

// end has the throttle know that the first answer of an operation is ready, or that it broke without one.
func (e *Extension) end(ctx context.Context, start throttle.Start, response *graphql.Response, broke bool) {
	if start != (throttle.Start{}) {
		e.cfg.Throttle.Throttle.End(start, e.failed(ctx, response, broke))
	}
}

// failed reports whether an operation has failed by the server: by its answer, or because it broke without one.
func (e *Extension) failed(ctx context.Context, response *graphql.Response, broke bool) (failed bool) {
	// Whoever goes before the answer is there cancels what runs for it. A deadline is the server's own.
	if errors.Is(ctx.Err(), context.Canceled) {
		return false
	}
	if response == nil {
		return broke
	}
	if e.cfg.Throttle.Failed == nil {
		return len(response.Errors) > 0 && (len(response.Data) == 0 || string(response.Data) == "null")
	}
	guard.Run(ctx, e.cfg.Observe.Logger, "Config.Throttle.Failed", func() { failed = e.cfg.Throttle.Failed(response) })
	return failed
}
