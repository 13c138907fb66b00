package backend

import (
	"context"
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// Foresee is [Gate.Foresee].
func (b *Store) Foresee(ctx context.Context, take *bucket.Take) (bucket.Result, bool) {
	result, origin, ok := b.gate.Foresee(ctx, take)
	if ok {
		b.watcher.StoreSpared(ctx, b.name, string(origin))
	}
	return result, ok
}

// foreseeNear asks a store in this process, which costs no more than remembering. It is asked for the take only where a
// limit has too little, and gets back what time has brought in between. It says nothing of a take with a claim or a candidate.
func foreseeNear(ctx context.Context, memory *bucket.Memory, take *bucket.Take) (bucket.Result, bool) {
	if take.Claim != nil || take.Candidate != nil {
		return bucket.Result{}, false
	}
	states, err := memory.Peek(ctx, take.Tenant, take.Buckets)
	if err != nil || !slices.ContainsFunc(states, func(l bucket.LimitState) bool {
		return enforces(&l) && slices.ContainsFunc(take.Amounts, func(a bucket.Amount) bool {
			return a.Unit == l.Limit.Unit && a.N > l.Remaining
		})
	}) {
		return bucket.Result{}, false
	}
	result, err := memory.Take(ctx, *take)
	if err != nil {
		return bucket.Result{}, false
	}
	if result.Verdict != bucket.Admitted {
		return result, true
	}
	nothing := make(bucket.Amounts, len(take.Amounts))
	for i, a := range take.Amounts {
		nothing[i] = bucket.Amount{Unit: a.Unit}
	}
	// A store in this process does not fail, and what it kept would be one request.
	_, _ = memory.Settle(ctx, bucket.Settlement{Receipt: result.Receipt, Actual: nothing})
	return bucket.Result{}, false
}
