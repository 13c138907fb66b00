// Package recent counts what has happened lately, in memory that does not grow.
package recent

import (
	"hash/maphash"
	"sync"
	"time"
)

// Counter counts keys for a while in slots whose number grows to a bound: then what is past makes room, and after that what
// was not counted for longest. Where more keys are counted at once than it has slots, some are counted anew. It is safe for
// concurrent use.
type Counter[K comparable] struct {
	seed maphash.Seed
	// most is how many sets there are at most.
	most int
	mu   sync.Mutex
	sets [][slotsOfSet]slot
}

const (
	// slotsOfSet is how many keys whose hashes end alike are remembered.
	slotsOfSet = 4
	// firstSets is how many sets there are at first, where doubling them leads to the bound.
	firstSets = 16
)

// slot counts the keys of one hash until a time. Two keys of one hash pass for the same, which for as many as
// there are slots happens to one in 10^15.
type slot struct {
	hash  uint64
	until int64
	// seen is when the key was counted last.
	seen int64
	n    int
}

// NewCounter returns a counter of so many slots of 32 bytes at most, at least four.
func NewCounter[K comparable](slots int) *Counter[K] {
	most := max(1, slots/slotsOfSet)
	// Doubling ends at the bound exactly, so that no set is divided into more than it has room for.
	first := most
	for first > firstSets && first%2 == 0 {
		first /= 2
	}
	return &Counter[K]{seed: maphash.MakeSeed(), most: most, sets: make([][slotsOfSet]slot, first)}
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
	found := c.find(hash, at)
	for found.hash != hash && found.until > at && len(c.sets) < c.most {
		c.grow(at)
		found = c.find(hash, at)
	}
	if found.hash != hash || found.until <= at {
		*found = slot{hash: hash, until: now.Add(holds).UnixNano()}
	}
	found.seen = at
	return found
}

// find returns the slot of a hash, or the one that is needed least of those that it could have.
func (c *Counter[K]) find(hash uint64, at int64) *slot {
	set := &c.sets[hash%uint64(len(c.sets))]
	free := &set[0]
	for i := range set {
		s := &set[i]
		if s.hash == hash && s.until > at {
			return s
		}
		if s.makesRoomBefore(free, at) {
			free = s
		}
	}
	return free
}

// grow doubles the sets, and keeps what is not past.
func (c *Counter[K]) grow(at int64) {
	was := c.sets
	c.sets = make([][slotsOfSet]slot, 2*len(was))
	for _, set := range was {
		for _, s := range set {
			if s.until > at {
				*c.find(s.hash, at) = s
			}
		}
	}
}

// makesRoomBefore says which of two slots is needed less at a time.
func (s *slot) makesRoomBefore(other *slot, at int64) bool {
	if past, otherPast := s.until <= at, other.until <= at; past != otherPast {
		return past
	}
	return s.seen < other.seen
}
