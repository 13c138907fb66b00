package ratelimit

import (
	"cmp"
	"context"
	"errors"
	"math"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
)

// charged is what the take of an operation has charged for the operation itself. It is written before the
// operation runs.
type charged struct {
	// kept is the receipt, nil where nothing can correct the charge.
	kept   *bucket.Receipt
	points int64
	// limits has a bit for each limit, in the order of the decision, that was charged points.
	limits uint64
	// count is how many limits the decision had.
	count int32
	// bytes says that limits count what leaves, of which one byte was charged.
	bytes bool
	// counted says that what was admitted was counted as usage, which a settlement corrects although no limit was charged.
	counted bool
}

// corrects reports whether the tenant was charged anything to correct.
func (c *charged) corrects() bool { return c.limits != 0 || c.counted }

// receipt returns that of the charge. It is zero where nothing can correct it.
func (c *charged) receipt() bucket.Receipt {
	if c.kept == nil {
		return bucket.Receipt{}
	}
	return *c.kept
}

// correction is what is to become of a charge.
type correction struct {
	// points are given back to everybody who paid for the operation. They are charged on if negative. Zero leaves the charge as
	// it is.
	points int64
	// bytes are what the answers came to, 0 if no limit counts them.
	bytes  int64
	reason string
}

// none says that nothing is corrected.
func (c correction) none() bool { return c.points == 0 && c.bytes == 0 }

// Why a charge is corrected, in the words that metrics carry.
const (
	reasonActual = "actual"
	reasonExcess = "excess"
	reasonFailed = "failed"
	// reasonBytes: nothing but the bytes of the answers is charged on.
	reasonBytes = "bytes"
	// reasonRefused: a budget that all tenants share was charged for what the tenant's own then refused.
	reasonRefused = "refused"
	// reasonShared: shared budgets are corrected, beside what the tenant was charged.
	reasonShared = "shared"
	// reasonUnclaimed: nothing is corrected but the claim of a take whose reply was lost.
	reasonUnclaimed = "unclaimed"
)

// responses is what is known of the responses of an operation when it ends.
type responses struct {
	// spoiled says that something failed, whether or not one of them tells it, delivered that one had data.
	spoiled, delivered atomic.Bool
	// cut says that an answer was larger than it may be. What it came to is not known.
	cut atomic.Bool
	// finished says that the account of the operation is closed.
	finished atomic.Bool
	// count is how many there were that said anything.
	count atomic.Int64
	// forget ends the wait for a client that leaves in the middle of a stream.
	forget func() bool
}

// note takes in a response under its own context. An operation is not clean because nobody sees its errors: extensions take
// them out of responses, and without data it has failed.
func (r *responses) note(ctx context.Context, response *graphql.Response) {
	if response == nil {
		return
	}
	r.count.Add(1)
	data := hasData(response)
	if !data || len(response.Errors) > 0 || len(graphql.GetErrors(ctx)) > 0 {
		r.spoiled.Store(true)
	}
	if data {
		r.delivered.Store(true)
	}
}

// watching wraps the middleware of all fields, so that fields that fail are known although an error presenter hides it.
func (r *responses) watching(next graphql.FieldMiddleware) graphql.FieldMiddleware {
	return func(ctx context.Context, resolve graphql.Resolver) (result any, err error) {
		returned := false
		defer func() {
			if !returned || err != nil {
				r.spoiled.Store(true)
			}
		}()
		result, err = next(ctx, resolve)
		returned = true
		return result, err
	}
}

func hasData(response *graphql.Response) bool {
	return len(response.Data) > 0 && string(response.Data) != "null"
}

// actual adds up what one operation really costs, from its responses as they leave.
type actual struct {
	outline *cost.Outline
	tally   *cost.Tally
}

