package ratelimit

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
)

// SettlementConfig says how the charge of an operation is corrected after it has run. The zero value keeps
// each charge at its estimate: that bounds the work, where a response tells only what came of it.
//
// Nothing is given back where the response has errors, because these hide calls that were made, where the
// actual cost is not known, for a subscription or a deferred part that the client has left, and under an
// idempotency key for a query, which may be repeated uncharged, and for an answer in parts. What was taken
// with [Charge] stays taken, and so do requests. No limit ever gets more back than it is still owed.
//
// The store is asked after the response, which does not wait for it, under an idempotency key with the end
// of the claim. [Extension.Shutdown] waits for what is under way.
type SettlementConfig struct {
	// Refund gives back what an operation was estimated at and did not come to. It doubles the calls of the
	// store for operations that return less than they may. Set it where the weights of fields say what a
	// call takes whether or not it finds anything: a search that returns nothing costs its weight alone.
	Refund bool
	// ChargeExcess charges on what an operation comes to above its estimate, which happens only where a
	// list is longer than its declared size. It cannot be refused and may overdraw, to twice the capacity.
	ChargeExcess bool
	// FailedShare is the share of the charge, 0 to 1, that is given back when an operation ends in nothing
	// but errors. Zero gives back nothing: errors may come after any amount of work.
	FailedShare float64
	// CanceledShare is the share of the charge, 0 to 1, that is given back when the client leaves before the
	// answer and the operation breaks off. Zero gives back nothing: what ran is paid. Who may break off for
	// nothing can make the server work for nothing.
	CanceledShare float64
	// MaxWaiting is how many settlements may wait for a store, at most 1 000 000, for each store. Those that find no room
	// are dropped: the estimate stays charged. Zero means 4096.
	MaxWaiting int
}

const (
	defaultMaxWaiting = 4096
	mostWaiting       = 1_000_000
)

func (s *SettlementConfig) validate(noActualCost bool, fail func(format string, args ...any)) {
	if noActualCost && (s.Refund || s.ChargeExcess) {
		fail("Settlement has Refund or ChargeExcess, which need the actual cost: unset NoActualCost")
	}
	for _, share := range []struct {
		name  string
		value float64
	}{{"FailedShare", s.FailedShare}, {"CanceledShare", s.CanceledShare}} {
		// The condition is that of a share, so that NaN is none.
		if !(share.value >= 0 && share.value <= 1) {
			fail("Settlement.%s is %v, want 0 to 1", share.name, share.value)
		}
	}
	if s.MaxWaiting < 0 || s.MaxWaiting > mostWaiting {
		fail("Settlement.MaxWaiting is %d, want 0 to %d", s.MaxWaiting, mostWaiting)
	}
}

// paid is what the take of an operation has charged for the operation itself. It is written before the
// operation runs.
type paid struct {
	receipt bucket.Receipt
	points  int64
	// limits has a bit for each limit, in the order of the decision, that was charged points.
	limits uint64
	// count is how many limits the decision had.
	count int
}

// pay keeps what the take has charged.
func (p *paid) pay(result *bucket.Result, points int64) {
	p.receipt, p.points, p.count = result.Receipt, points, len(result.Limits)
	for i := range result.Limits {
		if l := &result.Limits[i]; l.Limit.Unit == bucket.Points && l.Charged > 0 {
			p.limits |= 1 << i
		}
	}
}

// correction is what is to become of a charge.
type correction struct {
	// points are given back. They are charged on if negative. Zero leaves the charge as it is.
	points int64
	reason string
}

// Why a charge is corrected, in the words that metrics carry.
const (
	reasonActual   = "actual"
	reasonExcess   = "excess"
	reasonFailed   = "failed"
	reasonCanceled = "canceled"
	reasonReleased = "released"
	// reasonUnclaimed: nothing is corrected but the claim of a take whose reply was lost.
	reasonUnclaimed = "unclaimed"
)

// answers is what is known of the responses of an operation when it ends.
type answers struct {
	// spoiled says that one of them had errors, delivered that one had data.
	spoiled, delivered atomic.Bool
	// finished says that the account of the operation is closed.
	finished atomic.Bool
}

func (a *answers) note(response *graphql.Response) {
	if response == nil {
		return
	}
	if len(response.Errors) > 0 {
		a.spoiled.Store(true)
	}
	if hasData(response) {
		a.delivered.Store(true)
	}
}

func hasData(response *graphql.Response) bool {
	return len(response.Data) > 0 && string(response.Data) != "null"
}

