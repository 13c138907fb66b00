package recent

import (
	"hash/maphash"
	"math"
	"sync"
	"time"
)

// Set remembers keys for a while in memory that grows to a bound: 8 bytes for each key that it may hold, without pointers.
// A key is remembered until its time is over, to an eighth of a second. What finds no room is not remembered, and the
// caller is told so. It is safe for concurrent use.
//
// Keys belong to groups, and a group lies in one of 64 parts, where it leaves every eighth slot free: which one depends on the
// group. So a part that is full of keys of a single group has room for seven in eight of the groups beside it, and few callers
// wait for the same lock. Two keys of a group pass for the same if 29 bits of their hashes are equal: one in 100 000 at most
// where the set is as large as by default and one group has a part to itself.
type Set[G, K comparable] struct {
	seed  maphash.Seed
	began time.Time
	// most is how many slots a part has at most, a power of two.
	most  int
	parts [setParts]setPart
}

// setPart is a hash table with linear probing. A slot has the hash of a key above the tick until which it is remembered, and
// is free from that tick on. It never becomes zero again, so that a search ends at the first zero. The upper bits of a hash
// are the class of the group, which says what slots it leaves free.
type setPart struct {
	mu    sync.Mutex
	slots []uint64
}

const (
	setParts = 64
	// setWindow is how many slots a key can be in, and how many a part has at least.
	setWindow = 32
	// setClasses is how many classes of groups there are, and setClassBits how many bits of a hash are below the class.
	setClasses   = 8
	setClassBits = 29
	// setTick is the unit of time: 32 bits of it are 17 years.
	setTick = time.Second / 8
)

// Verdict is what became of a key that was added to a [Set].
type Verdict uint8

const (
	// Added says that the key is remembered from now on.
	Added Verdict = iota
	// Known says that it is remembered from before.
	Known
	// Declined says that it was not known, and the caller did not want it.
	Declined
	// Full says that it was not known, and there is no room for it.
	Full
)

// NewSet returns an empty set of so many keys, at least 2048 and rounded up to a power of two, whose time begins at began.
func NewSet[G, K comparable](keys int, began time.Time) *Set[G, K] {
	most := setWindow
	for most < keys/setParts {
		most *= 2
	}
	return &Set[G, K]{seed: maphash.MakeSeed(), began: began, most: most}
}

// Add remembers a key from now on for as long as it holds, unless it is known. Of a key that is new and has room it asks
// whether it is wanted, which must not call the set.
func (s *Set[G, K]) Add(group G, key K, now time.Time, holds time.Duration, wanted func() bool) Verdict {
	of := maphash.Comparable(s.seed, group)
	class := uint32(of>>32) % setClasses
	hash := uint32(maphash.Comparable(s.seed, key)>>32)%(1<<setClassBits) | class<<setClassBits
	at := s.tick(now.Sub(s.began))
	until := max(at+1, s.tick(now.Add(holds).Sub(s.began)))
	p := &s.parts[of%setParts]
	p.mu.Lock()
	defer p.mu.Unlock()
	free, known := p.find(hash, at)
	for free == nil && !known && len(p.slots) < s.most {
		p.grow(at)
		free, known = p.find(hash, at)
	}
	switch {
	case known:
		return Known
	case free == nil:
		return Full
	case !wanted():
		return Declined
	}
	*free = uint64(hash)<<32 | uint64(until)
	return Added
}

// tick returns a time since the beginning in ticks, of which the largest number stays free.
func (s *Set[G, K]) tick(since time.Duration) uint32 {
	return uint32(max(0, min(since/setTick, math.MaxUint32-1)))
}

// find reports whether the key of a hash is known, and else returns the slot for it, nil if there is none.
func (p *setPart) find(hash, at uint32) (free *uint64, known bool) {
	mask := len(p.slots) - 1
	for i := range min(setWindow, len(p.slots)) {
		place := (int(hash) + i) & mask
		if place%setClasses == int(hash>>setClassBits) {
			continue
		}
		slot := &p.slots[place]
		live := uint32(*slot) > at
		if live && uint32(*slot>>32) == hash {
			return nil, true
		}
		if !live && free == nil {
			free = slot
		}
		if *slot == 0 {
			break
		}
	}
	return free, false
}

// grow doubles the slots, and keeps what still holds.
func (p *setPart) grow(at uint32) {
	was := p.slots
	p.slots = make([]uint64, max(setWindow, 2*len(was)))
	for _, slot := range was {
		if uint32(slot) > at {
			// With half of the slots free each finds one.
			if free, _ := p.find(uint32(slot>>32), at); free != nil {
				*free = slot
			}
		}
	}
}
