package bucket

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

const (
	// BeatEvery is how often an instance says that it lives.
	BeatEvery = 5 * time.Second
	// BeatLife is for how long it is believed to.
	BeatLife = 4 * BeatEvery
)

// Instance names one process that uses a store. It is random.
type Instance [8]byte

// NewInstance returns the name of another instance.
func NewInstance() (i Instance) {
	for n, word := 0, rand.Uint64(); n < len(i); n++ { //nolint:gosec // Unique is enough: it is no secret.
		i[n] = byte(word >> (8 * n))
	}
	return i
}

// Fleet counts the instances that share a store. [Memory] and [Redis] implement it.
type Fleet interface {
	// Beat says that the instance lives, and returns how many do: that were heard of within [BeatLife], this
	// one included. It counts no further than one more than [MaxInstances]. The errors are those of [Store].
	Beat(ctx context.Context, instance Instance) (instances int, err error)
}

var (
	_ Fleet = (*Memory)(nil)
	_ Fleet = (*Redis)(nil)
)

// heartbeat is what an instance knows of the fleet.
type heartbeat struct {
	instance Instance
	// instances is how many there are, or zero while nobody has said; due is when the next beat is, in the
	// time of the store.
	instances atomic.Int64
	due       atomic.Int64
	// last is when the last beat was answered, and first the first one since others may have forgotten it.
	last, first atomic.Int64
}

// BeatDue reports whether it is time for a heartbeat. It never is if the store counts no instances. If the
// configuration says how many there are it is only while the store is away, to find out whether it still is.
func (l *Local) BeatDue() bool {
	return l.beatDue(l.now())
}

func (l *Local) beatDue(now int64) bool {
	if l.fleet == nil || l.config.Instances > 0 && l.away.Load() == 0 {
		return false
	}
	due := l.beat.due.Load()
	return now >= due || due-now > BeatLife.Milliseconds()
}

// Beat sends a heartbeat if one is due, and learns how many instances there are. While the store is away it is
// as many as there were last.
//
// What the first beat is answered is not used: instances that start together are answered one, two and so on, and
// the others know of this one by their next. The beat counts that follows it a [BeatEvery] later. After a time
// in which none was answered the old number holds until then, if it is the larger. The errors are those of [Fleet.Beat].
func (l *Local) Beat(ctx context.Context) error {
	now := l.now()
	due := l.beat.due.Load()
	if !l.beatDue(now) || !l.beat.due.CompareAndSwap(due, now+BeatEvery.Milliseconds()) {
		return nil
	}
	instances, err := l.fleet.Beat(ctx, l.beat.instance)
	if err != nil {
		l.missed(l.now())
		l.beat.due.CompareAndSwap(now+BeatEvery.Milliseconds(), now+time.Second.Milliseconds())
		return err
	}
	l.present()
	if instances > MaxInstances {
		// The store counts no further, so that nobody knows how small a share would be safe.
		instances = 0
	}
	l.beat.count(int64(instances), now)
	return nil
}

// count takes in how many instances there are.
func (b *heartbeat) count(instances, now int64) {
	if last := b.last.Swap(now); last == 0 || now-last > BeatLife.Milliseconds() || now < last {
		b.first.Store(now)
	}
	if now-b.first.Load() < BeatEvery.Milliseconds() && instances > 0 {
		known := b.instances.Load()
		if known == 0 {
			return
		}
		instances = max(instances, known)
	}
	b.instances.Store(instances)
}

// fleetOf returns what counts the instances of the store, or of the one behind it: nil if nothing does.
func fleetOf(store Store) Fleet {
	for {
		if fleet, ok := store.(Fleet); ok {
			return fleet
		}
		before, ok := store.(interface{ Unwrap() Store })
		if !ok {
			return nil
		}
		store = before.Unwrap()
	}
}

// Beat implements [Fleet].
func (r *Redis) Beat(ctx context.Context, instance Instance) (int, error) {
	key := "rl:" + r.namespace + fleetSuffix
	c := r.newCall("", &r.scripts.Heartbeat, 1, 2)
	if len(r.offsets.groups) > 1 {
		c.group = int(crc16(key)) % clusterSlots / slotsPerGroup
	}
	c.key(key)
	c.values(nil, BeatLife.Milliseconds(), 0, nil)
	c.arg(instance[:])
	reply, err := c.do(ctx)
	if err != nil {
		return 0, err
	}
	if reply.outcome != state.Applied || len(reply.rest) != countSize {
		return 0, fmt.Errorf("%w: %w", ErrUnavailable, errReply)
	}
	return int(state.ReadUint(reply.rest, countSize)), nil
}

// countSize is that of a number of instances in a reply.
const countSize = 2

// memoryFleet counts the instances that share a Memory. The zero value has none.
type memoryFleet struct {
	mu     sync.Mutex
	living map[Instance]int64
}

// Beat implements [Fleet].
func (m *Memory) Beat(ctx context.Context, instance Instance) (int, error) {
	if err := checkContext(ctx); err != nil {
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
		f.living = make(map[Instance]int64)
	}
	life := BeatLife.Milliseconds()
	for other, heard := range f.living {
		if heard <= now-life || heard > now+life {
			delete(f.living, other)
		}
	}
	if len(f.living) <= MaxInstances {
		f.living[instance] = now
	}
	return len(f.living), nil
}
