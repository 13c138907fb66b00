package ratelimit

import (
	"context"
	"errors"
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
)

// ErrNoDecision says that the context belongs to no operation that the extension has decided about.
var ErrNoDecision = errors.New("ratelimit: the context belongs to no operation of the extension")

// Charge takes n more of a unit from the budgets of the operation that ctx belongs to, for work that
// only a resolver can know the size of:
//
//	if err := ratelimit.Charge(ctx, "exports", rows); err != nil {
//		return nil, err
//	}
//
// It is a take: every limit that counts the unit has the amount, or nothing is charged. A refusal is
// an error that matches [ErrRefused] and carries the code for clients, so a resolver can return it
// as it is. The operation itself was admitted, so the status of the answer stays that of a success, and
// Retry-After stands in the error alone. Charging for a subject without limits, or for a unit that no
// limit counts, succeeds. If the store is away the fail mode of the limits decides, as it does for the
// operation itself; a charge beyond [OutageConfig].MaxConcurrent is refused. The error matches [ErrNoDecision] if the extension
// has not decided about the operation, and bucket.ErrInvalid if n is negative.
//
// An operation that runs again on an earlier charge ([Repeated]) charges here again. A mutation with an
// idempotency key that returns a refusal of Charge has run: a repeat under the key is answered with the
// same refusal, and another try needs another key.
//
// What was charged here stays charged: [SettlementConfig] corrects only what the operation itself was taken
// for.
//
// It is safe for concurrent use. A client that leaves does not end the charge.
func Charge(ctx context.Context, unit bucket.Unit, n int64) error {
	op := operationFrom(ctx)
	if op == nil {
		return ErrNoDecision
	}
	return op.charge(ctx, unit, n)
}

func (op *operation) charge(ctx context.Context, unit bucket.Unit, n int64) error {
	if n < 0 {
		return fmt.Errorf("ratelimit: a charge of %d %s is negative: %w", n, unit, bucket.ErrInvalid)
	}
	buckets := judged(&op.rules)
	if n == 0 || buckets == nil {
		return nil
	}
	after := op.chargeFrom(ctx, buckets, unit, n)
	op.extension.reporter.Charged(ctx, &after)
	if after.Refusal != nil {
		return graphQLError(&after)
	}
	return nil
}

// chargeFrom takes n more of a unit from the buckets of the operation. It returns the charge as a decision
// of its own.
func (op *operation) chargeFrom(ctx context.Context, buckets []bucket.Bucket, unit bucket.Unit, n int64) decision.Decision {
	before := op.snapshot()
	take := bucket.Take{
		Tenant:  before.Subject.Tenant,
		Buckets: buckets,
		Owners:  op.members(nil),
		Amounts: bucket.Amounts{{Unit: unit, N: n}},
		// Under a candidate that has refused the operation it would not have come here.
		Candidate: op.trial,
	}
	result, took, err := op.store.Take(ctx, &take)
	after := before
	after.Asked, after.WouldRefuse = take.Amounts, nil
	if err != nil {
		after.FailMode = awayMode(&op.rules, err)
		after.Outcome, after.Refusal = op.chargedAway(&take, unit, n, &result, err)
	} else {
		after.Outcome, after.Refusal = op.charged(unit, n, &result)
	}
	after.Limits, after.BlockedBy, after.StoreDuration, after.StoreErr = result.Limits, result.BlockedBy(), took, err
	op.extension.reporter.Counted(ctx, &after, unit)
	return after
}

// charged turns the verdict about a charge into its outcome, and notes what clients are told of it.
func (op *operation) charged(unit bucket.Unit, n int64, result *bucket.Result) (decision.Outcome, *decision.Refusal) {
	op.mu.Lock()
	defer op.mu.Unlock()
	amounts := bucket.Amounts{{Unit: unit, N: n}}
	if result.Verdict == bucket.Blocked {
		refusal := refusedBlocked()
		refusal.Name()
		return refusal.Outcome, refusal
	}
	op.decision.Limits, op.recharged = result.Limits, true
	op.decision.Overridden = op.decision.Overridden || overridden(result)
	if result.Verdict != bucket.Admitted {
		refusal := decision.RefusedBy(result.Limits, amounts)
		refusal.Name()
		return refusal.Outcome, refusal
	}
	if unit == bucket.Points && anyCharged(result.Limits) {
		op.decision.Charged += n
	}
	would := op.decision.WouldRefuseBy(result.Limits, amounts)
	if would == nil {
		return decision.Admitted, nil
	}
	op.decision.Note(would)
	return would.AdmittedAs(), nil
}

// chargedAway decides about a charge that the store has not answered.
func (op *operation) chargedAway(take *bucket.Take, unit bucket.Unit, n int64, result *bucket.Result, err error) (decision.Outcome, *decision.Refusal) {
	outcome, refusal := decision.Unjudged, (*decision.Refusal)(nil)
	switch mode := awayMode(&op.rules, err); {
	case errors.Is(err, backend.ErrBusy):
		outcome, refusal = decision.Busy, refusedBusy()
	case mode == bucket.FailClosed:
		outcome, refusal = decision.Unavailable, refusedUnavailable()
	case mode == bucket.FailLocal:
		*result, outcome, refusal = judgeLocally(op.store, take)
	default:
	}
	op.mu.Lock()
	defer op.mu.Unlock()
	if len(result.Limits) > 0 {
		op.decision.Limits, op.recharged = result.Limits, true
	}
	if refusal != nil {
		refusal.Name()
	} else if unit == bucket.Points && anyCharged(result.Limits) {
		op.decision.Charged += n
	}
	return outcome, refusal
}

func anyCharged(limits []bucket.LimitState) bool {
	for i := range limits {
		if limits[i].Charged > 0 {
			return true
		}
	}
	return false
}
