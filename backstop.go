package ratelimit

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// takeBackstop charges the backstop of the policy, before everything that the operation is judged by else: whoever has no limits, or
// is in mode shadow, is load as well. It returns false if the decision is made. The charge comes back by keepBackstop, and
// is corrected by settleBackstop.
//
// What is told of a refusal is that there is too much to do: what the servers can bear is nobody's to know, and no tenant has
// done it alone.
func (e *Extension) takeBackstop(ctx context.Context, op *operation, q *question) (ok bool) {
	d := &op.decision
	buckets := d.Rules.Backstop
	if !haveLimits(buckets) {
		return true
	}
	store := e.stores.Named("")
	// It is leased wherever leases are: each operation asks for it.
	take := bucket.Take{Tenant: everybody, Buckets: buckets, Amounts: q.take.Amounts, Lease: bucket.LeaseAlways, LeaseEach: true, Declinable: true}
	var result bucket.Result
	took, err := store.TakeShared(ctx, &take, &result, d.Subject.Tenant)
	d.StoreDuration = took
	switch {
	case errors.Is(err, backend.ErrTenantBusy):
		d.Refuse(refusedTenantBusy())
	case err != nil:
		e.backstopAway(ctx, op, store, &take, err)
	default:
		if refusal := refusedByBackstop(refusedBy(&result)); refusal != nil {
			d.Refuse(refusal)
			break
		}
		op.withBeside().backstop, op.charged.points = result.Receipt, q.points
		q.beyond = wouldRefuse(result.Limits)
	}
	if d.Refusal != nil {
		op.claim = nil
	}
	return d.Refusal == nil
}

// backstopAway decides by the fail mode of the backstop, which is never one that refuses without knowing anything.
func (e *Extension) backstopAway(ctx context.Context, op *operation, store *backend.Store, take *bucket.Take, err error) {
	d := &op.decision
	mode := awayMode(&tiers.Rules{Buckets: take.Buckets}, err)
	_, outcome, refusal := judgeAway(store, take, mode, err)
	if refusal == nil {
		return
	}
	d.StoreErr, d.FailMode, d.Outcome = err, mode, outcome
	d.Refuse(refusedByBackstop(refusal))
	e.decidedWithout(ctx, store, d, d.Points)
}

// tooLargeForAll is what a client reads whose operation the backstop can never hold.
const tooLargeForAll = "the operation costs more than the server does at once for anybody: ask for fewer list items or fields"

// refusedByBackstop returns the refusal by a limit of the backstop without anything that names it or tells how large it is. Those who
// are refused together are told to come back one after the other.
func refusedByBackstop(by *decision.Refusal) *decision.Refusal {
	switch {
	case by == nil:
		return nil
	case by.Outcome == decision.TooExpensive:
		return &decision.Refusal{Outcome: decision.TooExpensive, Detail: tooLargeForAll}
	case by.Limit == nil:
		return by
	}
	wait := by.RetryAfter + rand.N(busySpread+by.RetryAfter/10) //nolint:gosec // It spreads load and is no secret.
	return &decision.Refusal{Outcome: decision.Backstop, RetryAfter: max(retryBusy, wait.Truncate(time.Millisecond))}
}

// wouldRefuse returns what a backstop would have refused that does not enforce, nil if nothing. It warns nobody.
func wouldRefuse(limits []bucket.LimitState) *decision.Refusal {
	for i := range limits {
		if l := &limits[i]; decision.RefusesIn(bucket.Shadow, l) || decision.RefusesIn(bucket.Warn, l) {
			return &decision.Refusal{Outcome: decision.Backstop, Mode: bucket.Shadow}
		}
	}
	return nil
}

// noteBeyond notes what the backstop would have refused, where nothing of the tenant's own would have.
func (q *question) noteBeyond(d *decision.Decision) {
	if q.beyond == nil || d.Refusal != nil || d.WouldRefuse != nil {
		return
	}
	d.Note(q.beyond)
	if d.Outcome == decision.Admitted {
		d.Outcome = q.beyond.AdmittedAs()
	}
}

// keepBackstop gives back what the backstop was charged for an operation that does not run after all, or that an earlier attempt has
// paid, and forgets the charge where nothing can correct it.
func (e *Extension) keepBackstop(ctx context.Context, op *operation) {
	d, b := &op.decision, op.beside
	if b == nil || b.backstop.IsZero() {
		return
	}
	unused := d.Refusal != nil || d.Outcome == decision.Replayed || d.Outcome == decision.Repeated
	store := e.stores.Named("")
	if !unused {
		store.Keep(b.backstop)
	} else if rest := store.Decline(b.backstop); !rest.IsZero() {
		settleRefused(ctx, store, rest, d.Rules.Backstop, d.Tier)
	}
	if unused || op.claim == nil && !e.cfg.Settlement.corrects() {
		b.backstop = bucket.Receipt{}
	}
}

// settleBackstop corrects what the backstop was charged by what the operation came to.
func (e *Extension) settleBackstop(ctx context.Context, op *operation, c correction) {
	if op.beside == nil || op.beside.backstop.IsZero() || c.points == 0 {
		return
	}
	worth := bucket.Amounts{{Unit: bucket.Points, N: op.charged.points - c.points}}
	settlement := bucket.Settlement{Receipt: op.beside.backstop.Clone(), Actual: worth}
	e.stores.Named("").Offer(ctx, settlement, reasonBackstop, op.decision.Rules.Tier)
}