// finish closes the account of an operation, once: what it came to is measured, and its charge corrected. left
// says that the client has left a stream, of which nobody knows the rest.
func (e *Extension) finish(ctx context.Context, op *operation, left bool) {
	if !op.responses.finished.CompareAndSwap(false, true) {
		return
	}
	gone := errors.Is(ctx.Err(), context.Canceled)
	if ctx.Err() != nil {
		// Metrics take nothing under a context that has ended.
		ctx = context.WithoutCancel(ctx)
	}
	points, known := op.spent(ctx)
	estimate := op.charged.points
	if known {
		d := op.snapshot()
		estimate = op.estimate(ctx, &d)
		e.reporter.Spent(ctx, &d, estimate, points)
	}
	var c correction
	if op.corrects() {
		unused := int64(0)
		if known {
			unused = max(0, op.charged.points-points)
		}
		c = e.correction(op, unused, left, gone)
		switch excess := points - estimate; {
		case !known || c.points != 0:
		case excess > 0 && e.cfg.Settlement.ChargeExcess:
			c = correction{points: -excess, reason: reasonExcess}
		}
	}
	if op.charged.bytes {
		// One was charged before.
		c.bytes = max(1, op.size.left.Load()-op.stream.paidBytes())
		c.reason = cmp.Or(c.reason, reasonBytes)
	}
	if !c.none() && e.settle(ctx, op, c) {
		op.show(c)
	}
}

// correction decides what is given back of a charge of which some points were unused.
func (e *Extension) correction(op *operation, unused int64, left, gone bool) correction {
	s, stream := &e.cfg.Settlement, op.decision.Kind == ast.Subscription
	spoiled := op.responses.spoiled.Load()
	switch {
	case op.responses.cut.Load():
		return correction{}
	case left, stream && (gone || op.responses.count.Load() == 0):
		// Starting it, and the event that may have been in the making, are paid.
		return correction{}
	case spoiled && gone:
		// The client has left: who may break off for nothing can make the server work for nothing.
		return correction{}
	case spoiled && !op.responses.delivered.Load():
		return correction{points: shareOf(op.charged.points, s.FailedShare), reason: reasonFailed}
	case spoiled, !s.Refund:
		return correction{}
	default:
		return correction{points: unused, reason: reasonActual}
	}
}

// shareOf rounds down. Points are at most 2^53, which a float64 holds.
func shareOf(points int64, share float64) int64 {
	return int64(math.Floor(float64(points) * share))
}

// settle hands the correction to whoever settles. It returns false if nobody does.
func (e *Extension) settle(ctx context.Context, op *operation, c correction) bool {
	e.settleShared(ctx, op, c)
	if op.charged.limits == 0 && !op.charged.counted && c.bytes == 0 {
		// Nothing else was charged.
		return false
	}
	if op.claim != nil {
		return op.leaveToClaim(c)
	}
	settlement := op.worth(c)
	settlement.Receipt = settlement.Receipt.Clone()
	return op.store.Offer(ctx, settlement, c.reason, op.decision.Rules.Tier)
}

// leaveToClaim leaves the correction to the call that ends the claim. It returns false if that was made
// already, as it is with the first part of an answer in parts, which keeps its estimate.
func (op *operation) leaveToClaim(c correction) bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.claimEnded {
		return false
	}
	op.correction = &c
	return true
}

// show changes what clients are told into what the correction will lead to.
func (op *operation) show(c correction) {
	back, more := max(0, c.points), max(0, -c.points)
	if back == 0 && more == 0 || op.charged.limits == 0 {
		return
	}
	op.mu.Lock()
	defer op.mu.Unlock()
	d := &op.decision
	d.Refunded = back
	d.Charged += more
	if d.Openly > 0 {
		d.Openly += more
	}
	if len(d.Limits) != int(op.charged.count) {
		return
	}
	// Whoever has the decision from FromContext still reads the old ones.
	limits := append([]bucket.LimitState(nil), d.Limits...)
	for i := range limits {
		if op.charged.limits>>i&1 == 1 {
			points := c.points
			if unpaid := op.charged.points - limits[i].Charged; limits[i].Limit.Soft && points > 0 {
				// A soft limit gives back no more than it was charged.
				points = max(0, points-unpaid)
			}
			limits[i] = decision.Projected(limits[i], points)
		}
	}
	d.Limits, op.recharged = limits, true
}

// follow begins to watch over an operation that is about to run, and to add up what it comes to if somebody reads that: the
// settlement of its charge, a client that asks, or metrics.
func (e *Extension) follow(ctx context.Context, opCtx *graphql.OperationContext, op *operation) {
	s, d := &e.cfg.Settlement, &op.decision
	settles := op.corrects()
	d.Correctable = op.charged.limits != 0 && (s.Refund || s.ChargeExcess)
	if settles && s.Refund {
		opCtx.ResolverMiddleware = op.responses.watching(opCtx.ResolverMiddleware)
	}
	d.Counted = op.asks || e.reporter.ReadsSpent(ctx)
	if d.Counted || settles && (s.Refund || s.ChargeExcess) {
		op.addUp(opCtx)
	}
	if d.Kind == ast.Subscription {
		e.awaitLeave(ctx, op)
	}
}

