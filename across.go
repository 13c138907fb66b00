package ratelimit

import (
	"context"
	"errors"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// everybody is the tenant to whom the budgets belong that all tenants share. No subject is without a tenant, so that it is
// nobody else's.
const everybody = ""

// across is what an operation was charged in budgets that all tenants share.
type across struct {
	store   *backend.Store
	receipt bucket.Receipt
}

// takeAcross charges the budgets that all tenants share, which are in no slot with those of the tenant: in a call of its
// own, before that of the tenant, since what cannot pass here must not cost the tenant anything. It returns false if the
// decision is made.
//
// They are in the default store, whatever store the tenant has: elsewhere they would not be one budget.
func (e *Extension) takeAcross(ctx context.Context, op *operation, amounts bucket.Amounts) (shared across, ok bool) {
	d := &op.decision
	if op.decision.Rules.Unlimited || !haveLimits(op.decision.Rules.Across) {
		return across{}, true
	}
	shared.store = e.stores.Named("")
	take := bucket.Take{Tenant: everybody, Buckets: op.decision.Rules.Across, Amounts: amounts}
	var result bucket.Result
	took, err := shared.store.TakeShared(ctx, &take, &result, d.Subject.Tenant)
	d.StoreDuration = took
	switch {
	case errors.Is(err, backend.ErrTenantBusy):
		d.Refuse(refusedTenantBusy())
	case err != nil:
		e.acrossAway(ctx, op, shared.store, &take, err)
	default:
		shared.receipt = result.Receipt
		e.warnOfOverrides(ctx, everybody, &result)
		if refusal := refusedBy(&result); refusal != nil {
			d.Limits, d.Overridden = result.Limits, overridden(&result)
			d.Refuse(refusal)
			break
		}
		// What is left of them is not shown: it would tell whoever tries an account that others try it too.
		d.Note(d.WouldRefuseBy(result.Limits))
	}
	if d.Refusal != nil {
		op.claim = nil
	}
	return shared, d.Refusal == nil
}

// acrossAway decides by the fail mode of the shared limits.
func (e *Extension) acrossAway(ctx context.Context, op *operation, store *backend.Store, take *bucket.Take, err error) {
	d := &op.decision
	rules := tiers.Rules{Buckets: take.Buckets}
	d.StoreErr, d.FailMode = err, awayMode(&rules, err)
	result, outcome, refusal := judgeAway(store, take, d.FailMode, err)
	if refusal == nil {
		d.Note(d.WouldRefuseBy(result.Limits))
		return
	}
	d.Limits, d.Overridden, d.Outcome = result.Limits, overridden(&result), outcome
	d.Refuse(refusal)
	e.decidedWithout(ctx, store, d, d.Points)
}

// settle gives back what was charged for an operation that does not run after all, or that an earlier attempt has paid.
func (a *across) settle(ctx context.Context, d *decision.Decision) {
	if a.receipt.IsZero() || d.Refusal == nil && d.Outcome != decision.Replayed && d.Outcome != decision.Repeated {
		return
	}
	settleRefused(ctx, a.store, a.receipt, d.Rules.Across, d.Tier)
}

// settleRefused gives back all that was charged to buckets that belong to nobody.
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
