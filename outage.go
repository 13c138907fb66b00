package ratelimit

import (
	"context"
	"errors"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
	"github.com/gqlgen-ratelimit/ratelimit/internal/claims"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// storeAway decides by the fail mode. A keyed mutation is refused whatever the mode, because it may
// be a repeat of one that ran.
func (e *Extension) storeAway(ctx context.Context, op *operation, take *bucket.Take, points int64, err error) {
	d := &op.decision
	mode := awayMode(op.decision.Rules, err)
	d.StoreErr, d.FailMode = err, mode
	if op.claim != nil && op.mutation() && !e.cfg.Idempotency.AdmitUnclaimed {
		mode = bucket.FailClosed
	}
	if mode == bucket.FailLocal && !op.store.Counted() {
		e.warnOnce(ctx, oddity{what: "instances", name: op.decision.Rules.Store}, "limits fail local, and nobody knows yet how many instances "+
			"share the store, so that they refuse: run limiter.Run in the background, or set Config.Outage.Instances")
	}
	result, outcome, refusal := judgeAway(op.store, take, mode, err)
	d.Limits, d.Overridden, d.Outcome = result.Limits, overridden(&result), outcome
	if refusal != nil {
		d.Refuse(refusal)
	} else {
		d.Note(d.WouldRefuseBy(result.Limits))
		d.Pay(result.Limits, points)
	}
	// A mutation that runs without its claim is left to the lease, as one whose server has died.
	if op.claim != nil && errors.Is(err, bucket.ErrAmbiguous) && (d.Refusal != nil || !op.mutation()) {
		op.unclaim(ctx)
	}
	op.claim = nil
	e.decidedWithout(ctx, op.store, d, points)
}

// decidedWithout counts what was decided while the store was away. Of a process that is busy or late nobody says that it
// was.
func (e *Extension) decidedWithout(ctx context.Context, store *backend.Store, d *decision.Decision, points int64) {
	if backend.SaysNothing(d.StoreErr) {
		return
	}
	store.Decided(d.Outcome, points)
	e.reporter.DecidedAway(ctx, d)
}

// tenantBusy decides about an operation of a tenant that has too many calls under way. No fail mode applies: a
// tenant that could ask itself past its limits would. Nor do the modes of the policy: an override record that
// enforces or blocks is known to nobody but the store. Only where nothing is judged the operation runs, except
// for a keyed mutation that may be a repeat.
func (e *Extension) tenantBusy(op *operation, take *bucket.Take) {
	unclaimed := op.claim != nil && op.mutation() && !e.cfg.Idempotency.AdmitUnclaimed
	op.claim = nil
	switch result, blocked := op.store.Known(take, bucket.FailOpen); {
	case blocked:
		op.refuseBlocked(&result)
	case unclaimed || take.Buckets != nil:
		op.decision.Refuse(refusedTenantBusy())
	default:
		op.decision.Outcome = decision.Unjudged
	}
}

// candidateUnknown decides about an operation for which the store was asked for the candidate alone, which decides
// nothing, and did not answer.
func (e *Extension) candidateUnknown(op *operation, take *bucket.Take, err error) {
	d := &op.decision
	d.StoreErr, d.FailMode = err, awayMode(op.decision.Rules, err)
	if result, blocked := op.store.Known(take, bucket.FailOpen); blocked {
		op.refuseBlocked(&result)
		return
	}
	d.Admit()
}

// refuseBlocked refuses what a record blocks, as the store has said before.
func (op *operation) refuseBlocked(result *bucket.Result) {
	d := &op.decision
	d.Overridden = overridden(result)
	d.Refuse(refusedBy(result))
}

// judgeAway judges a take that the store has not answered: by what it has answered before, and else by the fail mode,
// where the limits fail local or bounded by this instance's shares of them. A share that does not have the amount says
// nothing certain about the limit: of one that could never hold it, or of a store that was not asked because this process
// is busy, the client is told to come back soon, and not that its budget is used up.
func judgeAway(store *backend.Store, take *bucket.Take, mode bucket.FailMode, err error) (bucket.Result, decision.Outcome, *decision.Refusal) {
	if result, known := store.Known(take, mode); known {
		refusal := refusedBy(&result)
		if refusal.Outcome == decision.Limited {
			refusal.Outcome = decision.LimitedLocally
		}
		return result, refusal.Outcome, refusal
	}
	switch mode {
	case bucket.FailClosed:
		refusal := refusedUnjudged(err)
		return bucket.Result{}, refusal.Outcome, refusal
	case bucket.FailOpen:
		return bucket.Result{}, decision.Unjudged, nil
	default:
	}
	result := store.TakeLocally(take, err)
	refusal := refusedBy(&result)
	switch {
	case result.Verdict == bucket.Admitted:
		return result, decision.AdmittedLocally, nil
	case result.Verdict == bucket.Never, result.Verdict == bucket.Limited && errors.Is(err, bucket.ErrBusy):
		result, refusal = bucket.Result{}, refusedUnjudged(err)
	case result.Verdict == bucket.Limited:
		refusal.Outcome = decision.LimitedLocally
	default:
	}
	return result, refusal.Outcome, refusal
}

// awayMode is what an error of the store does to what it was asked about. A call that was wrong in itself is
// a mistake of this library, which must not open the gate.
func awayMode(rules *tiers.Rules, err error) bucket.FailMode {
	if errors.Is(err, bucket.ErrInvalid) {
		return bucket.FailClosed
	}
	buckets := judged(rules)
	if buckets == nil && rules.Mode == bucket.Enforce && rules.FailMode == bucket.FailClosed {
		return bucket.FailClosed
	}
	// Without limits there is nothing to have a share of.
	mode := bucket.FailOpen
	for i := range buckets {
		mode = mode.Strictest(buckets[i].Limits.FailMode())
	}
	return mode
}

// unclaim releases a claim that a take may have written although its reply was lost.
func (op *operation) unclaim(ctx context.Context) {
	op.store.Offer(ctx, claims.Release(op.decision.Subject.Tenant, op.claim), reasonUnclaimed, op.decision.Rules.Tier)
}