// addUp begins to add up what the operation comes to.
func (op *operation) addUp(opCtx *graphql.OperationContext) {
	outline := op.outline(opCtx)
	if outline == nil {
		return
	}
	op.actual = &actual{outline: outline, tally: outline.Tally(opCtx.Variables)}
	if outline.NeedsTypes() {
		opCtx.ResolverMiddleware = observing(opCtx.ResolverMiddleware, outline, op.actual.tally)
	}
}

// outline returns the outline of the operation, nil if it has none. It is looked for once, and then known to the plan.
func (op *operation) outline(opCtx *graphql.OperationContext) *cost.Outline {
	if plan := op.price.plan; plan != nil {
		if known := plan.Outline(); known != nil {
			return known
		}
	}
	outline, err := op.extension.estimator.OutlineText(opCtx.RawQuery, opCtx.Doc, opCtx.Operation)
	if err != nil {
		return nil
	}
	return outline
}

// observing wraps the middleware of all fields, so that the tally learns the types of objects that the
// response does not tell. A field knows the type that it is on.
func observing(next graphql.FieldMiddleware, outline *cost.Outline, tally *cost.Tally) graphql.FieldMiddleware {
	// The fields of one object mostly come one after the other.
	var last atomic.Pointer[graphql.FieldContext]
	return func(ctx context.Context, resolve graphql.Resolver) (any, error) {
		field := graphql.GetFieldContext(ctx)
		if field != nil && field.Parent != nil && outline.NeedsType(field.Object) && last.Swap(field.Parent) != field.Parent {
			tally.Observe(field.Parent.Path(), field.Object)
		}
		return next(ctx, resolve)
	}
}

// awaitLeave ends the account of a stream when its client leaves, because then nobody asks for the
// response that would say that the stream is over. It does nothing if there is nothing to account for.
func (e *Extension) awaitLeave(ctx context.Context, op *operation) {
	accounts := op.actual != nil || op.charged.bytes
	if accounts && op.responses.forget == nil {
		op.responses.forget = context.AfterFunc(ctx, func() { e.finish(ctx, op, true) })
	}
}

// add prices one response of the operation; nil says that there are no more.
func (e *Extension) add(ctx context.Context, op *operation, response *graphql.Response) {
	op.responses.note(ctx, response)
	a := op.actual
	if response == nil {
		e.over(ctx, op)
		return
	}
	if a != nil {
		// What cannot be read makes the whole unknown, which Cost says.
		_ = a.tally.AddAt(response.Path, response.Data)
	}
	switch {
	case response.HasNext != nil && *response.HasNext:
		e.awaitLeave(ctx, op)
	case op.decision.Kind != ast.Subscription:
		e.over(ctx, op)
	}
}

// over says that the last response is on its way.
func (e *Extension) over(ctx context.Context, op *operation) {
	if op.responses.forget != nil {
		op.responses.forget()
	}
	e.finish(ctx, op, false)
}

// spent returns what the operation came to so far, in points. It returns false if nobody knows, as where an answer was cut.
func (op *operation) spent(ctx context.Context) (int64, bool) {
	if op.responses.cut.Load() {
		return 0, false
	}
	return op.actual.points(ctx, op.extension)
}

// points returns the price of what was added up so far. It returns false if it is unknown.
func (a *actual) points(ctx context.Context, e *Extension) (int64, bool) {
	if a == nil {
		return 0, false
	}
	spent, err := a.tally.Cost()
	if err != nil {
		return 0, false
	}
	return e.price(ctx, spent), true
}

// estimate returns what the operation was estimated at, in points. That of a subscription is the price of one
// event, so that it is taken for as many events as there were.
func (op *operation) estimate(ctx context.Context, d *decision.Decision) int64 {
	if d.Kind != ast.Subscription {
		return d.Points
	}
	return op.extension.price(ctx, op.actual.outline.Stream(d.Cost, op.responses.count.Load()))
}