// finish closes the account of an operation, once: what it came to is measured, and its charge corrected. left
// says that the client has left a stream, of which nobody knows the rest.
func (e *Extension) finish(ctx context.Context, op *operation, last *graphql.Response, left bool) {
	if !op.answers.finished.CompareAndSwap(false, true) {
		return
	}
	gone := errors.Is(ctx.Err(), context.Canceled)
	if ctx.Err() != nil {
		// Metrics take nothing under a context that has ended.
		ctx = context.WithoutCancel(ctx)
	}
	a := op.actual
	points, known := a.points(e)
	estimate := op.paid.points
	if known {
		d := op.snapshot()
		estimate = a.estimate(e, &d)
		e.reporter.Spent(ctx, &d, estimate, points)
	}
	if op.paid.limits == 0 {
		return
	}
	c := e.correction(op, last, left, gone)
	switch {
	case c.reason == reasonActual && known:
		c.points = max(0, op.paid.points-points)
	case c.reason == reasonActual:
		c.points = 0
	}
	if excess := points - estimate; known && c.points == 0 && excess > 0 && e.cfg.Settlement.ChargeExcess {
		c = correction{points: -excess, reason: reasonExcess}
	}
	if c.points != 0 && e.settle(ctx, op, c) {
		op.show(c)
	}
}

// correction decides what is given back of a charge; of the reason actual it leaves open how much.
func (e *Extension) correction(op *operation, last *graphql.Response, left, gone bool) correction {
	s, stream := &e.cfg.Settlement, op.decision.Kind == ast.Subscription
	spoiled := op.answers.spoiled.Load()
	switch {
	case op.claim != nil && last != nil && !op.Ran(last):
		return correction{points: op.paid.points, reason: reasonReleased}
	case op.claim != nil && op.claim.FreeRepeats != 0:
		// The charge pays for repeats as well.
		return correction{}
	case left, stream && (gone || op.actual == nil || op.actual.events.Load() == 0):
		// Starting it, and the event that may have been in the making, are paid.
		return correction{}
	case spoiled && gone:
		return correction{points: shareOf(op.paid.points, s.CanceledShare), reason: reasonCanceled}
	case spoiled && !op.answers.delivered.Load():
		return correction{points: shareOf(op.paid.points, s.FailedShare), reason: reasonFailed}
	case spoiled, !s.Refund:
		return correction{}
	default:
		return correction{reason: reasonActual}
	}
}

// shareOf rounds down. Points are at most 2^53, which a float64 holds.
func shareOf(points int64, share float64) int64 {
	return int64(math.Floor(float64(points) * share))
}

// settle hands the correction to whoever settles. It returns false if nobody does.
func (e *Extension) settle(ctx context.Context, op *operation, c correction) bool {
	if op.claim != nil {
		return op.leaveToClaim(c)
	}
	return op.store.Offer(ctx, &backend.Settlement{
		Settlement: bucket.Settlement{Receipt: op.paid.receipt.Clone(), Actual: op.worth(c)},
		Reason:     c.reason,
		Tier:       op.rules.Tier,
	})
}

// leaveToClaim leaves the correction to the call that ends the claim. It returns false if that was made
// already, as it is with the first part of an answer in parts, which keeps its estimate.
func (op *operation) leaveToClaim(c correction) bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.claimEnded {
		return false
	}
	op.correction = c
	return true
}

// worth is what the operation was worth after a correction.
func (op *operation) worth(c correction) bucket.Amounts {
	return bucket.Amounts{{Unit: bucket.Points, N: op.paid.points - c.points}}
}

// show changes what clients are told into what the correction will lead to.
func (op *operation) show(c correction) {
	op.mu.Lock()
	defer op.mu.Unlock()
	d := &op.decision
	if c.points > 0 {
		d.Refunded = c.points
	} else {
		d.Charged -= c.points
	}
	if len(d.Limits) != op.paid.count {
		return
	}
	// Whoever has the decision from FromContext still reads the old ones.
	limits := append([]bucket.LimitState(nil), d.Limits...)
	for i := range limits {
		if op.paid.limits>>i&1 == 1 {
			points := c.points
			if unpaid := op.paid.points - limits[i].Charged; limits[i].Limit.Soft && points > 0 {
				// A soft limit gives back no more than it was charged.
				points = max(0, points-unpaid)
			}
			limits[i] = projected(limits[i], points)
		}
	}
	d.Limits, op.recharged = limits, true
}

// projected is the state of a limit once the points have been given back, or charged on if they are negative.
// It says no less than will be left if nothing else is taken.
func projected(l bucket.LimitState, points int64) bucket.LimitState {
	capacity := l.Limit.Capacity
	// What is left, negative where it is overdrawn: charging on overdraws to twice the capacity, and never gives back.
	left := l.Remaining - l.Overdraft
	left = min(capacity, left+max(min(0, -capacity-left), min(2*capacity, points)))
	l.Remaining, l.Overdraft = max(0, left), max(0, -left)
	switch {
	case l.Limit.Window.Kind == bucket.TokenBucket:
		refilled := float64(points) * float64(l.Limit.Period) / float64(l.Limit.Refill)
		longest := 2 * float64(capacity) * float64(l.Limit.Period) / float64(l.Limit.Refill)
		after := max(0, min(float64(l.ResetAfter)-refilled, max(longest, float64(l.ResetAfter)), math.MaxInt64/2))
		l.ResetAfter = time.Duration(after)
	case l.Remaining == capacity:
		l.ResetAfter, l.WindowEnd = 0, 0
	}
	return l
}
