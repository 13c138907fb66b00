package bucket

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/lease"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// LeaseMode says whether parts of the bucket of a tenant are leased, so that takes are decided without the store. The zero value is [LeaseOff].
type LeaseMode uint8

const (
	// LeaseOff asks the store for each take.
	LeaseOff LeaseMode = iota
	// LeaseAuto leases for a tenant that is busy in this process, from 50 takes a second on, and for one of which the store refuses a take because
	// other processes hold the limit: it has a part in that. It does so until the tenant has been no more than 10 a second for 5 s.
	LeaseAuto
	// LeaseAlways leases from the first take on, until there was none for 5 s.
	LeaseAlways
)

// String returns the word the policy document uses.
func (m LeaseMode) String() string { return wordOf("lease mode", leaseWords[:], m) }

var leaseWords = [...]string{LeaseOff: "off", LeaseAuto: "auto", LeaseAlways: "always"}

const (
	// hotTakes is from how many takes a second on a tenant is busy, and coldTakes up to how many it is not, for coldFor.
	hotTakes  = 50
	coldTakes = 10
	coldFor   = 5 * lease.Second
	// hotShared and coldShared are the same of a bucket that is leased by itself: what is leased costs about a call a second.
	hotShared  = 5
	coldShared = 1
	// leastLeased is the smallest capacity that is leased where [LeaseAuto] says so: three quarters of it are 32 of the smallest amounts.
	leastLeased = 43
	// maxLeased is of how many tenants a process leases at once.
	maxLeased = 4096
	// leaseLists, leaseLocks and heatSlots are how tenants are spread. A list has one lock: there are as many for each.
	leaseLists = maxLeased
	leaseLocks = 64
	heatSlots  = 1 << 14
)

// LeasedConfig configures a [Leased]. The zero value is ready to use.
type LeasedConfig struct {
	// Patience is how long a take waits at most for more of what is leased, before it is decided without. Zero means [DefaultTimeout].
	Patience time.Duration
	// Clock is a time that never steps, such as that since the process began, and is for tests. It decides when leases end. Nil means that of the system.
	Clock func() time.Duration
}

// Leased is a [Store] in front of one that leases parts of its buckets. For a busy tenant it holds a part of the bucket of the tenant: of its
// capacity, of what comes back, and a level. A take is then a debit in this process, and the store is asked about once a second, so that a
// tenant of hundreds of thousands of takes a second costs the store a few calls. What all holders and the store admit together in any interval
// of time is what one bucket would have admitted, or less, see docs/guide/fleet.md for what bounds that.
//
// Takes that need more than the bucket of the tenant, such as a user or an idempotency key, ask the store for the rest, and give back what
// they took here if it refuses. [Take.Lease] says of each take whether its tenant may be leased. Everything else passes through.
//
// A Leased leases nothing before [Leased.Allow]. [Leased.Run] exchanges with the store from time to time, and [Leased.Shutdown] gives back what is leased. It is
// safe for concurrent use.
type Leased struct {
	LeaseStore

	cfg LeasedConfig
	// now is the time since the beginning, in microseconds, by a clock that never steps.
	now  func() int64
	seed maphash.Seed
	// allowed is whether anything may be leased.
	allowed atomic.Bool
	// stopped is closed by stop.
	stopped chan struct{}
	stop    func()
	tenants atomic.Int64
	lists   [leaseLists]leasedList
	locks   [leaseLocks]sync.Mutex
	heat    [heatSlots]atomic.Uint64
	work    chan *leasedTenant
	stats   leaseCounters
	// unsent is what the store has not done yet of receipts that were settled here, under its lock. Settlements of all tenants would wait for that, so that they look
	// first whether there is anything.
	unsentLock sync.Mutex
	unsent     unfinished[[]*Settlement]
	anyUnsent  atomic.Bool
}

var _ Store = (*Leased)(nil)

// NewLeased returns one that leases nothing yet.
func NewLeased(store LeaseStore, cfg LeasedConfig) *Leased {
	if cfg.Patience == 0 {
		cfg.Patience = DefaultTimeout
	}
	epoch := time.Now()
	now := func() int64 { return time.Since(epoch).Microseconds() }
	if clock := cfg.Clock; clock != nil {
		now = func() int64 { return clock().Microseconds() }
	}
	l := &Leased{LeaseStore: store, cfg: cfg, now: now, seed: maphash.MakeSeed(), work: make(chan *leasedTenant, maxLeased)}
	l.stopped = make(chan struct{})
	l.stop = sync.OnceFunc(func() { close(l.stopped) })
	return l
}

