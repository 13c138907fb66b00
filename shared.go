package ratelimit

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// everybody is the tenant to whom the budgets belong that all tenants share. No subject is without a tenant, so that it is
// nobody else's.
const everybody = ""

// sharedBuckets returns the budgets of all tenants together that the operation is charged to: the backstop of the policy, and
// limits with across. The backstop holds for tenants without limits too, since they are load as well.
func sharedBuckets(rules *tiers.Rules) []bucket.Bucket {
	across := rules.Across
	if rules.Unlimited {
		across = nil
	}
	switch {
	case len(across) == 0:
		return rules.Backstop
	case len(rules.Backstop) == 0:
		return across
	default:
		return slices.Concat(rules.Backstop, across)
	}
}

// takeShared charges the shared budgets in one call, before the tenant's own, since what cannot pass here must not cost the
// tenant anything. They are in the default store, whatever store the tenant has: elsewhere they would not be one budget. It
// returns false if the decision is made. The charge is given back by keepShared, and corrected by settleShared.
func (e *Extension) takeShared(ctx context.Context, op *operation, q *question) (ok bool) {
	d := &op.decision
	buckets := sharedBuckets(d.Rules)
	if !haveLimits(buckets) {
		return true
	}
	store := e.stores.Named("")
	// It is leased wherever leases are: each operation asks for it.
	take := bucket.Take{
		Tenant: everybody, Buckets: buckets, Amounts: q.take.Amounts,
		Lease: bucket.LeaseAlways, LeaseEach: true, Declinable: true,
	}
	var result bucket.Result
	var refusal *decision.Refusal
	took, err := store.Take(ctx, &take, &result, backend.Caller{Payer: d.Subject.Tenant})
	d.StoreDuration = took
	switch {
	case errors.Is(err, backend.ErrTenantBusy):
		d.Refuse(refusedTenantBusy())
	case err != nil:
		result, refusal = e.sharedAway(op, store, &take, err)
	default:
		op.withBeside().shared, op.charged.points = result.Receipt, q.points
		if len(d.Rules.Across) > 0 {
			e.warnOfOverrides(ctx, everybody, &result)
		}
		refusal = refusedBy(&result)
	}
	op.sharedVerdict(q, &result, refusal)
	if d.Refusal == nil {
		return true
	}
	op.claim = nil
	if err != nil && !errors.Is(err, backend.ErrTenantBusy) {
		e.decidedWithout(ctx, store, d, d.Points)
	}
	return false
}

// sharedVerdict refuses the operation if a shared budget does, and notes what they would have refused. A limit with across is shown to
// clients that it refuses. The remaining budget of others is not: it would tell whoever tries an account that others try it.
// Nothing is told of the backstop but that there is too much to do: what the servers can bear is nobody's to know, and no
// tenant has done it alone.
func (op *operation) sharedVerdict(q *question, result *bucket.Result, refusal *decision.Refusal) {
	d := &op.decision
	backstop, across := splitShared(d.Rules, result.Limits)
	switch by := decision.RefusedBy(backstop); {
	case refusal == nil:
		q.beyond = wouldRefuse(backstop)
		d.Note(d.WouldRefuseBy(across))
	case by != nil && refusal.Limit != nil:
		d.Refuse(refusedByBackstop(by))
	default:
		d.Limits, d.Overridden = across, overridden(result)
		d.Refuse(refusal)
	}
}

// splitShared parts the states of shared limits by what clients are told of them.
func splitShared(rules *tiers.Rules, limits []bucket.LimitState) (backstop, across []bucket.LimitState) {
	for i := range limits {
		owner := limits[i].Owner
		if slices.ContainsFunc(rules.Backstop, func(b bucket.Bucket) bool { return b.Owner == owner }) {
			backstop = append(backstop, limits[i])
		} else {
			across = append(across, limits[i])
		}
	}
	return backstop, across
}

// sharedAway judges shared budgets by the fail mode of their limits.
func (e *Extension) sharedAway(
	op *operation, store *backend.Store, take *bucket.Take, err error,
) (bucket.Result, *decision.Refusal) {
	mode := awayMode(&tiers.Rules{Buckets: take.Buckets}, err)
	result, outcome, refusal := judgeAway(store, take, mode, err)
	if d := &op.decision; refusal != nil || len(d.Rules.Across) > 0 {
		d.StoreErr, d.FailMode, d.Outcome = err, mode, outcome
	}
	return result, refusal
}

// tooLargeForAll is what a client reads whose operation the backstop can never hold.
const tooLargeForAll = "the operation costs more than the server does at once for anybody: ask for fewer list items or fields"

// refusedByBackstop returns the refusal by a limit of the backstop without anything that names it or tells how large it is. Those who
// are refused together are told to come back one after the other.
func refusedByBackstop(by *decision.Refusal) *decision.Refusal {
	if by.Outcome == decision.TooExpensive {
		return &decision.Refusal{Outcome: decision.TooExpensive, Detail: tooLargeForAll}
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

// keepShared gives back the charge of shared budgets for an operation that does not run after all, or that an earlier attempt has
// paid, and forgets the charge where nothing can correct it.
func (e *Extension) keepShared(ctx context.Context, op *operation) {
	d, b := &op.decision, op.beside
	if b == nil || b.shared.IsZero() {
		return
	}
	unused := d.Refusal != nil || d.Outcome == decision.Replayed || d.Outcome == decision.Repeated
	store, buckets := e.stores.Named(""), sharedBuckets(d.Rules)
	if !unused {
		store.Keep(b.shared)
	} else if rest := store.Decline(b.shared); !rest.IsZero() {
		settleRefused(ctx, store, rest, buckets, d.Tier)
	}
	corrected := (op.claim != nil || e.cfg.Settlement.corrects()) && counts(buckets, bucket.Points)
	if unused || !corrected {
		b.shared = bucket.Receipt{}
	}
}

// settleRefused gives back all that was charged to shared budgets.
func settleRefused(ctx context.Context, store *backend.Store, receipt bucket.Receipt, buckets []bucket.Bucket, tier string) {
	var nothing bucket.Amounts
	for _, b := range buckets {
		for _, limit := range b.Limits.All() {
			if !names(nothing, limit.Unit) {
				nothing = append(nothing, bucket.Amount{Unit: limit.Unit})
			}
		}
	}
	// Before the answer: whoever is refused could hold what others share for as long as it waits in a queue.
	back := bucket.Settlement{Receipt: receipt.Clone(), Actual: nothing}
	if _, err := store.Settle(context.WithoutCancel(ctx), back); err != nil {
		store.Offer(ctx, back, reasonRefused, tier)
	}
}

// settleShared corrects the charge of shared budgets by what the operation came to.
func (e *Extension) settleShared(ctx context.Context, op *operation, c correction) {
	if op.beside == nil || op.beside.shared.IsZero() || c.points == 0 {
		return
	}
	worth := bucket.Amounts{{Unit: bucket.Points, N: op.charged.points - c.points}}
	settlement := bucket.Settlement{Receipt: op.beside.shared.Clone(), Actual: worth}
	e.stores.Named("").Offer(ctx, settlement, reasonShared, op.decision.Rules.Tier)
}
