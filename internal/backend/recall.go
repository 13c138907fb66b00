package backend

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// TakeShared is [Store.Take] of budgets that tenants share. It counts as a call of the payer, who is bounded in how many
// are under way: those who share the budgets do not share the bound.
func (b *Store) TakeShared(
	ctx context.Context, take *bucket.Take, result *bucket.Result, payer string,
) (time.Duration, error) {
	return b.take(ctx, take, result, func(ctx context.Context, take bucket.Take) (bucket.Result, Origin, error) {
		return b.gate.TakeShared(ctx, take, payer)
	})
}

// Recall answers a take that the store need not be asked about, because it is known to refuse it. It returns false if it
// is not known, or if the store is to say whether it still holds.
func (b *Store) Recall(ctx context.Context, take *bucket.Take) (bucket.Result, bool) {
	result, origin, ok := b.gate.Recall(take)
	if ok {
		b.watcher.StoreSpared(ctx, b.name, string(origin))
	}
	return result, ok
}

// TakeShared is [Gate.Take] of budgets that tenants share: the place that it takes is one of the payer.
func (g *Gate) TakeShared(ctx context.Context, take bucket.Take, payer string) (bucket.Result, Origin, error) {
	return g.take(ctx, take, func(ctx context.Context, take bucket.Take) (bucket.Result, error) {
		place, ok := g.bulkhead.enter(payer, false)
		if !ok {
			return bucket.Result{}, fmt.Errorf("%w: %d at once", ErrTenantBusy, g.bulkhead.most)
		}
		defer g.bulkhead.leave(place)
		return g.store.Take(ctx, take)
	})
}

// Foresee answers a take that is certain to be refused, without a call to a store that is outside of this process: as far
// as this instance remembers what such a one has refused to any operation of the tenant. It changes nothing. It returns false
// if the take may pass.
func (b *Store) Foresee(ctx context.Context, take *bucket.Take) (bucket.Result, bool) {
	result, ok := b.gate.Foresee(ctx, take)
	if ok {
		b.watcher.StoreSpared(ctx, b.name, string(FromMemory))
	}
	return result, ok
}

// Foresee is [Store.Foresee].
func (g *Gate) Foresee(ctx context.Context, take *bucket.Take) (bucket.Result, bool) {
	if memory, near := g.store.(*bucket.Memory); near {
		return foreseeNear(ctx, memory, take)
	}
	if g.refusals == nil {
		return bucket.Result{}, false
	}
	return g.refusals.foresee(take)
}

// foreseeNear asks a store in this process, which costs no more than remembering. It is asked for the take only where a
// limit has too little, and gets back what time has brought in between.
func foreseeNear(ctx context.Context, memory *bucket.Memory, take *bucket.Take) (bucket.Result, bool) {
	states, err := memory.Peek(ctx, take.Tenant, take.Buckets)
	if err != nil || !slices.ContainsFunc(states, func(l bucket.LimitState) bool {
		return l.Limit.Mode == bucket.Enforce && !l.Limit.Soft && slices.ContainsFunc(take.Amounts, func(a bucket.Amount) bool {
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

// foresee answers a take by what was refused to others of the tenant with the same owners among theirs.
func (c *refusals) foresee(take *bucket.Take) (bucket.Result, bool) {
	tenant, s := c.shard(take.Tenant)
	if s.tenants.Load() == 0 || take.Check() != nil {
		return bucket.Result{}, false
	}
	now := c.clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.byTenant[tenant]
	if t == nil {
		return bucket.Result{}, false
	}
	known, elapsed := t.evidence(take, now, c.age)
	if known == nil {
		return bucket.Result{}, false
	}
	return known.Answer(take, elapsed), true
}

// Recall is [Store.Recall].
func (g *Gate) Recall(take *bucket.Take) (bucket.Result, Origin, bool) {
	if g.refusals == nil {
		return bucket.Result{}, FromStore, false
	}
	p, ok := g.refusals.recall(take)
	if !ok {
		return bucket.Result{}, FromStore, false
	}
	return p.answer(take), p.origin, true
}

// recall is what take would answer without the store. It changes nothing: the take still follows if there is no answer.
func (c *refusals) recall(take *bucket.Take) (p plan, ok bool) {
	tenant, s := c.shard(take.Tenant)
	if s.tenants.Load() == 0 || take.Check() != nil {
		return p, false
	}
	now := c.clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.byTenant[tenant]
	if t == nil {
		return p, false
	}
	r := s.find(t, c.shape(take), take)
	if r == nil || r.expired(now, c.age) {
		return p, false
	}
	latest, earliest := r.elapsed(now)
	if !r.judgment.Refuses(take, latest) {
		return p, false
	}
	p = plan{judgment: r.judgment, elapsed: earliest, origin: FromMemory}
	if (take.Claim != nil || take.Candidate != nil) && !r.judgment.Blocks() {
		wait := max(t.nextCall, now) - now - c.burst
		if p.origin = FromCap; take.Claim != nil {
			p.again = wait.Truncate(time.Millisecond) + time.Millisecond
		}
		return p, wait > 0
	}
	return p, r.renewing || now-r.received < c.age/2
}
