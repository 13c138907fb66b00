package backend

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"math"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// refusals is a memory of what a store has refused. It answers takes that the store is certain to refuse: it knows
// what the limits had spent when the store refused a take of the same owners under the same limits, and what
// comes back with time, by the arithmetic of the store itself. A take that could be admitted, because it
// asks for less or because time has passed, always reaches the store. So one tenant that keeps being refused
// costs the store a few calls a second, however often it tries.
//
// The verdict is that of the store, as long as budget comes back by time alone; the states are those of the last
// answer, with what has come back since, and without what takes of other owners or of other replicas were charged.
// What gives back through this memory drops what is known of the tenant; what happens elsewhere is noticed within the
// age. It admits nothing and charges nothing, so that no budget is ever exceeded for its sake.
//
// A take with a claim may be a replay, and one with a candidate needs judging: the store is asked about
// CappedCalls of them a second, and beyond that they are refused without. A claim that was not looked up is
// told to come back when it can be.
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
		c.shards[i].most = max(1, cmp.Or(cfg.MaxRefusals, DefaultMaxRefusals)/refusalShards)
	}
	return c
}

// take answers the take, or asks the store and remembers what it has said.
func (c *refusals) take(ctx context.Context, take bucket.Take, ask func(context.Context, bucket.Take) (bucket.Result, error)) (bucket.Result, Origin, error) {
	tenant, s := c.shard(take.Tenant)
	next := plan{version: s.version.Load()}
	if s.tenants.Load() > 0 && s.knows(tenant) {
		if err := ctx.Err(); err != nil {
			return bucket.Result{}, FromStore, fmt.Errorf("%w: %w", bucket.ErrUnavailable, err)
		}
		if err := take.Check(); err != nil {
			return bucket.Result{}, FromStore, err
		}
		next = c.plan(s, tenant, &take)
		if next.judgment != nil {
			return next.answer(&take), next.origin, nil
		}
	}
	take.Observe, take.ObserveAdmitted = true, next.observeAdmitted
	sent := c.clock()
	result, err := ask(ctx, take)
	// A key that is reused or in flight has cost the store as much as a refusal, and can be tried for ever.
	if next.capped && (result.Verdict == bucket.Admitted || result.Verdict == bucket.Replayed) && err == nil {
		s.giveBack(tenant, c.every)
	}
	if next.expired && result.Verdict == bucket.Admitted && err == nil {
		c.dropExpired(s, tenant, &take)
	}
	if result.Judgment != nil {
		c.remember(s, tenant, &take, &result, next.version, sent)
		result.Judgment = nil
	}
	if result.Verdict == bucket.Admitted && err == nil && s.tenants.Load() > 0 {
		s.dropOthers(tenant, &take)
	}
	return result, FromStore, err
}

// plan is what to do about a take.
type plan struct {
	// version is that of the shard before the store is asked.
	version uint64
	// observeAdmitted says that the judgment of an admission is to be remembered.
	observeAdmitted bool
	// expired says that a refusal is known that is too old, which is kept for when the store cannot say whether it still
	// holds.
	expired bool
	// capped says that the call to the store counts as one of those that are capped.
	capped bool

	// judgment answers the take, as of so many milliseconds after it. Nil means that the store is asked.
	judgment *bucket.Judgment
	elapsed  int64
	origin   Origin
	// again is when the store may be asked about the claim. Zero means that there is none.
	again time.Duration
}

// answer refuses the take without the store.
func (p *plan) answer(take *bucket.Take) bucket.Result {
	result := p.judgment.Answer(take, p.elapsed)
	if p.again > 0 {
		result.RetryAfter = min(result.RetryAfter, p.again)
		for i := range result.Limits {
			result.Limits[i].RetryAfter = min(result.Limits[i].RetryAfter, p.again)
		}
	}
	return result
}

// plan looks up what is known of the tenant.
func (c *refusals) plan(s *refusalShard, tenant string, take *bucket.Take) plan {
	now := c.clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	p := plan{version: s.version.Load()}
	t := s.byTenant[tenant]
	if t == nil {
		return p
	}
	if len(t.byShape) == 0 {
		s.leave(tenant, t, now)
		return p
	}
	r := s.find(t, c.shape(take), take)
	if p.expired = r != nil && r.expired(now, c.age); r == nil || p.expired {
		if part, elapsed := t.evidence(take, now, c.age); part != nil {
			c.cap(&p, t, take, part, elapsed, now)
		}
		return p
	}
	p.observeAdmitted = true
	// What is judged is as late as it can be, so that nothing is refused that could pass; what is told is as
	// early as it can be, so that nobody comes back before it can.
	latest, earliest := r.elapsed(now)
	switch {
	case !r.judgment.Refuses(take, latest):
	case (take.Claim != nil || take.Candidate != nil) && !r.judgment.Blocks():
		c.cap(&p, t, take, r.judgment, earliest, now)
	case now-r.received >= c.age/2 && !r.renewing:
		// One take finds out whether the others are still refused.
		r.renewing = true
	default:
		p.judgment, p.elapsed, p.origin = r.judgment, earliest, FromMemory
	}
	return p
}

// forever is an age that no refusal reaches.
const forever = time.Duration(math.MaxInt64)

// retryClaim is when it is looked up again what became of a key, once the store answers.
const retryClaim = time.Second

// known answers a take that the store cannot answer by what it has refused, however long ago.
func (c *refusals) known(take *bucket.Take) (bucket.Result, bool) {
	tenant, s := c.shard(take.Tenant)
	if s.tenants.Load() == 0 || take.Check() != nil {
		return bucket.Result{}, false
	}
	p := c.knownPlan(s, tenant, take)
	if p.judgment == nil {
		return bucket.Result{}, false
	}
	if take.Claim != nil {
		p.again = retryClaim
	}
	return p.answer(take), true
}

func (c *refusals) knownPlan(s *refusalShard, tenant string, take *bucket.Take) (p plan) {
	now := c.clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.byTenant[tenant]
	if t == nil {
		return p
	}
	if r := s.find(t, c.shape(take), take); r != nil && !r.expired(now, forever) {
		latest, earliest := r.elapsed(now)
		if r.judgment.Refuses(take, latest) {
			p.judgment, p.elapsed = r.judgment, earliest
			return p
		}
	}
	p.judgment, p.elapsed = t.evidence(take, now, forever)
	return p
}

// cap lets a take to the store that is known to be refused, if the tenant has a call left.
func (c *refusals) cap(p *plan, t *refusedTenant, take *bucket.Take, known *bucket.Judgment, elapsed int64, now time.Duration) {
	t.nextCall = max(t.nextCall, now)
	wait := t.nextCall - now - c.burst
	if wait <= 0 {
		p.capped = true
		t.nextCall += c.every
		return
	}
	p.judgment, p.elapsed, p.origin = known, elapsed, FromCap
	if take.Claim != nil {
		p.again = wait.Truncate(time.Millisecond) + time.Millisecond
	}
}
