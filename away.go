package ratelimit

import (
	"context"
	"errors"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// storeAway decides by the fail mode. A keyed mutation is refused whatever the mode, because it may
// be a repeat of one that ran.
func (e *Extension) storeAway(ctx context.Context, op *operation, take *bucket.Take, points int64, err error) {
	d := &op.decision
	d.StoreErr = err
	unclaimed := op.claim != nil && op.mutation && !e.cfg.Idempotency.AdmitUnclaimed
	claim := op.claim
	op.claim = nil
	mode := awayMode(&op.rules, err)
	switch {
	case unclaimed || mode == bucket.FailClosed:
		d.refuse(refusedUnavailable())
	case mode == bucket.FailLocal:
		result, outcome, refusal := judgeLocally(op.store, take)
		d.Limits, d.Overridden, d.Outcome, d.blockedBy = result.Limits, overridden(&result), outcome, result.BlockedBy()
		if refusal != nil {
			d.refuse(refusal)
			break
		}
		d.note(wouldRefuse(&op.rules, result.Limits, take.Amounts))
		d.Charged = chargedPoints(result.Limits, points)
	default:
		d.Outcome = Unjudged
	}
	// A mutation that runs without its claim is left to the lease, as one whose server has died.
	if claim != nil && errors.Is(err, bucket.ErrAmbiguous) && (d.Refusal != nil || !op.mutation) {
		op.unclaim(ctx, claim)
	}
	op.store.Decided(d.Outcome.away(), points)
	e.telemetry.decidedAway(ctx, op.store.Name(), d.Outcome, points)
}

// unclaim releases a claim that a take may have written although its reply was lost. What was charged with it
// stays charged, because the receipt was lost as well.
func (op *operation) unclaim(ctx context.Context, claim *idempotency.Claim) {
	op.store.Offer(ctx, &backend.Settlement{
		Settlement: bucket.Settlement{Claim: &bucket.ClaimSettlement{
			Tenant: op.decision.Subject.Tenant, Claim: claim, Outcome: idempotency.Released,
		}},
		Reason: reasonUnclaimed,
		Tier:   op.rules.Tier,
	})
}

// judgeLocally judges a take by this instance's share of its limits. A share that can never hold the amount
// says nothing about the limit: the operation passes when the store is back.
func judgeLocally(store *backend.Store, take *bucket.Take) (bucket.Result, Outcome, *RefusedError) {
	result := store.TakeLocally(take)
	spread(take.Tenant, result.Limits)
	switch result.Verdict {
	case bucket.Admitted:
		return result, AdmittedLocally, nil
	case bucket.Limited:
		refusal := refusedByLimits(result.Limits, take.Amounts, enforced)
		refusal.Outcome = LimitedLocally
		return result, LimitedLocally, refusal
	case bucket.Blocked:
		refusal := refusedBlocked()
		return result, refusal.Outcome, refusal
	default:
		return bucket.Result{}, Unavailable, refusedUnavailable()
	}
}

// locally says that the outcome was found without the store, so that the limits show what is left of shares.
func (o Outcome) locally() bool {
	return o == AdmittedLocally || o == LimitedLocally
}

// away is how the outcome is added up while the store is away.
func (o Outcome) away() backend.Decision {
	switch o {
	case Unjudged:
		return backend.Unjudged
	case AdmittedLocally:
		return backend.AdmittedLocally
	case LimitedLocally:
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
