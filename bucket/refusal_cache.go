package bucket

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"time"
)

// Defaults of a [RefusalCacheConfig], used where its field is zero.
const (
	// DefaultRefusalAge is for how long a refusal is answered without the store.
	DefaultRefusalAge = time.Second
	// DefaultMaxRefusals is how many refusals are remembered: some 10 MB, or some 40 MB where
	// the names of owners are as long as are remembered at all, 4 KB for a take.
	DefaultMaxRefusals = 10_000
	// DefaultCappedCalls is how many calls a second a tenant has that is known to be refused.
	DefaultCappedCalls = 5
)

// A call for a tenant of whom nothing is known is not timed, because most end without a refusal: it counts as
// one that took as long as any should.
const (
	unmeasured      = time.Duration(math.MinInt64)
	unmeasuredTakes = 100 * time.Millisecond
)

// The bounds of what a RefusalCacheConfig may ask for.
const (
	maxRefusalAge  = time.Minute
	maxRefusals    = 10_000_000
	maxCappedCalls = 1000
)

// RefusalCacheConfig configures a [RefusalCache]. The zero value is the default in each field.
type RefusalCacheConfig struct {
	// MaxAge is the longest time for which the answer of the store is the ground of refusals, at most a
	// minute. Budget that comes back other than by time, and elsewhere than through this cache, is noticed
	// that much later: what other replicas settle, grant, reset, and set or delete as override records. The
	// store is asked once in each half of it while refusals go on. Zero means [DefaultRefusalAge].
	MaxAge time.Duration
	// MaxEntries bounds what is remembered: one entry for each tenant, and for each set of owners of it, that
	// is refused. When it is full, an entry makes room of the tenant with most among a few. Zero means
	// [DefaultMaxRefusals].
	MaxEntries int
	// CappedCalls is how many takes a second, at most 1000, of one tenant still reach the store although
	// they are known to be refused: to look up an idempotency key, to judge a candidate, or to learn about
	// owners that were not asked about before. Those that are admitted or replayed do not count. Zero
	// means [DefaultCappedCalls].
	CappedCalls int
	// Clock tells the time and is for tests, whose store has a clock that they set: both have to be the
	// same. Nil means the system's clock.
	Clock func() time.Time
}

// RefusalCache stands before a [Store] and answers takes that the store is certain to refuse: it knows what
// the limits had spent when the store refused a take of the same owners under the same limits, and what
// comes back with time, by the arithmetic of the store itself. A take that could be admitted, because it
// asks for less or because time has passed, always reaches the store. So one tenant that keeps being refused
// costs the store a few calls a second, however often it tries.
//
// What it answers has [Result.Origin] set. The verdict is that of the store, as long as budget comes back by
// time alone; the states are those of the last answer, with what has come back since, and without what takes
// of other owners or of other replicas were charged. Settle, Grant, Reset and changes of override records through this cache drop
// what is known of their tenant; what happens elsewhere is noticed within MaxAge. It admits nothing and
// charges nothing, so that no budget is ever exceeded for its sake.
//
// A take with a claim may be a replay, and one with a candidate needs judging: the store is asked about
// CappedCalls of them a second, and beyond that they are refused without. A claim that was not looked up is
// told to come back when it can be.
//
// It works with the stores of this package, and with any that hand takes and results on to one of them.
// Refusals of others are not remembered. It starts no goroutine and is safe for concurrent use. It implements
// [OverrideStore] if the store does.
type RefusalCache struct {
	decorator

	// clock tells the time since some date, which is less work than the date itself.
	clock func() time.Duration
	age   time.Duration
	// every is the time between two capped calls of a tenant, of which burst may come at once.
	every, burst time.Duration
	seed         maphash.Seed
	shards       [refusalShards]refusalShard
}

var (
	_ Store         = (*RefusalCache)(nil)
	_ OverrideStore = (*RefusalCache)(nil)
)

