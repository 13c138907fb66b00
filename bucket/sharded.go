package bucket

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/fleet"
	"github.com/gqlgen-ratelimit/ratelimit/internal/lease"
)

const (
	// shardQueue is how many tenants of a process wait for an exchange at once, and shardWorkers how many exchange.
	shardQueue   = 256
	shardWorkers = 4
	// shardForgotten is after how long a process forgets a tenant of which it was asked nothing.
	shardForgotten = 60 * lease.Second
	// lastCount is for how long home is told of what came after the end of an instance, or of a tenant for which there is no room.
	lastCount = time.Second
)

// ShardedConfig configures a [Sharded]. The zero value is ready to use.
type ShardedConfig struct {
	// Clock is a time that never steps, such as that since the process began, and is for tests. Nil means that of the system.
	Clock func() time.Duration
	// Counted is told whose usage was counted, or may have been, and when by the clock of the store. Nil is told nothing by this; see also [Sharded.TellCounted].
	Counted func(tenant string, at time.Time)
}

// Sharded is the store of one of very many small instances. The instances are divided among some shards, each of which is a store of its own, and all share one home.
// A shard leases a part of the limits of a tenant from home, as one instance does by a [Leased], and its instances take from it with one call each. So home
// has a few calls a second from each shard and not one from each take. What all shards and home admit together in any interval of time is what one
// bucket would have admitted, or less, see docs/guide/shards.md for what bounds that.
//
// Only takes with [LeaseAlways] are shared, and only where all limits of the tenant are token buckets that are not soft and the tenant has no override records. Takes that need more than the
// bucket of the tenant, such as a user or an idempotency key, ask home for the rest, and put back what they took if it refuses. Everything else is
// done by home: other takes, amounts that are larger than what the shard can hold, Peek, Grant, Reset and claims, and a tenant for which the clocks of shard and home are more than 10 s apart.
//
// A Sharded shares nothing before [Sharded.Allow]. [Sharded.Run] exchanges with home, and [Sharded.Shutdown] has it count the rest of the usage: package ratelimit calls both. It is safe for concurrent use. Its errors are those of home: what a shard
// does not answer home decides.
type Sharded struct {
	home  LeaseStore
	shard ShardStore
	cfg   ShardedConfig
	// instance is how this process is called, and beating how it is in heartbeats: as others who share the store call it.
	instance [8]byte
	beating  atomic.Pointer[[8]byte]
	// ended says that nothing is shared any more.
	allowed, ended atomic.Bool
	beatAt         atomic.Int64
	// counted is who is told besides, nil for nobody.
	counted atomic.Pointer[func(tenant string, at time.Time)]
	mu      sync.RWMutex
	tenants map[string]*shardedTenant
	work    chan *shardedTenant
	// fetching are exchanges for which takes wait. None begins after the end, which is under mu.
	fetching sync.WaitGroup
	stats    shardedCounters
}

var (
	_ Store           = (*Sharded)(nil)
	_ Runner          = (*Sharded)(nil)
	_ EvictionCounter = (*Sharded)(nil)
)

// NewSharded returns the store of an instance that takes from a shard of home. The error is [ErrInvalid].
func NewSharded(home LeaseStore, shard ShardStore, cfg ShardedConfig) (*Sharded, error) {
	if home == nil || shard == nil || any(home) == any(shard) {
		return nil, fmt.Errorf("%w: a shard is a store besides that of home", ErrInvalid)
	}
	if cfg.Clock == nil {
		begin := time.Now()
		cfg.Clock = func() time.Duration { return time.Since(begin) }
	}
	s := &Sharded{
		home: home, shard: shard, cfg: cfg, instance: fleet.NewInstance(), tenants: map[string]*shardedTenant{}, work: make(chan *shardedTenant, shardQueue),
	}
	s.beating.Store(&s.instance)
	return s, nil
}

// now is the time of this process in microseconds.
func (s *Sharded) now() int64 { return s.cfg.Clock().Microseconds() }

// Allow says whether anything may be shared, which it may not at first: every instance that shares home has to know what leases are. [Sharded.Run] asks home. What a
// shard holds when nobody may take from it any more comes back to home after a lease, without a level.
func (s *Sharded) Allow(allowed bool) { s.allowed.Store(allowed) }

// Beat says that the instance lives, see [LeaseStore], and allows what it was told may be. From then on [Sharded.Run] says so of the same one: this process is not two.
func (s *Sharded) Beat(ctx context.Context, instance [8]byte) (instances int, before bool, err error) {
	s.beating.Store(&instance)
	if instances, before, err = s.home.Beat(ctx, instance); err == nil {
		s.beatAt.Store(s.now() + 1)
		s.Allow(s.home.AllLease())
	}
	return instances, before, err
}

// tenant returns what this process knows of a tenant, nil if it knows as many as it can.
func (s *Sharded) tenant(name string) *shardedTenant {
	s.mu.RLock()
	t := s.tenants[name]
	s.mu.RUnlock()
	if t != nil {
		return t
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t = s.tenants[name]; t == nil && len(s.tenants) < maxLeased {
		t = &shardedTenant{store: s, name: name, used: s.now()}
		s.tenants[name] = t
	}
	return t
}

// all returns the tenants.
func (s *Sharded) all() []*shardedTenant {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]*shardedTenant, 0, len(s.tenants))
	for _, t := range s.tenants {
		all = append(all, t)
	}
	return all
}

// Renew implements [Store].
func (s *Sharded) Renew(ctx context.Context, tenant string, claim *idempotency.Claim) (bool, error) {
	return s.home.Renew(ctx, tenant, claim)
}

