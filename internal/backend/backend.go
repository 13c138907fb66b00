// Package backend knows the stores of a server by the names that policies call them: it asks them, spares them what they
// need not be asked, watches whether they are there, judges by this instance's share while they are not, and settles with
// them afterwards.
package backend

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/internal/fleet"
	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
)

// Watcher is told what happens to stores, by requests and by goroutines of this package. It must not block, and must be
// safe for concurrent use.
type Watcher interface {
	// StoreCalled is told each call of a store, and for how long the store was away that it was not told before.
	StoreCalled(ctx context.Context, store, call string, took, away time.Duration, err error)
	// StoreSpared is told a take that was decided in the place of the store: by cache, cap or busy.
	StoreSpared(ctx context.Context, store, by string)
	// StoreAway is told when a store goes, and StoreBack when it is there again.
	StoreAway(ctx context.Context, store string, at time.Time, err error)
	StoreBack(ctx context.Context, back event.StoreBack)
	// Settled is told what became of a settlement; LocallySettled what the store was charged for what was admitted
	// without it, and whether something was given up.
	Settled(ctx context.Context, settlement *decision.Settlement)
	LocallySettled(ctx context.Context, store, tenant string, limits []bucket.LimitState, lost bool)
}

// Config says which stores there are.
type Config struct {
	// Stores are all stores by name. That of the default one is empty.
	Stores map[string]bucket.Store
	// Local configures this instance's share.
	Local fleet.Config
	// Gate configures what a store is spared.
	Gate GateConfig
	// MaxWaiting is how many settlements may wait for each store.
	MaxWaiting int
	Logger     *slog.Logger
	Watcher    Watcher
}

// Stores are the stores of a server. It is safe for concurrent use.
type Stores struct {
	byName map[string]*Store
	// missing stands for any that is not there.
	missing *Store
	// ended is closed, by end, when nothing more is to be done in the background.
	ended chan struct{}
	end   func()
}

// Store is one of the stores.
type Store struct {
	// name is empty for the default store.
	name    string
	log     *slog.Logger
	watcher Watcher
	absence absence
	gate    *Gate
	local   shares
	// leases is nil for a store that leases nothing, or is in this process.
	leases *leases
	// near says that the store is in this process, where it is never away: no share of it is judged, owed or learnt.
	near  bool
	queue *queue
	// evictions is nil for a store that does not count them. Whether they were logged is in full.
	evictions bucket.EvictionCounter
	full      atomic.Bool
	// background has room for one: who sends heartbeats, or who settles what is left.
	background chan struct{}
}

// New returns the stores. The errors are those of [bucket.NewLocal].
func New(cfg Config) (*Stores, error) {
	if cfg.Local.Instance == ([8]byte{}) {
		// Stores that are one Redis count this process once.
		cfg.Local.Instance = fleet.NewInstance()
	}
	s := &Stores{byName: make(map[string]*Store, len(cfg.Stores)), ended: make(chan struct{})}
	s.end = sync.OnceFunc(func() { close(s.ended) })
	var err error
	for name, store := range cfg.Stores {
		if s.byName[name], err = newStore(&cfg, name, store); err != nil {
			return nil, err
		}
	}
	s.missing, err = newStore(&cfg, "", missingStore{})
	return s, err
}

func newStore(cfg *Config, name string, store bucket.Store) (*Store, error) {
	b := &Store{name: name, watcher: cfg.Watcher, log: cfg.Logger, background: make(chan struct{}, 1)}
	shares := cfg.Local
	_, b.near = store.(*bucket.Memory)
	asked := store
	if b.leases = newLeases(store, shares); b.leases != nil {
		asked = b.leases.leased
	}
	b.gate = NewGate(asked, cfg.Gate)
	var err error
	if b.local, err = bucket.NewLocal(store, shares); err != nil {
		return nil, fmt.Errorf("ratelimit: %w", err)
	}
	if name != "" {
		b.log = cfg.Logger.With(slog.String("store", name))
	}
	b.evictions, _ = store.(bucket.EvictionCounter)
	// Each store has a queue of its own: what waits for one that is away holds up no other.
	b.queue = newQueue(cfg.MaxWaiting, b.Settle, cfg.Watcher.Settled)
	return b, nil
}

// Named returns the store of that name. All calls of an operation go to the one that its rules named when it began,
// whatever the policy says later.
func (s *Stores) Named(name string) *Store {
	if b := s.byName[name]; b != nil {
		return b
	}
	return s.missing
}

