package bucket

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
	"github.com/gqlgen-ratelimit/ratelimit/lua"
)

// defaultMaxEntries is how many entries a Memory holds unless told otherwise.
const defaultMaxEntries = 200_000

// MemoryConfig configures a [Memory]. The zero value is ready to use.
type MemoryConfig struct {
	// Clock tells the time, in whole milliseconds from 1970 on; it may be called by several goroutines at once, and must not panic.
	// Nil means the system's clock.
	Clock func() time.Time
	// MaxEntries bounds what is remembered: each owner, each record of an idempotency key and each
	// settled receipt is an entry, and a stored answer is one more for every 256 bytes. A quarter is for
	// records, answers and receipts, the rest for owners; neither displaces the other. When a part is
	// full, the entry that is nearest to being forgotten anyway, among a sample of those of the tenants
	// with most, makes room. Choose it well above what is in use at once, because a budget that makes
	// room is full again, and a key that does is new: [Memory.Evicted] counts such budgets. Zero means 200 000: some 45 MB. A negative number is a mistake, which
	// every call reports as [ErrInvalid].
	MaxEntries int
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
	// left is the weight that all shards together have room for, by pool.
	left [poolKinds]atomic.Int64
	// evicted is written where room is made and nowhere else, so that reading it costs a take next to nothing.
	evicted atomic.Uint64
}

var (
	_ Store         = (*Memory)(nil)
	_ OverrideStore = (*Memory)(nil)

	_ EvictionCounter = (*Memory)(nil)
)

// NewMemory returns an empty store.
func NewMemory(cfg MemoryConfig) *Memory {
	m := &Memory{core: core{scripts: lua.Load()}, clock: cfg.Clock, seed: maphash.MakeSeed()}
	m.engine = m
	if cfg.MaxEntries < 0 {
		m.mistake = fmt.Errorf("%w: MemoryConfig.MaxEntries is %d; 1 or more fits, and 0 is the default", ErrInvalid, cfg.MaxEntries)
	}
	total := cmp.Or(max(0, cfg.MaxEntries), defaultMaxEntries)
	m.left[overridePool].Store(int64(total))
	records := max(1, total/recordShare)
	m.largest = (records - 1) * answerUnit
	m.left[recordPool].Store(int64(records))
	m.left[bucketPool].Store(int64(max(1, total-records)))
	for i := range m.shards {
		m.shards[i].store = m
		m.shards[i].index = make(map[uint64]*entry)
	}
	return m
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
	s.sweep(now)
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
	if m.check(ctx) == nil && m.takeFast(&take, &result) {
		return result, nil
	}
	return m.core.Take(ctx, take)
}

// SetOverride implements [OverrideStore]. All tenants together may have as many records as the store has
// entries.
func (m *Memory) SetOverride(ctx context.Context, tenant string, override Override) (*Override, error) {
	if m.left[overridePool].Load() <= 0 {
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
		c.extra = min(maxOverrides, m.left[overridePool].Load()+state.CountOverrides(s.overridesOf(tenant).state()))
	}
	values := make([][]byte, len(c.keys))
	for i := range c.keys {
		values[i] = s.value(tenant, &c.keys[i], now)
	}
	decided, err := c.script.Decide(state.Call{Values: values, Args: texts(c.arguments(0, now)), Now: now})
	if err != nil {
		return reply{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	for i := range decided.Writes {
		w := &decided.Writes[i]
		s.write(tenant, &c.keys[w.Key], w, now)
	}
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
func (s *shard) overridesOf(tenant tenantKey) *entry {
	if len(s.pools[overridePool].list) == 0 {
		return nil
	}
	key := s.key(tenant, overridesKey, "")
	return s.lookup(&key)
}

// sweepOverrides removes the override records of all tenants that have expired. No shard may be locked.
func (m *Memory) sweepOverrides() {
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		now, next := s.now(), newGeneration()
		for _, e := range slices.Clone(s.pools[overridePool].list) {
			if e.key.kind != overridesKey {
				continue
			}
			if w, expired := state.ForgetExpired(e.value, string(next[:]), now); expired {
				s.replace(&e.key, &w, now)
			}
		}
		s.mu.Unlock()
	}
}

// remove implements [engine].
func (m *Memory) remove(_ context.Context, tenant string, keys []address) error {
	s, kept, now := m.lock(tenant)
	defer s.mu.Unlock()
	for i := range keys {
		s.write(kept, &keys[i], &state.Write{}, now)
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
