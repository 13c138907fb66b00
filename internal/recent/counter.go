// Package recent counts what has happened lately, in memory that does not grow.
package recent

import (
	"hash/maphash"
	"sync"
	"time"
)

// Counter counts keys for a while in a fixed number of slots: what is past makes room, and then what was not counted for
// longest. Where more keys are counted at once than it has slots, some are counted anew. It is safe for concurrent use.
type Counter[K comparable] struct {
	seed maphash.Seed
	mu   sync.Mutex
	sets [][slotsOfSet]slot
}

// slotsOfSet is how many keys whose hashes begin alike are remembered.
const slotsOfSet = 4

// slot counts the keys of one hash until a time. Two keys of one hash pass for the same, which for as many as
// there are slots happens to one in 10^15.
type slot struct {
	hash  uint64
	until int64
	// seen is when the key was counted last.
	seen int64
	n    int
}

// NewCounter returns a counter of so many slots of 32 bytes, at least four.
func NewCounter[K comparable](slots int) *Counter[K] {
	return &Counter[K]{seed: maphash.MakeSeed(), sets: make([][slotsOfSet]slot, max(1, slots/slotsOfSet))}
}

// Count returns how often the key was counted since it was for the first time, this call included, and when that is
// forgotten: after the time for which it holds, counted from the first.
func (c *Counter[K]) Count(key K, now time.Time, holds time.Duration) (n int, left time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.slotOf(key, now, holds)
	s.n++
	return s.n, time.Duration(s.until - s.seen)
}

// Fits counts a key n times if it was counted no more than most times then, and reports whether it has done so. It counts
// for as long as [Counter.Count] does.
func (c *Counter[K]) Fits(key K, n, most int, now time.Time, holds time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.slotOf(key, now, holds)
	if n > most-s.n {
		return false
	}
	s.n += n
	return true
}

// slotOf returns the slot of a key that is seen now. The lock is held.
func (c *Counter[K]) slotOf(key K, now time.Time, holds time.Duration) *slot {
	hash, at := maphash.Comparable(c.seed, key), now.UnixNano()
	set := &c.sets[hash%uint64(len(c.sets))]
	free := &set[0]
	for i := range set {
		s := &set[i]
		if s.hash == hash && s.until > at {
			s.seen = at
			return s
		}
		if s.makesRoomBefore(free, at) {
			free = s
		}
	}
	*free = slot{hash: hash, until: now.Add(holds).UnixNano(), seen: at}
	return free
}

// makesRoomBefore says which of two slots is needed less at a time.
func (s *slot) makesRoomBefore(other *slot, at int64) bool {
	if past, otherPast := s.until <= at, other.until <= at; past != otherPast {
		return past
	}
	return s.seen < other.seen
}
