package ratelimit

import (
	"context"
	"errors"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// storeAway decides by the fail mode. A keyed mutation is refused whatever the mode, because it may
// be a repeat of one that ran.
func (e *Extension) storeAway(ctx context.Context, op *operation, take *bucket.Take, points int64, err error) {
	d := &op.decision
	mode := awayMode(&op.rules, err)
	d.StoreErr, d.FailMode = err, mode
	unclaimed := op.claim != nil && op.mutation() && !e.cfg.Idempotency.AdmitUnclaimed
	switch {
	case unclaimed || mode == bucket.FailClosed:
		d.Refuse(refusedUnavailable())
	case mode == bucket.FailLocal:
		result, outcome, refusal := judgeLocally(op.store, take)
		d.Limits, d.Overridden, d.Outcome, d.BlockedBy = result.Limits, overridden(&result), outcome, result.BlockedBy()
		if refusal != nil {
			d.Refuse(refusal)
			break
		}
		d.Note(d.WouldRefuseBy(result.Limits, take.Amounts))
		d.Charged = chargedPoints(result.Limits, points)
	default:
		d.Outcome = decision.Unjudged
	}
	// A mutation that runs without its claim is left to the lease, as one whose server has died.
	if op.claim != nil && errors.Is(err, bucket.ErrAmbiguous) && (d.Refusal != nil || !op.mutation()) {
		op.unclaim(ctx)
	}
	op.claim = nil
	op.store.Decided(countedAs(d.Outcome), points)
	e.reporter.DecidedAway(ctx, d)
}

// busy decides about an operation of a tenant that has too many calls under way. No fail mode applies: a
// tenant that could ask itself past its limits would. Nor do the modes of the policy: an override record that
// enforces or blocks is known to nobody but the store. Only where nothing is judged the operation runs, except
// for a keyed mutation that may be a repeat.
func (e *Extension) busy(op *operation) {
	unclaimed := op.claim != nil && op.mutation() && !e.cfg.Idempotency.AdmitUnclaimed
	op.claim = nil
	if unclaimed || judged(&op.rules) != nil {
		op.decision.Refuse(refusedBusy())
		return
	}
	op.decision.Outcome = decision.Unjudged
}

// judgeLocally judges a take by this instance's share of its limits. A share that can never hold the amount
// says nothing about the limit: the operation passes when the store is back.
func judgeLocally(store *backend.Store, take *bucket.Take) (bucket.Result, decision.Outcome, *decision.Refusal) {
	result := store.TakeLocally(take)
	switch result.Verdict {
	case bucket.Admitted:
		return result, decision.AdmittedLocally, nil
	case bucket.Limited:
		refusal := decision.RefusedBy(result.Limits, take.Amounts)
		refusal.Outcome = decision.LimitedLocally
		return result, decision.LimitedLocally, refusal
	case bucket.Blocked:
		refusal := refusedBlocked()
		return result, refusal.Outcome, refusal
	default:
		return bucket.Result{}, decision.Unavailable, refusedUnavailable()
	}
}

// countedAs is how the outcome is added up while the store is away.
func countedAs(o decision.Outcome) backend.Decision {
	switch o {
	case decision.Unjudged:
		return backend.Unjudged
	case decision.AdmittedLocally:
		return backend.AdmittedLocally
	case decision.LimitedLocally:
		return backend.LimitedLocally
	default:
		return backend.Refused
	}
}

// awayMode is what an error of the store does to what it was asked about. A call that was wrong in itself is
// a mistake of this library, which must not open the gate.
func awayMode(rules *tiers.Rules, err error) bucket.FailMode {
	if errors.Is(err, bucket.ErrInvalid) {
		return bucket.FailClosed
	}
	buckets := judged(rules)
	if buckets == nil {
		// Without limits there is nothing to have a share of.
		if rules.Mode == bucket.Enforce && rules.FailMode == bucket.FailClosed {
			return bucket.FailClosed
		}
		return bucket.FailOpen
	}
	mode := bucket.FailOpen
	for i := range buckets {
		mode = mode.Strictest(buckets[i].Limits.FailMode())
	}
	return mode
}
