package bucket

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/fleet"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// defaultMaxEntries is how many entries a Memory holds unless told otherwise.
const defaultMaxEntries = 200_000

// MemoryConfig configures a [Memory]. The zero value is ready to use.
type MemoryConfig struct {
	// Clock tells the time, in whole milliseconds; it may be called by several goroutines at once.
	// Nil means the system's clock.
	Clock func() time.Time
	// MaxEntries bounds what is remembered: each owner, each record of an idempotency key and each
	// settled receipt is an entry, and a stored answer is one more for every 256 bytes. A quarter is for
	// records, answers and receipts, the rest for owners; neither displaces the other. When a part is
	// full, the entry that is nearest to being forgotten anyway, among a sample of those of the tenants
	// with most, makes room. Choose it well above what is in use at once, because a budget that makes
	// room is full again, and a key that does is new. Zero means 200 000: some 50 MB. A negative number is a mistake, which
	// every call reports as [ErrInvalid].
	MaxEntries int
}

// Memory is a [Store] in the memory of one process: for tests, for a single replica, and for running
// without Redis. It starts no goroutine; expired entries are removed a few at a time by the calls
// that come later. It is safe for concurrent use. Its errors are [ErrInvalid], or [ErrUnavailable] when the caller's context had
// already ended.
type Memory struct {
	clock func() time.Time
	// mistake is what is wrong with the configuration, or nil.
	mistake error
	seed    maphash.Seed
	shards  [memoryShards]shard
	// left is the weight that all shards together have room for, by pool.
	left [poolKinds]atomic.Int64
	// records is the whole capacity of the pool of records.
	records int64
	// overrides is how many override records there are, and maxOverrides how many there may be.
	overrides    atomic.Int64
	maxOverrides int64
	fleet        memoryFleet
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory(cfg MemoryConfig) *Memory {
	m := &Memory{clock: cfg.Clock, seed: maphash.MakeSeed()}
	if cfg.MaxEntries < 0 {
		m.mistake = fmt.Errorf("%w: MemoryConfig.MaxEntries is %d; 1 or more fits, and 0 is the default", ErrInvalid, cfg.MaxEntries)
	}
	total := cmp.Or(max(0, cfg.MaxEntries), defaultMaxEntries)
	m.maxOverrides = int64(total)
	m.records = max(1, int64(total)/recordShare)
	m.left[recordPool].Store(m.records)
	m.left[bucketPool].Store(max(1, int64(total)-m.records))
	for i := range m.shards {
		m.shards[i].store = m
		m.shards[i].index = make(map[uint64]*entry)
	}
	return m
}

// check returns why nothing can be done in a call.
func (m *Memory) check(ctx context.Context) error {
	if m.mistake != nil {
		return m.mistake
	}
	return checkContext(ctx)
}

// fullest returns the shard with most in the pool, of which a weight in the asking shard does not count
// because it is to stay. It returns nil if there is nothing. The answer may be a little out of date.
func (m *Memory) fullest(kind poolKind, asking *shard, stays int64) *shard {
	var fullest *shard
	most := int64(0)
	for i := range m.shards {
		s := &m.shards[i]
		used := s.pools[kind].used.Load()
		if s == asking {
			used -= stays
		}
		if used > most {
			fullest, most = s, used
		}
	}
	return fullest
}

// lock returns the locked shard of the tenant, the name under which it is kept there, and the time.
// The clock is read under the lock, so that the calls of a tenant see it in their own order.
func (m *Memory) lock(name string) (*shard, tenantKey, int64) {
	name = memoryName(name)
	tenant := tenantKey{name: name, hash: maphash.String(m.seed, name)}
	s := &m.shards[tenant.hash%memoryShards]
	s.mu.Lock()
	now := s.now()
	s.sweep(now)
	return s, tenant, now
}

// Take implements [Store].
func (m *Memory) Take(ctx context.Context, take Take) (result Result, err error) {
	if err := m.check(ctx); err != nil {
		return Result{}, err
	}
	if err := take.Check(); err != nil {
		return Result{}, err
	}
	if take.empty() {
		return Result{Verdict: Admitted}, nil
	}
	s, tenant, now := m.lock(take.Tenant)
	defer s.mu.Unlock()
	var candidate []Bucket
	if take.Candidate != nil {
		candidate = take.Candidate.Buckets
	}
	until, unused := int64(maxDate), []*Override(nil)
	if len(s.overrides) > 0 {
		live := len(take.Buckets)
		governed := s.govern(tenant, slices.Concat(take.Buckets, candidate), live, take.Owners, now)
		until, unused = governed.until, governed.unused
		if governed.blocked != nil {
			return blockedResult(&take, governed.blocked, now, until), nil
		}
		take.Buckets, candidate = governed.buckets[:live:live], governed.buckets[live:]
	}
	judged := true
	// The fast take keeps no account of what it does.
	if take.Claim != nil || take.ObserveAdmitted || !s.takeFast(&take, tenant, now, &result) {
		result, judged = s.take(&take, tenant, now)
		result.until(until)
	}
	result.unused = unused
	if judged && len(candidate) > 0 {
		result.Candidate = s.tryCandidate(&take, candidate, tenant, now)
	}
	return result, nil
}

// Settle implements [Store].
func (m *Memory) Settle(ctx context.Context, settlement Settlement) (Settled, error) {
	if err := m.check(ctx); err != nil {
		return Settled{}, err
	}
	if err := settlement.check(); err != nil {
		return Settled{}, err
	}
	receipt, end := &settlement.Receipt, settlement.Claim
	if receipt.IsZero() && end == nil {
		return Settled{}, nil
	}
	s, tenant, now := m.lock(settlement.Tenant())
	defer s.mu.Unlock()

	if end != nil {
		if !s.endClaim(tenant, end, now) {
			return Settled{}, nil
		}
	} else if !s.markSettled(tenant, receipt, now) {
		return Settled{}, nil
	}
	limits := s.change(tenant, receipt.buckets, now, func(k int, r *rule, was state.Spent) state.Spent {
		charged, actual := settlement.settleAmounts(k, r)
		return r.Settle(was, charged, actual, receipt.takenAt, now)
	})
	return Settled{Applied: true, Limits: limits}, nil
}

// Renew implements [Store].
func (m *Memory) Renew(ctx context.Context, tenant string, claim *idempotency.Claim) (bool, error) {
	if err := m.check(ctx); err != nil {
		return false, err
	}
	if err := checkRenewal(claim); err != nil {
		return false, err
	}
	s, kept, now := m.lock(tenant)
	defer s.mu.Unlock()
	e := s.find(s.key(kept, recordEntry, claim.RecordName()), now)
	if e == nil || !e.record.Holds(claim.Attempt, now) {
		return false, nil
	}
	lease, _ := leaseAndTTL(claim)
	e.record.Leased = now + lease
	return true, nil
}

// Peek implements [Store].
func (m *Memory) Peek(ctx context.Context, tenant string, buckets []Bucket) ([]LimitState, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	if err := checkBuckets(buckets); err != nil {
		return nil, err
	}
	s, kept, now := m.lock(tenant)
	defer s.mu.Unlock()
	governed := s.govern(kept, buckets, len(buckets), nil, now)
	buckets = governed.buckets
	var entries [MaxLimits]*entry
	var spends spentArray
	s.load(kept, buckets, &entries, &spends, now)
	return changed(buckets, &spends, &spends, now), nil
}

// Grant implements [Store].
func (m *Memory) Grant(ctx context.Context, tenant string, buckets []Bucket, amounts Amounts) ([]LimitState, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	if err := checkBuckets(buckets); err != nil {
		return nil, err
	}
	if err := checkAmounts(amounts); err != nil {
		return nil, err
	}
	s, kept, now := m.lock(tenant)
	defer s.mu.Unlock()
	governed := s.govern(kept, buckets, len(buckets), nil, now)
	return s.change(kept, governed.buckets, now, func(_ int, r *rule, was state.Spent) state.Spent {
		return r.Grant(was, amounts.Of(r.limit.Unit), now)
	}), nil
}

// Reset implements [Store].
func (m *Memory) Reset(ctx context.Context, tenant string, buckets []Bucket) error {
	if err := m.check(ctx); err != nil {
		return err
	}
	if err := checkBuckets(buckets); err != nil {
		return err
	}
	s, kept, _ := m.lock(tenant)
	defer s.mu.Unlock()
	for i := range buckets {
		if e := s.bucket(kept, &buckets[i].Owner); e != nil {
			s.remove(e)
		}
	}
	return nil
}

// memoryFleet counts the instances that share a Memory. The zero value has none.
type memoryFleet struct {
	mu     sync.Mutex
	living map[[8]byte]int64
}

// Beat is as [Redis.Beat].
func (m *Memory) Beat(ctx context.Context, instance [8]byte) (int, error) {
	if err := m.check(ctx); err != nil {
		return 0, err
	}
	now := time.Now().UnixMilli()
	if m.clock != nil {
		now = m.clock().UnixMilli()
	}
	f := &m.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.living == nil {
		f.living = make(map[[8]byte]int64)
	}
	life := fleet.BeatLife.Milliseconds()
	for other, heard := range f.living {
		if heard <= now-life || heard > now+life {
			delete(f.living, other)
		}
	}
	if len(f.living) <= fleet.MaxInstances {
		f.living[instance] = now
	}
	return len(f.living), nil
}
