package bucket

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
	"github.com/gqlgen-ratelimit/ratelimit/lua"
)

// What a Memory holds unless told otherwise, and the least that can be told.
const (
	defaultMaxEntries = 400_000
	defaultMaxBytes   = 64 << 20
	leastMaxBytes     = 1 << 20
)

// MemoryConfig configures a [Memory]. The zero value is ready to use.
type MemoryConfig struct {
	// Clock tells the time, in whole milliseconds from 1970 on; it may be called by several goroutines at once, and must not panic.
	// Nil means the system's clock.
	Clock func() time.Time
	// MaxEntries bounds how much is remembered: each owner, each record of an idempotency key and each
	// settled receipt is an entry, and a stored answer is one more for every 256 bytes. A quarter is for
	// records, answers and receipts, the rest for owners; neither displaces the other. There may be as many
	// override records besides. Zero means 400 000: 300 000 owners. More than 2^29 count as 2^29. A negative
	// number is a mistake, which every call reports as [ErrInvalid].
	//
	// When a part has no more room, in entries or in bytes, one of a sample of its entries makes some: one that has
	// expired, else one of the tenant that takes most of what is short, and of these the one that is nearest to being forgotten anyway. Choose
	// both bounds well above what is in use at once, because a budget that makes room is full again, and a key
	// that does is new: [Memory.Evicted] counts such budgets.
	MaxEntries int
	// MaxBytes bounds the memory, in bytes, that entries take with their names and what finds them. Five
	// eighths are for owners, two for records, answers and receipts, and one for override records. An owner of four
	// token buckets and names of 20 bytes counts 128, of which it takes 100 to 120. The store takes a few MiB more
	// at most, for pages that are used in part. Zero means 64 MiB: room for 330 000 such owners. A million needs 200 MiB, and a
	// MaxEntries of 1 400 000. Less than 1 MiB is a mistake, which every call reports as [ErrInvalid].
	MaxBytes int
}

// Memory is a [Store] in the memory of one process: for tests, for a single replica, and for running
// without Redis. It starts no goroutine; expired entries are removed a few at a time by the calls
// that come later. It is safe for concurrent use. Its errors are [ErrInvalid], or [ErrUnavailable] when the caller's context had
// already ended.
type Memory struct {
	core

	clock  func() time.Time
	seed   maphash.Seed
	shards [memoryShards]shard
	// left is what all shards together have room for, by pool.
	left [poolKinds]room
	// turn counts the looks of shards at others.
	turn atomic.Uint32
	// hashed has the bits of a hash that are used: tests clear some so that keys meet.
	hashed uint64
	// dropped is told the tenant of each budget that makes room before it is full, as that is kept, and when. Nil is told nothing.
	dropped func(tenant string, now int64)
	// evicted is written where room is made and nowhere else, so that reading it costs a take next to nothing.
	evicted atomic.Uint64
}

var (
	_ Store         = (*Memory)(nil)
	_ OverrideStore = (*Memory)(nil)
	_ UsageStore    = (*Memory)(nil)

	_ EvictionCounter = (*Memory)(nil)
)

// NewMemory returns an empty store.
func NewMemory(cfg MemoryConfig) *Memory {
	m := &Memory{core: core{scripts: lua.Load(), mistake: cfg.check()}, clock: cfg.Clock, seed: maphash.MakeSeed(), hashed: math.MaxUint64}
	m.engine = m
	entries := int64(min(cmp.Or(max(0, cfg.MaxEntries), defaultMaxEntries), maxMemoryEntries))
	records := max(1, entries/recordShare)
	eighth := int64(cmp.Or(max(0, cfg.MaxBytes), defaultMaxBytes)) / byteShare
	m.left[bucketPool].add(weight{max(1, entries-records), eighth * (byteShare - recordBytes - overrideBytes)}, 1)
	m.left[recordPool].add(weight{records, eighth * recordBytes}, 1)
	m.left[overridePool].add(weight{entries, eighth * overrideBytes}, 1)
	// Beside the largest answer stands what is kept of its key.
	m.largest = int(min((records-1)*answerUnit, eighth*recordBytes/(unusedShare+1)*unusedShare-pageBytes))
	for i := range m.shards {
		m.shards[i].store = m
	}
	return m
}

// check returns what is wrong with the configuration.
func (c *MemoryConfig) check() error {
	var mistakes []string
	if c.MaxEntries < 0 {
		mistakes = append(mistakes, fmt.Sprintf("MemoryConfig.MaxEntries is %d; 1 or more fits, and 0 is the default", c.MaxEntries))
	}
	if c.MaxBytes != 0 && c.MaxBytes < leastMaxBytes {
		mistakes = append(mistakes, fmt.Sprintf("MemoryConfig.MaxBytes is %d; %d or more fits, and 0 is the default", c.MaxBytes, leastMaxBytes))
	}
	if mistakes == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrInvalid, strings.Join(mistakes, "; "))
}

// Evicted implements [EvictionCounter].
func (m *Memory) Evicted() uint64 { return m.evicted.Load() }

// lock returns the locked shard of the tenant, the name under which it is kept there, and the time.
// The clock is read under the lock, so that the calls of a tenant see it in their own order.
func (m *Memory) lock(name string) (*shard, tenantKey, int64) {
	tenant := m.tenant(memoryName(name))
	s := &m.shards[tenant.hash%memoryShards]
	s.mu.Lock()
	now := s.now()
	if s.calls++; s.due > 0 || s.calls%sweepEvery == 0 {
		s.sweep(now)
	}
	return s, tenant, now
}

