package bucket

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/fleet"
)

// counter counts the instances that share a store.
type counter interface {
	// Beat says that the instance lives, and returns how many do: that were heard of within fleet.BeatLife, this
	// one included. It counts no further than one more than fleet.MaxInstances. The errors are those of [Store].
	Beat(ctx context.Context, instance [8]byte) (instances int, err error)
}

var (
	_ counter = (*Memory)(nil)
	_ counter = (*Redis)(nil)
)

// heartbeat is what an instance knows of the fleet.
type heartbeat struct {
	instance [8]byte
	// instances is how many there are, or zero while nobody has said; due is when the next beat is, in the
	// time of the store.
	instances atomic.Int64
	due       atomic.Int64
	// last is when the last beat was answered, and first the first one since others may have forgotten it.
	last, first atomic.Int64
}

// BeatDue reports whether it is time for a heartbeat. It never is if the store counts no instances. If the
// configuration says how many there are it is only while the store is away, to find out whether it still is.
func (l *local) BeatDue() bool {
	return l.beatDue(l.now())
}

func (l *local) beatDue(now int64) bool {
	if l.fleet == nil || l.config.Instances > 0 && l.away.Load() == 0 {
		return false
	}
	due := l.beat.due.Load()
	return now >= due || due-now > fleet.BeatLife.Milliseconds()
}

// Beat sends a heartbeat if one is due, and learns how many instances there are. While the store is away it is
// as many as there were last.
//
// What the first beat is answered is not used: instances that start together are answered one, two and so on, and
// the others know of this one by their next. The beat counts that follows it a fleet.BeatEvery later. After a time
// in which none was answered the old number holds until then, if it is the larger. The errors are those of the store.
func (l *local) Beat(ctx context.Context) error {
	now := l.now()
	due := l.beat.due.Load()
	if !l.beatDue(now) || !l.beat.due.CompareAndSwap(due, now+fleet.BeatEvery.Milliseconds()) {
		return nil
	}
	instances, err := l.fleet.Beat(ctx, l.beat.instance)
	if err != nil {
		l.missed(l.now())
		l.beat.due.CompareAndSwap(now+fleet.BeatEvery.Milliseconds(), now+time.Second.Milliseconds())
		return err
	}
	l.present()
	if instances > fleet.MaxInstances {
		// The store counts no further, so that nobody knows how small a share would be safe.
		instances = 0
	}
	l.beat.count(int64(instances), now)
	return nil
}

// count takes in how many instances there are.
func (b *heartbeat) count(instances, now int64) {
	if last := b.last.Swap(now); last == 0 || now-last > fleet.BeatLife.Milliseconds() || now < last {
		b.first.Store(now)
	}
	if now-b.first.Load() < fleet.BeatEvery.Milliseconds() && instances > 0 {
		known := b.instances.Load()
		if known == 0 {
			return
		}
		instances = max(instances, known)
	}
	b.instances.Store(instances)
}
