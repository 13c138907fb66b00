package ratelimit

import (
	"context"
	"errors"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
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
// as it is. Charging for a subject without limits, or for a unit that no limit counts, succeeds. If
// the store is away the fail mode of the limits decides, as it does for the operation itself. The
// error matches [ErrNoDecision] if the extension has not decided about the operation, and
// bucket.ErrInvalid if n is negative.
//
// It is safe for concurrent use.
func Charge(ctx context.Context, unit bucket.Unit, n int64) error {
	op := operationFrom(ctx)
	if op == nil {
		return ErrNoDecision
	}
	return op.charge(ctx, unit, n)
}

func (op *operation) charge(ctx context.Context, unit bucket.Unit, n int64) error {
	if n < 0 {
		return errors.Join(errors.New("ratelimit: a charge cannot be negative"), bucket.ErrInvalid)
	}
	buckets := judged(&op.rules)
	if n == 0 || buckets == nil {
		return nil
	}
	subject := op.snapshot().Subject
	result, _, err := op.extension.take(ctx, bucket.Take{
		Tenant:  subject.Tenant,
		Buckets: buckets,
		Amounts: bucket.Amounts{{Unit: unit, N: n}},
	})
	if err != nil {
		if failMode(&op.rules) == bucket.FailClosed {
			return refusedUnavailable().graphQL()
		}
		return nil
	}

	op.mu.Lock()
	defer op.mu.Unlock()
	op.decision.Limits, op.recharged = result.Limits, true
	if result.Verdict != bucket.Admitted {
		return refusedByLimits(result.Limits, enforced).graphQL()
	}
	if unit == bucket.Points && anyCharged(result.Limits) {
		op.decision.Charged += n
	}
	return nil
}

func anyCharged(limits []bucket.LimitState) bool {
	for i := range limits {
		if limits[i].Charged > 0 {
			return true
		}
	}
	return false
}