// AwaitSettled returns when no settlement waits for a store any more, or with the error of ctx when that ends before.
func (s *Stores) AwaitSettled(ctx context.Context) error {
	for _, b := range s.byName {
		if err := b.queue.pending.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// End ends [Stores.Run], and takes no settlement in any more.
func (s *Stores) End() {
	s.end()
	for _, b := range s.byName {
		b.queue.shut()
	}
}

// Shutdown is [Stores.End], waits for [Stores.Run] to return, settles what waits and what was admitted without the
// stores, all beside each other, and returns when that is done. When ctx ends before, it drops the rest, which the error
// says.
func (s *Stores) Shutdown(ctx context.Context) error {
	s.End()
	var drained error
	var drain sync.WaitGroup
	drain.Go(func() { drained = s.Drain(ctx) })
	settled := s.beside(func(b *Store) error { return errors.Join(b.queue.close(ctx), b.leases.close(ctx)) })
	drain.Wait()
	return errors.Join(settled, drained)
}

// GiveBack ends [Stores.Run], gives back what is leased and tells usage of it. The error says what is left. No store waits for another one.
func (s *Stores) GiveBack(ctx context.Context) error {
	s.end()
	return s.beside(func(b *Store) error { return b.leases.close(ctx) })
}

// Name is what policies call the store, empty for the default one.
func (b *Store) Name() string { return b.name }

// Take asks the store, writes down what it says, and returns how long that took: nothing if it was spared the call. The
// store has a deadline of its own; a client that leaves does not end the call, or it could spend without paying. The errors
// are those of [bucket.Store]. Neither the take nor the result is kept.
func (b *Store) Take(ctx context.Context, take *bucket.Take, result *bucket.Result, by Caller) (took time.Duration, err error) {
	ctx = context.WithoutCancel(ctx)
	start := time.Now()
	if !b.near {
		if err := b.settleBefore(ctx, take); err != nil {
			return time.Since(start), err
		}
	}
	var origin Origin
	*result, origin, err = b.gate.Take(ctx, *take, by)
	took = time.Since(start)
	if origin != FromStore {
		// Nobody has asked the store, so that this tells nothing of it.
		b.watcher.StoreSpared(ctx, b.name, string(origin))
		return 0, err
	}
	b.called(ctx, "take", took, err)
	if err == nil && !b.near {
		b.learn(ctx, take, result)
	}
	b.warnOfEvictions(ctx)
	return took, err
}

// warnOfEvictions logs once that the store has no room for all budgets.
func (b *Store) warnOfEvictions(ctx context.Context) {
	if b.evictions == nil || b.evictions.Evicted() == 0 || b.full.Load() || b.full.Swap(true) {
		return
	}
	b.log.WarnContext(ctx, "ratelimit: the store has no room for all budgets: some that were not full were forgotten, and are full again; "+
		"raise bucket.MemoryConfig.MaxEntries and MaxBytes, or look for one who has many addresses or names. The metric ratelimit.store.evicted counts them")
}

// Counted reports whether it is known how many instances share the store, without which limits that fail local refuse.
func (b *Store) Counted() bool { return b.local.Instances() > 0 }

// Instances returns how many instances are known to share the store, 0 if that is not known.
func (b *Store) Instances() int { return b.local.Instances() }

// Known answers a take that the store cannot answer by what it has answered before: whom a record blocks stays blocked in
// every fail mode, and who was refused stays refused in all but bucket.FailOpen, as long as nothing of what was
// missing can have come back with time. It returns false if the take may pass.
func (b *Store) Known(take *bucket.Take, mode bucket.FailMode) (bucket.Result, bool) {
	if result, blocked := b.local.Blocked(take); blocked || mode == bucket.FailOpen {
		return result, blocked
	}
	return b.gate.Known(take)
}

// TakeLocally judges a take that the store cannot answer by this instance's shares of its limits. err is that of the
// store.
func (b *Store) TakeLocally(take *bucket.Take, err error) bucket.Result {
	if take.Usage != nil && errors.Is(err, bucket.ErrAmbiguous) {
		// The store may have counted it, and nothing is to be counted twice.
		uncounted := *take
		uncounted.Usage = nil
		take = &uncounted
	}
	return b.local.Take(take, errors.Is(err, bucket.ErrBusy))
}

// Settle asks the store at once; [Store.Offer] does it later. A panic of the store, which outside of any request would
// end the process, is an error.
func (b *Store) Settle(ctx context.Context, settlement bucket.Settlement) (settled bucket.Settled, err error) {
	start := time.Now()
	err = guard.Call("Store.Settle", func() (err error) {
		settled, err = b.gate.Settle(ctx, settlement)
		return err
	})
	b.called(ctx, "settle", time.Since(start), err)
	return settled, err
}

// Offer has the settlement done after a while. It never blocks, and returns false if the settlement was dropped.
func (b *Store) Offer(ctx context.Context, settlement bucket.Settlement, reason, tier string) bool {
	return b.queue.offer(ctx, settlement, reason, tier)
}

// Renew renews the lease of a claim, and reports whether the attempt still has it. A panic of the store is an error.
func (b *Store) Renew(ctx context.Context, tenant string, claim *idempotency.Claim) (held bool, err error) {
	start := time.Now()
	err = guard.Call("Store.Renew", func() (err error) {
		held, err = b.gate.Renew(ctx, tenant, claim)
		return err
	})
	b.called(ctx, "renew", time.Since(start), err)
	return held, err
}

// SaysNothing reports whether the error of a call says nothing of the store: this process was too busy or too late, which is
// no absence.
func SaysNothing(err error) bool {
	return errors.Is(err, bucket.ErrBusy) || errors.Is(err, bucket.ErrLate)
}

// called tells of a call of the store, and whether that is there.
func (b *Store) called(ctx context.Context, call string, took time.Duration, err error) {
	if errors.Is(err, bucket.ErrInvalid) {
		b.watcher.StoreCalled(ctx, b.name, call, took, 0, err)
		b.log.ErrorContext(ctx, "ratelimit: the store was called wrongly", slog.String("error", err.Error()))
		return
	}
	if SaysNothing(err) {
		b.watcher.StoreCalled(ctx, b.name, call, took, 0, err)
		return
	}
	now := time.Now()
	change, away := b.absence.observe(now, err != nil)
	b.watcher.StoreCalled(ctx, b.name, call, took, away, err)
	switch change {
	case hasGone:
		b.log.WarnContext(ctx, "ratelimit: the store is away: operations are decided by the fail modes of their limits",
			slog.String("error", err.Error()))
		b.watcher.StoreAway(ctx, b.name, now, err)
	case isBack:
		b.log.InfoContext(ctx, "ratelimit: the store is back: operations are judged again")
		back := b.absence.over(now)
		back.Store = b.name
		b.watcher.StoreBack(ctx, back)
	case asBefore:
	}
}