// Allow says whether anything may be leased, which it may not at first: every instance that shares the store has to know what leases are, because one
// that does not cannot read a bucket of which something is leased. What is leased when it is forbidden is given back.
func (l *Leased) Allow(allowed bool) { l.allowed.Store(allowed && !l.isStopped()) }

func (l *Leased) isStopped() bool {
	select {
	case <-l.stopped:
		return true
	default:
		return false
	}
}

// Take implements [Store].
func (l *Leased) Take(ctx context.Context, take Take) (result Result, err error) {
	if take.Lease == LeaseOff && l.tenants.Load() == 0 {
		return l.LeaseStore.Take(ctx, take)
	}
	if take.LeaseEach && take.divides() {
		return l.takeEach(ctx, take)
	}
	hash := l.hash(take.Tenant)
	t := l.find(hash, take.Tenant, &Owner{})
	if t == nil {
		if !l.allowed.Load() {
			return l.LeaseStore.Take(ctx, take)
		}
		busy := l.isBusy(hash, take.Lease)
		if busy {
			l.begin(&take, l.leasable(&take))
		}
		result, err := l.LeaseStore.Take(ctx, take)
		if !busy && take.Lease == LeaseAuto && result.Verdict == Limited && isHeld(&result) {
			// Others hold nearly all that there is: what is asked for here has a part in it as well.
			l.begin(&take, l.leasable(&take))
		}
		return result, err
	}
	d := debit{at: take.place(&t.policy.Owner)}
	if d.at < 0 {
		// It has nothing to do with what is leased, such as another budget over all tenants.
		return l.LeaseStore.Take(ctx, take)
	}
	if err := take.Check(); err != nil {
		return Result{}, err
	}
	// The answer is set where the caller gets it: it is large, and copies of it are a good part of what a take costs.
	err = t.take(ctx, &take, &d, &result)
	return result, err
}

// place returns which bucket of the take is that of the owner, or -1.
func (t *Take) place(owner *Owner) int {
	for i := range t.Buckets {
		if t.Buckets[i].Owner == *owner {
			return i
		}
	}
	return -1
}

// isHeld reports whether a limit of the tenant refuses of which instances hold something.
func isHeld(result *Result) bool {
	for i := range result.Limits {
		if s := &result.Limits[i]; s.Owner == (Owner{}) && s.Exceeded && s.Approximate {
			return true
		}
	}
	return false
}

// isBusy counts a take of a tenant that is not leased, and reports whether there have been enough in this second. Tenants whose hashes meet are
// counted together: one may be leased that is not busy, for a while.
func (l *Leased) isBusy(hash uint64, mode LeaseMode) bool {
	if mode != LeaseAuto {
		return mode == LeaseAlways
	}
	return l.heats(hash, hotTakes)
}

// heats counts a take, and reports whether there have been as many in this second.
func (l *Leased) heats(hash uint64, hot uint32) bool {
	second := uint64(l.now()/lease.Second) + 1
	slot := &l.heat[hash/leaseLocks%heatSlots]
	was := slot.Load()
	if was>>32 != second {
		slot.CompareAndSwap(was, second<<32|1)
		return false
	}
	return uint32(slot.Add(1)) >= hot
}

// leasable returns which bucket of a take can be leased, or -1: that of the tenant, if it has limits, none of which counts on when it is used up or is too
// small for its amount.
func (l *Leased) leasable(take *Take) int {
	for i := range take.Buckets {
		b := &take.Buckets[i]
		if b.Owner.Level != Tenant || b.Limits.Len() == 0 || len(take.Buckets) > MaxLimits {
			continue
		}
		if take.divisible(b) {
			return i
		}
		return -1
	}
	return -1
}

// divisible reports whether a bucket of the take can be leased.
func (t *Take) divisible(b *Bucket) bool {
	for j := range b.Limits.rules {
		r := &b.Limits.rules[j]
		if r.Soft || t.Lease == LeaseAuto && r.Tag == state.TokenBucket && r.Capacity < leastLeased {
			return false
		}
	}
	return true
}

// Unleasable returns why no part of a bucket with this limit is ever leased in this mode, whatever its takes ask for, and what would fit. It is empty if parts can be leased, as they
// always can of a limit that is [Off]. In mode [LeaseOff] nothing is leased, and nothing is said.
func (m LeaseMode) Unleasable(l *Limit) (why string) {
	switch {
	case m == LeaseOff || l.Mode == Off:
		return ""
	case l.Soft:
		return "a soft limit has no end that could be divided; mode: shadow instead of soft fits"
	case m == LeaseAuto && l.Window.Kind == TokenBucket && l.Capacity < leastLeased:
		return fmt.Sprintf("a capacity of %d is too small to be worth dividing; %d, or lease: always, fits", l.Capacity, leastLeased)
	default:
		return ""
	}
}