// Peek implements [Store]: it shows what home has left, without what the shards have.
func (s *Sharded) Peek(ctx context.Context, tenant string, buckets []Bucket) ([]LimitState, error) {
	return s.home.Peek(ctx, tenant, buckets)
}

// Grant implements [Store]: it gives to home.
func (s *Sharded) Grant(ctx context.Context, tenant string, buckets []Bucket, amounts Amounts) ([]LimitState, error) {
	return s.home.Grant(ctx, tenant, buckets, amounts)
}

// Reset implements [Store]. The bucket is full again, and the shards begin anew.
func (s *Sharded) Reset(ctx context.Context, tenant string, buckets []Bucket) error {
	return s.home.Reset(ctx, tenant, buckets)
}

// Evicted implements [EvictionCounter]: it is that of home.
func (s *Sharded) Evicted() uint64 {
	if counter, ok := s.home.(EvictionCounter); ok {
		return counter.Evicted()
	}
	return 0
}

// TellCounted has somebody told what [ShardedConfig.Counted] is told, besides that, from now on. Who was told by a call of before is told no more. Package ratelimit calls it.
func (s *Sharded) TellCounted(counted func(tenant string, at time.Time)) { s.counted.Store(&counted) }

// tellCounted tells both.
func (s *Sharded) tellCounted(tenant string, at time.Time) {
	if s.cfg.Counted != nil {
		s.cfg.Counted(tenant, at)
	}
	if counted := s.counted.Load(); counted != nil && *counted != nil {
		(*counted)(tenant, at)
	}
}

// Run exchanges what the shard holds with home when that is due, until the context ends. It starts goroutines and returns when they have ended. Without it a take
// exchanges only when the shard has too little.
func (s *Sharded) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var workers sync.WaitGroup
	for range shardWorkers {
		workers.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case t := <-s.work:
					t.serve(ctx)
				}
			}
		})
	}
	defer workers.Wait()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		s.beat(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.look()
		}
	}
}

// Tend does once what [Sharded.Run] does all the time, but for the heartbeat.
func (s *Sharded) Tend(ctx context.Context) {
	s.look()
	for {
		select {
		case t := <-s.work:
			t.serve(ctx)
		default:
			return
		}
	}
}

// Shutdown has home count what was admitted here, and returns when that is done, or when the context ends, with an error that says of how many tenants it is
// not. What the shard holds stays with it: others take from it, and exchange when it is due. Takes afterwards go to home.
func (s *Sharded) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.ended.Store(true)
	s.mu.Unlock()
	fetched := make(chan struct{})
	go func() {
		defer close(fetched)
		s.fetching.Wait()
	}()
	select {
	case <-fetched:
	case <-ctx.Done():
	}
	var leaving sync.WaitGroup
	var left atomic.Int64
	slots := make(chan struct{}, exchangesAtOnce)
	for _, t := range s.all() {
		leaving.Go(func() {
			if !t.leave(ctx, slots) {
				left.Add(1)
			}
		})
	}
	leaving.Wait()
	if n := left.Load(); n > 0 {
		return errors.Join(fmt.Errorf("bucket: usage is not counted (tenants: %d)", n), ctx.Err())
	}
	return nil
}

// begin runs something beside who asks for it, which [Sharded.Shutdown] waits for. It returns false, and runs nothing, after the end.
func (s *Sharded) begin(do func()) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.ended.Load() {
		return false
	}
	s.fetching.Go(do)
	return true
}

// beat sends a heartbeat if nobody else has for a while.
func (s *Sharded) beat(ctx context.Context) {
	if at := s.beatAt.Load(); at == 0 || s.now()-at >= fleet.BeatEvery.Microseconds() {
		// Home that is away is found by others. It is tried again after a while.
		s.beatAt.Store(s.now() + 1)
		_, _, _ = s.Beat(ctx, *s.beating.Load())
	}
}

// look has those served that are due, and forgets those that are not used.
func (s *Sharded) look() {
	now := s.now()
	for _, t := range s.all() {
		if t.isDue(now) {
			s.queue(t)
		}
		if t.idle(now) {
			s.forget(t, now)
		}
	}
}

// forget forgets a tenant that is idle still, and has who knows it know that.
func (s *Sharded) forget(t *shardedTenant, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.forgotten = t.unused(now); t.forgotten {
		delete(s.tenants, t.name)
	}
}

// queue has a tenant served, unless as many wait as can.
func (s *Sharded) queue(t *shardedTenant) {
	select {
	case s.work <- t:
	default:
	}
}

// ShardedStats are what a [Sharded] did since it was made.
type ShardedStats struct {
	// Admitted and Refused are the takes that the shard alone has decided, Mixed those that asked home for something else than the bucket of the tenant, and Central those that
	// home has decided, though the tenant is shared.
	Admitted, Refused, Mixed, Central uint64
	// Exchanges are calls to home, and Failed those that were not answered.
	Exchanges, Failed uint64
	// Uncounted are settlements of usage of which nobody knows whether they were counted, and Unsettled those of operations that were worth more, which was not charged.
	Uncounted, Unsettled uint64
}

type shardedCounters struct {
	admitted, refused, mixed, central, exchanges, failed, uncounted, unsettled atomic.Uint64
}

// Stats returns what it did so far.
func (s *Sharded) Stats() ShardedStats {
	c := &s.stats
	return ShardedStats{
		Admitted: c.admitted.Load(), Refused: c.refused.Load(), Mixed: c.mixed.Load(), Central: c.central.Load(), Exchanges: c.exchanges.Load(), Failed: c.failed.Load(),
		Uncounted: c.uncounted.Load(), Unsettled: c.unsettled.Load(),
	}
}

// isAway reports whether an error says that a store did nothing.
func isAway(err error) bool { return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrBusy) }
