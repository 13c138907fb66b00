package bucket

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/fleet"
)

// counter counts the instances that share a store.
type counter interface {
	// Beat says that the instance lives, and returns how many do: that were heard of within fleet.BeatLife, this
	// one included; and whether this one was heard of within that time before. It counts no further than one more than
	// fleet.MaxInstances. The errors are those of [Store].
	Beat(ctx context.Context, instance [8]byte) (instances int, before bool, err error)
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
	// answered says that a beat was answered ever. told is what the last one was answered, or zero if the store did
	// not know this instance then.
	answered atomic.Bool
	told     atomic.Int64
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
// the others know of this one by their next. The beat counts that follows it a fleet.BeatEvery later. The number rises
// at once, and falls to what two beats in a row were answered by a store that knew this instance: one that has lost its
// data counts anew. The errors are those of the store.
func (l *local) Beat(ctx context.Context) error {
	now := l.now()
	due := l.beat.due.Load()
	if !l.beatDue(now) || !l.beat.due.CompareAndSwap(due, now+fleet.BeatEvery.Milliseconds()) {
		return nil
	}
	instances, before, err := l.fleet.Beat(ctx, l.beat.instance)
	if err != nil {
		if !errors.Is(err, ErrBusy) {
			l.missed(l.now(), false)
		}
		l.beat.due.CompareAndSwap(now+fleet.BeatEvery.Milliseconds(), now+time.Second.Milliseconds())
		return err
	}
	l.present()
	l.beat.count(int64(instances), before)
	return nil
}

// count takes in how many instances there are, and whether the store knew this one.
func (b *heartbeat) count(instances int64, before bool) {
	known, answered := b.instances.Load(), b.answered.Swap(true)
	told := int64(0)
	if before {
		told = instances
	}
	last := b.told.Swap(told)
	switch {
	case instances > fleet.MaxInstances:
		// The store counts no further, so that nobody knows how small a share would be safe.
		instances = 0
	case known == 0 && (!before || !answered):
		return
	case instances < known && before && last > 0:
		instances = max(instances, last)
	default:
		instances = max(instances, known)
	}
	b.instances.Store(instances)
}
