package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// ErrNoDecision says that the context belongs to no operation that the extension has decided about.
var ErrNoDecision = errors.New("ratelimit: the context belongs to no operation of the extension")

// Charge takes n more of a unit from the budgets of the operation that ctx belongs to. It is for work whose size only a
// resolver knows:
//
//	if err := ratelimit.Charge(ctx, "exports", rows); err != nil {
//		return nil, err
//	}
//
// Either every limit that counts the unit has the amount, or nothing is charged. A refusal is an error that matches
// [ErrRefused] and carries the code for clients: a resolver can return it as it is. The operation was admitted, so the
// HTTP status stays that of a success, and only the error has the time to wait. A charge succeeds for a subject without
// limits, and in a unit that no limit counts. While the store is away the fail mode of the limits decides. The error
// matches [ErrNoDecision] if the extension has not decided about the
// operation, and bucket.ErrInvalid if n is negative.
//
// An operation that runs again after an abandoned attempt, on its charge ([OutcomeRepeated]), pays here again. A mutation under an idempotency
// key that returns a refusal of Charge has run: a repeat gets the same refusal, and another try needs another key.
//
// Where a rule of the policy stands in the place of the tenant's limits for the operation, what a resolver charges is taken from
// the rule and not from those limits.
//
// What was charged here stays charged: [SettlementConfig] corrects only the price of the operation itself.
//
// It is safe for concurrent use. A client that leaves does not end the charge.
func Charge(ctx context.Context, unit bucket.Unit, n int64) error {
	op := operationFrom(ctx)
	if op == nil {
		return ErrNoDecision
	}
	if n < 0 {
		return fmt.Errorf("ratelimit: a charge of %d %s is negative: %w", n, unit, bucket.ErrInvalid)
	}
	buckets := op.paying()
	if n == 0 || buckets == nil && op.decision.Rules.Usage == tiers.CountNothing {
		return nil
	}
	op.extension.warnOfUnit(ctx, op.decision.Rules, unit)
	after := op.chargeFrom(ctx, buckets, unit, n)
	op.extension.reporter.Charged(ctx, &after)
	if after.Refusal != nil {
		op.refusedInside()
		return op.extension.graphQLError(&after)
	}
	return nil
}

// refusedInside has the next answer tell of every limit.
func (op *operation) refusedInside() {
	op.mu.Lock()
	defer op.mu.Unlock()
	op.decision.RefusedInside = true
}

// paying returns the buckets that pay for what a resolver charges.
func (op *operation) paying() []bucket.Bucket {
	buckets := op.decision.Rules.Paying()
	if op.decision.Rules.Unlimited || !haveLimits(buckets) {
		return nil
	}
	return buckets
}

// chargeFrom takes n more of a unit from the buckets of the operation. It notes what clients are told of that, and
// returns the charge as a decision of its own.
func (op *operation) chargeFrom(ctx context.Context, buckets []bucket.Bucket, unit bucket.Unit, n int64) decision.Decision {
	after := op.snapshot()
	take := bucket.Take{
		Tenant:  after.Subject.Tenant,
		Buckets: unasked(buckets),
		Owners:  op.members(nil),
		Amounts: bucket.Amounts{{Unit: unit, N: n}},
		Usage:   op.usageOfCharge(ctx, unit, n),
		Lease:   after.Rules.Lease,
		// Under a candidate that has refused the operation it would not have come here.
		Candidate: op.trial(),
	}
	var result bucket.Result
	took, err := op.store.Take(ctx, &take, &result, backend.Caller{Runs: true})
	after.Asked, after.StoreDuration, after.StoreErr = take.Amounts, took, err
	after.Outcome, after.Refusal, after.WouldRefuse = decision.Admitted, nil, nil
	if err != nil {
		after.FailMode = awayMode(op.decision.Rules, err)
	}
	var would *decision.Refusal
	switch {
	case err != nil && buckets == nil:
		// There was nothing to judge: it was only to be counted.
	case err != nil:
		result, after.Outcome, after.Refusal = judgeAway(op.store, &take, after.FailMode, err)
	default:
		after.Refusal = refusedBy(&result)
	}
	if after.Refusal != nil {
		after.Refuse(after.Refusal)
	} else if err == nil {
		would = after.WouldRefuseBy(result.Limits)
	}
	if would != nil {
		after.Outcome = would.AdmittedAs()
	}
	after.Limits = result.Limits
	op.extension.reporter.Counted(ctx, &after, unit)

	op.mu.Lock()
	defer op.mu.Unlock()
	d := &op.decision
	if len(result.Limits) > 0 {
		d.Limits, d.Overridden, op.recharged = result.Limits, d.Overridden || overridden(&result), true
	}
	if after.Refusal == nil && unit == bucket.Points {
		d.Pay(result.Limits, n)
	}
	d.Note(would)
	return after
}

// warnOfUnit logs a charge in a unit that no limit of the policy counts.
func (e *Extension) warnOfUnit(ctx context.Context, rules *tiers.Rules, unit bucket.Unit) {
	if policy := e.cfg.Policy.Snapshot(); !counts(judged(rules), unit) && !policy.Counts(unit) {
		e.warnOnce(ctx, oddity{what: "unit", name: string(unit)}, "ratelimit.Charge is given a unit that no limit of the policy counts",
			slog.String("unit", shortened(string(unit))), slog.Any("units", policy.Units()))
	}
}