// NewRefusalCache returns an empty cache before the store. The error holds everything that is wrong with the
// configuration.
func NewRefusalCache(store Store, config RefusalCacheConfig) (*RefusalCache, error) {
	var errs []error
	if store == nil {
		errs = append(errs, errors.New("bucket: a refusal cache needs a store; that of NewRedis fits"))
	}
	if config.MaxAge < 0 || config.MaxAge > maxRefusalAge {
		errs = append(errs, fmt.Errorf("bucket: refusals of age %v; up to %v fits", config.MaxAge, maxRefusalAge))
	}
	if config.MaxEntries < 0 || config.MaxEntries > maxRefusals {
		errs = append(errs, fmt.Errorf("bucket: %d refusals; up to %d fit", config.MaxEntries, maxRefusals))
	}
	if config.CappedCalls < 0 || config.CappedCalls > maxCappedCalls {
		errs = append(errs, fmt.Errorf("bucket: %d capped calls a second; up to %d fit", config.CappedCalls, maxCappedCalls))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	c := &RefusalCache{decorator: decorator{next: store}, age: config.MaxAge, seed: maphash.MakeSeed()}
	start := time.Now()
	c.clock = func() time.Duration { return time.Since(start) }
	if config.Clock != nil {
		c.clock = func() time.Duration { return config.Clock().Sub(start) }
	}
	if c.age == 0 {
		c.age = DefaultRefusalAge
	}
	if config.MaxEntries == 0 {
		config.MaxEntries = DefaultMaxRefusals
	}
	if config.CappedCalls == 0 {
		config.CappedCalls = DefaultCappedCalls
	}
	c.every = time.Second / time.Duration(config.CappedCalls)
	c.burst = time.Second - c.every
	for i := range c.shards {
		c.shards[i].most = max(1, config.MaxEntries/refusalShards)
	}
	return c, nil
}

// Take implements [Store].
func (c *RefusalCache) Take(ctx context.Context, take Take) (Result, error) {
	tenant, s := c.shard(take.Tenant)
	plan := plan{version: s.version.Load(), observe: observeRefusals}
	if s.tenants.Load() > 0 && s.knows(tenant) {
		if err := checkContext(ctx); err != nil {
			return Result{}, err
		}
		if err := take.check(); err != nil {
			return Result{}, err
		}
		plan = c.plan(s, tenant, &take)
		if plan.judgment != nil {
			return plan.answer(&take), nil
		}
	}
	take.observe = plan.observe
	sent := unmeasured
	if plan.observe == observeAll {
		sent = c.clock()
	}
	result, err := c.next.Take(ctx, take)
	// A key that is reused or in flight has cost the store as much as a refusal, and can be tried for ever.
	if plan.capped && (result.Verdict == Admitted || result.Verdict == Replayed) && err == nil {
		s.giveBack(tenant, c.every)
	}
	if plan.others && result.Verdict == Admitted && err == nil {
		s.dropOthers(tenant, &take)
	}
	if result.judgment != nil {
		c.remember(s, tenant, &take, &result, plan.version, sent)
		result.judgment = nil
	}
	return result, err
}

// plan is what to do about a take.
type plan struct {
	// version is that of the shard before the store is asked.
	version uint64
	observe observe
	// others says that only refusals under other limits or of other owners are known.
	others bool
	// capped says that the call to the store counts as one of those that are capped.
	capped bool

	// judgment answers the take, as of so many milliseconds after it. Nil means that the store is asked.
	judgment *judgment
	elapsed  int64
	origin   Origin
	// again is when the store may be asked about the claim. Zero means that there is none.
	again time.Duration
}

// answer refuses the take without the store.
func (p *plan) answer(take *Take) Result {
	result := p.judgment.answer(take, p.elapsed)
	result.Origin = p.origin
	if p.again > 0 {
		result.RetryAfter = min(result.RetryAfter, p.again)
		for i := range result.Limits {
			result.Limits[i].RetryAfter = min(result.Limits[i].RetryAfter, p.again)
		}
	}
	return result
}

// plan looks up what is known of the tenant.
func (c *RefusalCache) plan(s *refusalShard, tenant string, take *Take) plan {
	now := c.clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	p := plan{version: s.version.Load(), observe: observeRefusals}
	t := s.byTenant[tenant]
	if t == nil {
		return p
	}
	if len(t.byShape) == 0 {
		s.leave(tenant, t, now)
		return p
	}
	r := s.find(t, c.shape(take), take)
	if r != nil && r.expired(now, c.age) {
		s.remove(t, r)
		s.leave(tenant, t, now)
		r = nil
	}
	if r == nil {
		p.others = true
		if part, elapsed := t.evidence(take, now, c.age); part != nil {
			c.cap(&p, t, take, part, elapsed, now)
		}
		return p
	}
	p.observe = observeAll
	// What is judged is as late as it can be, so that nothing is refused that could pass; what is told is as
	// early as it can be, so that nobody comes back before it can.
	latest, earliest := r.elapsed(now)
	switch {
	case !r.judgment.refuses(take.Amounts, latest):
	case (take.Claim != nil || take.Candidate != nil) && r.judgment.blocked == nil:
		c.cap(&p, t, take, r.judgment, earliest, now)
	case now-r.received >= c.age/2 && !r.renewing:
		// One take finds out whether the others are still refused.
		r.renewing = true
	default:
		p.judgment, p.elapsed, p.origin = r.judgment, earliest, FromCache
	}
	return p
}

// cap lets a take to the store that is known to be refused, if the tenant has a call left.
func (c *RefusalCache) cap(p *plan, t *refusedTenant, take *Take, known *judgment, elapsed int64, now time.Duration) {
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

// Settle implements [Store].
func (c *RefusalCache) Settle(ctx context.Context, settlement Settlement) (Settled, error) {
	if settlement.givesBack() {
		defer c.drop(settlement.Receipt.tenant)
	}
	return c.next.Settle(ctx, settlement)
}

// givesBack reports whether less is paid in the end than was taken.
func (s *Settlement) givesBack() bool {
	if s.Receipt.IsZero() {
		return false
	}
	for _, charged := range s.Receipt.amounts.all() {
		for i := range s.Actual {
			if s.Actual[i].Unit == charged.Unit && s.Actual[i].N < charged.N {
				return true
			}
		}
	}
	return false
}

// Grant implements [Store].
func (c *RefusalCache) Grant(ctx context.Context, tenant string, buckets []Bucket, amounts Amounts) ([]LimitState, error) {
	defer c.drop(tenant)
	return c.next.Grant(ctx, tenant, buckets, amounts)
}

// Reset implements [Store].
func (c *RefusalCache) Reset(ctx context.Context, tenant string, buckets []Bucket) error {
	defer c.drop(tenant)
	return c.next.Reset(ctx, tenant, buckets)
}

// SetOverride implements [OverrideStore].
func (c *RefusalCache) SetOverride(ctx context.Context, tenant string, override Override) (*Override, error) {
	defer c.drop(tenant)
	return c.decorator.SetOverride(ctx, tenant, override)
}

// DeleteOverride implements [OverrideStore].
func (c *RefusalCache) DeleteOverride(ctx context.Context, tenant string, owner Owner, limit string) (*Override, error) {
	defer c.drop(tenant)
	return c.decorator.DeleteOverride(ctx, tenant, owner, limit)
}

// ClearOverrides implements [OverrideStore].
func (c *RefusalCache) ClearOverrides(ctx context.Context, tenant string) ([]Override, error) {
	defer c.drop(tenant)
	return c.decorator.ClearOverrides(ctx, tenant)
}
