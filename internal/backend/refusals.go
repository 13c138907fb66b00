package backend

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// retryClaim is when it is looked up again what became of a key, once the store answers.
const retryClaim = time.Second

// refusals is a memory of what a store has refused. It answers takes that the store is certain to refuse: it knows of each
// limit up to which amount and until when the limit refuses. A take that could be admitted, because it asks for less or
// because time has passed, always reaches the store. So one tenant that keeps being refused costs the store a few calls a
// second, however often it tries.
//
// The verdict is that of the store, as long as budget comes back by time alone. The states are those of the last answer, with
// what has come back since, and without what takes of other owners or of other replicas were charged. What gives back
// through this memory drops what is known of the tenant; what happens elsewhere is noticed within the age. It admits nothing
// and charges nothing, so that no budget is ever exceeded for its sake.
//
// What was refused to other owners refuses a take that shares a budget with them. Of such takes, of those with a claim, which
// may be replays, and of those with a candidate, which needs judging, the store is asked about CappedCalls a second. Beyond
// that they are refused without, by the budgets that are known. A claim that was not looked up is told to come back when it
// can be.
//
// It works with the stores of package bucket, and with any that hand takes and results on to one of them.
// Refusals of others are not remembered.
type refusals struct {
	// clock tells the time since some date, which is less work than the date itself.
	clock func() time.Duration
	age   time.Duration
	// every is the time between two capped calls of a tenant, of which burst may come at once.
	every, burst time.Duration
	seed         maphash.Seed
	shards       [refusalShards]refusalShard
}

// newRefusals returns an empty memory.
func newRefusals(cfg *GateConfig) *refusals {
	c := &refusals{age: cmp.Or(cfg.RefusalAge, DefaultRefusalAge), seed: maphash.MakeSeed()}
	start := time.Now()
	c.clock = func() time.Duration { return time.Since(start) }
	if clock := cfg.Clock; clock != nil {
		c.clock = func() time.Duration { return clock().Sub(start) }
	}
	c.every = time.Second / time.Duration(cmp.Or(cfg.CappedCalls, DefaultCappedCalls))
	c.burst = time.Second - c.every
	for i := range c.shards {
		c.shards[i].byTenant = map[string]*refusedTenant{}
		c.shards[i].most = max(1, cmp.Or(cfg.MaxRefusals, DefaultMaxRefusals)/refusalShards)
	}
	return c
}

// question is when the store was asked.
type question struct {
	at time.Duration
	// version is that of the shard before.
	version uint64
	// capped says that it was one of the capped calls.
	capped bool
}

// take answers the take, or asks the store and remembers what it has said.
func (c *refusals) take(ctx context.Context, take bucket.Take, ask asking) (bucket.Result, Origin, error) {
	tenant, s := c.shard(take.Tenant)
	sent := question{version: s.version.Load()}
	if s.tenants.Load() > 0 {
		var result bucket.Result
		var origin Origin
		if result, origin, sent.capped = c.plan(s, tenant, &take); origin != FromStore {
			if err := ctx.Err(); err != nil {
				return bucket.Result{}, FromStore, fmt.Errorf("%w: %w", bucket.ErrUnavailable, err)
			}
			if err := take.Check(); err != nil {
				return bucket.Result{}, FromStore, err
			}
			return result, origin, nil
		}
	}
	sent.at = c.clock()
	result, err := ask(ctx, take)
	if err == nil && (result.Verdict != bucket.Admitted || s.tenants.Load() > 0) {
		c.learn(s, tenant, &take, &result, sent)
	}
	return result, FromStore, err
}

// plan answers the take by what is known of the tenant, or leaves it to the store: capped says that this counts as one of
// the calls that are capped.
func (c *refusals) plan(s *refusalShard, tenant string, take *bucket.Take) (result bucket.Result, origin Origin, capped bool) {
	now := c.clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.byTenant[tenant]
	if t == nil {
		return result, FromStore, false
	}
	r, same := t.find(take, now, c.age)
	switch {
	case r == nil:
		s.leave(tenant, t, now)
		return result, FromStore, false
	case !same || !r.completes(take):
		if again := c.nextCall(t, now); again > 0 {
			return r.result(take, now, again), FromCap, false
		}
		t.nextCall = max(t.nextCall, now) + c.every
		return result, FromStore, true
	case now-r.received >= c.age/2 && !r.renewing:
		// One take finds out whether the others are still refused.
		r.renewing = true
		return result, FromStore, false
	default:
		return r.result(take, now, 0), FromMemory, false
	}
}

// nextCall returns how long the tenant has to wait for its next capped call, in whole milliseconds. It has one where that is
// not positive.
func (c *refusals) nextCall(t *refusedTenant, now time.Duration) time.Duration {
	wait := t.nextCall - now - c.burst
	if wait <= 0 {
		return 0
	}
	return wait.Truncate(time.Millisecond) + time.Millisecond
}

// recall answers a take that the store is not to be asked about, by what is known of the tenant: within the age, or if the store
// is away by refusals however old. It changes nothing, and returns false if the take may pass.
func (c *refusals) recall(take *bucket.Take, away bool) (result bucket.Result, origin Origin, ok bool) {
	tenant, s := c.shard(take.Tenant)
	if s.tenants.Load() == 0 || take.Check() != nil {
		return result, FromStore, false
	}
	now, age := c.clock(), c.age
	if away {
		age = forever
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.byTenant[tenant]
	if t == nil {
		return result, FromStore, false
	}
	r, _ := t.find(take, now, age)
	if r == nil {
		return result, FromStore, false
	}
	again, origin := retryClaim, FromMemory
	if !away && !r.completes(take) {
		if again, origin = c.nextCall(t, now), FromCap; again <= 0 {
			return result, FromStore, false
		}
	}
	return r.result(take, now, again), origin, true
}

// learn takes in the answer to a take.
func (c *refusals) learn(s *refusalShard, tenant string, take *bucket.Take, result *bucket.Result, sent question) {
	received := c.clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.byTenant[tenant]
	switch result.Verdict {
	case bucket.Limited, bucket.Never, bucket.Blocked:
		if sent.version == s.version.Load() && result.HoldsFor > 0 && rememberable(take) {
			s.refused(tenant, take, result, sent.at, received, c.age)
		}
		return
	case bucket.Admitted, bucket.Replayed:
	default:
		// A key that is reused or in flight has cost the store as much as a refusal, and can be tried for ever.
		return
	}
	if t == nil {
		return
	}
	if sent.capped {
		t.nextCall -= c.every
	}
	if result.Verdict == bucket.Replayed {
		return
	}
	// What is owed to other limits of the owners, or in the terms of others, comes back as fast now as these say.
	s.remove(t, func(r *refusal) bool { return r.changedBy(take) || r.isOf(take) && received-r.refused >= c.age })
	if r := t.same(take); r != nil && sent.version == s.version.Load() && sent.at >= r.sent && result.HoldsFor > 0 {
		r.hold(result, sent.at, received)
	}
	s.leave(tenant, t, received)
}