// tenant is that of a name as it is kept.
func (m *Memory) tenant(name string) tenantKey {
	return tenantKey{name: name, hash: maphash.String(m.seed, name)}
}

// Take implements [Store].
func (m *Memory) Take(ctx context.Context, take Take) (result Result, err error) {
	if err := take.Check(); err != nil {
		return Result{}, err
	}
	if m.check(ctx) == nil && !take.empty() && m.takeHere(&take, &result) {
		return result, nil
	}
	return m.core.Take(ctx, take)
}

// takeHere does a take of a tenant without override records, without making the call of a script of it. It reports whether it did.
func (m *Memory) takeHere(take *Take, result *Result) bool {
	s, tenant, now := m.lock(take.Tenant)
	defer s.mu.Unlock()
	if s.overridesOf(tenant) != nil {
		return false
	}
	return take.isFast() && s.takeFast(tenant, take, result, now) || s.takeDirect(tenant, take, result, now)
}

// keep keeps the state of a bucket, from now on the store's own.
func (m *Memory) keep(name string, owner *Owner, value []byte, expires int64) {
	s, tenant, now := m.lock(name)
	defer s.mu.Unlock()
	key := s.bucketKey(tenant, owner)
	s.write(&key, &state.Write{Value: value, Expiry: expires}, now)
	s.makeRoom()
}

// SetOverride implements [OverrideStore]. All tenants together may have as many records as the store has
// entries.
func (m *Memory) SetOverride(ctx context.Context, tenant string, override Override) (*Override, error) {
	if left := &m.left[overridePool]; left.entries.Load() <= 0 || left.bytes.Load() <= 0 {
		// Those of tenants that never come back would hold room for ever.
		m.sweepOverrides()
	}
	return m.core.SetOverride(ctx, tenant, override)
}

// run implements [engine].
func (m *Memory) run(ctx context.Context, c *call) (reply, error) {
	if err := checkContext(ctx); err != nil {
		return reply{}, err
	}
	s, tenant, now := m.lock(c.tenant)
	defer s.mu.Unlock()
	if c.script == &m.scripts.Override {
		c.extra = s.roomForOverrides(tenant)
	}
	c.dated(now)
	keys, values := make([]entryKey, len(c.keys)), make([][]byte, len(c.keys))
	for i := range c.keys {
		keys[i] = s.keyOf(tenant, &c.keys[i])
	}
	// What has expired is removed, and then others are elsewhere.
	for removed := s.removed + 1; removed != s.removed; {
		removed = s.removed
		for i := range keys {
			_, e := s.find(&keys[i], now)
			values[i] = s.valueOf(e)
		}
	}
	decided, err := c.script.Decide(state.Call{Values: values, Args: texts(c.arguments(0, now)), Now: now})
	if err != nil {
		return reply{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	for i := range decided.Writes {
		w := &decided.Writes[i]
		s.write(&keys[w.Key], w, now)
	}
	s.makeRoom()
	return newReply(string(decided.Text))
}

// texts are the arguments of a call.
func texts(args []any) []string {
	all := make([]string, len(args))
	for i, arg := range args {
		switch arg := arg.(type) {
		case string:
			all[i] = arg
		case []byte:
			all[i] = string(arg)
		}
	}
	return all
}

// overridesOf returns what is kept of the override records of a tenant, nil if there are none.
func (s *shard) overridesOf(tenant tenantKey) []byte {
	if s.pools[overridePool].n == 0 {
		return nil
	}
	key := s.key(tenant, overridesKey, "")
	_, e := s.lookup(&key)
	return s.valueOf(e)
}

// roomForOverrides returns how many override records the tenant may have.
func (s *shard) roomForOverrides(tenant tenantKey) int64 {
	left := &s.store.left[overridePool]
	if left.bytes.Load() <= 0 {
		return 0
	}
	return min(maxOverrides, left.entries.Load()+state.CountOverrides(s.overridesOf(tenant)))
}

// sweepOverrides removes the override records of all tenants that have expired. No shard may be locked.
func (m *Memory) sweepOverrides() {
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		now, next := s.now(), newGeneration()
		for _, key := range s.keys(overridePool) {
			if key.kind != overridesKey {
				continue
			}
			_, e := s.lookup(&key)
			if w, expired := state.ForgetExpired(s.valueOf(e), string(next[:]), now); expired {
				s.write(&key, &w, now)
			}
		}
		s.mu.Unlock()
	}
}

// read implements [engine].
func (m *Memory) read(ctx context.Context, tenant string, key address) ([]byte, error) {
	if err := checkContext(ctx); err != nil {
		return nil, err
	}
	s, kept, now := m.lock(tenant)
	defer s.mu.Unlock()
	of := s.keyOf(kept, &key)
	_, e := s.find(&of, now)
	return bytes.Clone(s.valueOf(e)), nil
}

// remove implements [engine].
func (m *Memory) remove(_ context.Context, tenant string, keys []address) error {
	s, kept, now := m.lock(tenant)
	defer s.mu.Unlock()
	for i := range keys {
		key := s.keyOf(kept, &keys[i])
		s.write(&key, &state.Write{}, now)
	}
	return nil
}

// estimate implements [engine].
func (m *Memory) estimate(*call) int64 {
	if m.clock != nil {
		return dated(m.clock())
	}
	return dated(time.Now())
}
