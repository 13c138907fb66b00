package bucket

import (
	"sync"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

const (
	// memoryShards is how many locks the tenants of a Memory share.
	memoryShards = 64
	// sweepStep is how many entries are looked at for each new one, to remove those that have expired.
	// More than one, so that entries leave faster than they can come.
	sweepStep = 2
	// sweepEvery is after how many calls as many are looked at even if there is no new one. Not after
	// each, because an entry that was not used for a while is not in the cache of the processor.
	sweepEvery = 8
	// otherEvery is after how many calls of a shard another one is looked at, and otherStep how many entries of it are
	// removed then at most, so that those of tenants who never come back leave too.
	otherEvery = 32
	otherStep  = 16
	// answerUnit is how many bytes of an answer count as one more entry.
	answerUnit = 256
)

// shard holds the entries of some tenants, all of those of each. Nothing in it that grows with their number has a pointer, but for
// values that no slab has room for.
type shard struct {
	mu    sync.Mutex
	index index
	pools [poolKinds]pool
	store *Memory
	read  reading
	// fresh is room for a state until it is in its entry, and direct for a take that is not a fast one, nil before the first.
	fresh  []byte
	direct *state.Direct
	// counting is room for what is counted.
	counting counting
	// calls counts the calls, and due the entries to be looked at by the next one.
	calls uint
	due   int
	// removed counts the entries that were removed: a place is good as long as it does not change.
	removed uint64
}

// sweep looks at a few entries and removes those that have expired.
func (s *shard) sweep(now int64) {
	if s.calls%sweepEvery == 0 {
		s.due += sweepStep
	}
	if s.calls%otherEvery == 0 {
		s.sweepOther()
	}
	due := s.due
	s.due = 0
	for kind := range s.pools {
		p := &s.pools[kind]
		for range due {
			if p.n == 0 {
				break
			}
			at := p.next()
			if s.at(at).expires() <= now {
				s.remove(at)
				// Where one has expired, more have.
				s.due = sweepStep
			} else {
				p.pass(at)
			}
		}
	}
}

// sweepOther removes some entries of the next shard that have expired, up to one that has not, unless it is busy.
func (s *shard) sweepOther() {
	other := &s.store.shards[s.store.turn.Add(1)%memoryShards]
	if !other.mu.TryLock() {
		return
	}
	defer other.mu.Unlock()
	now := other.now()
	for kind := range other.pools {
		p := &other.pools[kind]
		for range min(otherStep, p.n) {
			at := p.next()
			if other.at(at).expires() > now {
				p.pass(at)
				break
			}
			other.remove(at)
		}
	}
}

// lookup returns the entry of the key and its place, zero if there is none.
func (s *shard) lookup(key *entryKey) (place, entry) {
	g := s.index.leaf(key.tag)
	if g == nil {
		return 0, nil
	}
	for i := home(key.tag); g.slots[i] != 0; i = after(i) {
		if g.slots[i]>>placeBits != key.tag {
			continue
		}
		at := place(g.slots[i] & (1<<placeBits - 1))
		if e := s.at(at); e.is(key) {
			return at, e
		}
	}
	return 0, nil
}

// find returns a living entry and its place, or zero. One that has expired is removed, as Redis does, so that a clock
// that is set back does not bring it back.
func (s *shard) find(key *entryKey, now int64) (place, entry) {
	at, e := s.lookup(key)
	if at != 0 && e.expires() <= now {
		s.remove(at)
		return 0, nil
	}
	return at, e
}

// keys returns the keys of a pool.
func (s *shard) keys(kind poolKind) []entryKey {
	p := &s.pools[kind]
	keys := make([]entryKey, 0, p.n)
	for range p.n {
		at := p.next()
		p.pass(at)
		e := s.at(at)
		keys = append(keys, e.key())
	}
	return keys
}

// write keeps something else under a key.
func (s *shard) write(key *entryKey, w *state.Write, now int64) {
	at, _ := s.find(key, now)
	switch {
	case w.Value != nil:
		s.put(key, at, w.Value, w.Expiry)
	case at != 0:
		s.remove(at)
	}
}

// put keeps a value, which stays the shard's, under a key whose entry is in a place, zero if there is none. An expiry of zero
// leaves it as it was. Whoever calls it makes room afterwards.
func (s *shard) put(key *entryKey, at place, value []byte, expires int64) {
	class, whole := slabFor(key, len(value))
	if at != 0 {
		e := s.at(at)
		if expires == 0 {
			expires = e.expires()
		}
		if whole && class == at.class() && !e.isLarge() {
			s.account(at, e, -1)
			e.set(value)
			e.expireAt(expires)
			s.account(at, e, 1)
			s.pools[at.pool()].latest = at
			return
		}
		s.remove(at)
	}
	s.insert(key, class, whole, value, expires)
}

// insert adds an entry of a key that has none.
func (s *shard) insert(key *entryKey, class int, whole bool, value []byte, expires int64) {
	kind := key.kind.pool()
	p := &s.pools[kind]
	if p.slabs == nil {
		p.slabs, p.cursor = new([slabs]slab), placeOf(kind, 0, 0)
	}
	at := placeOf(kind, class, p.slabs[class].n)
	for !s.index.insert(key.tag, at) {
		// So many keys of one tag are too rare to be kept beside each other: an older one makes room.
		s.drop(s.index.any(key.tag))
		at = placeOf(kind, class, p.slabs[class].n)
	}
	s.due += sweepStep
	p.slabs[class].push(class)
	p.n++
	e := s.at(at)
	e.write(key)
	e.expireAt(expires)
	if whole {
		e.set(value)
	} else {
		if p.large == nil {
			p.large = new([largeSizes]larges)
		}
		size := largeSize(len(value))
		e.setLarge(size, p.large[size].add(value, at))
	}
	s.account(at, e, 1)
	p.latest = at
}

// account notes that an entry takes room, or with -1 that it does not.
func (s *shard) account(at place, e entry, sign int64) {
	kind := at.pool()
	p := &s.pools[kind]
	within, apart := s.weigh(at, e)
	p.slabs[at.class()].used.add(within, sign)
	if e.isLarge() {
		size, _ := e.large()
		p.large[size].used.add(apart, sign)
		within.add(apart, 1)
	}
	p.used.add(within, sign)
	s.store.left[kind].add(within, -sign)
}

// remove forgets an entry. The last one of its slab takes its place.
func (s *shard) remove(at place) {
	s.removed++
	e, kind, class := s.at(at), at.pool(), at.class()
	p := &s.pools[kind]
	s.account(at, e, -1)
	if e.isLarge() {
		size, number := e.large()
		if moved := p.large[size].remove(number); moved != at {
			s.at(moved).setLarge(size, number)
		}
	}
	s.index.remove(e.tag(), at)
	if p.latest == at {
		p.latest = 0
	}
	if last := placeOf(kind, class, p.slabs[class].n-1); last != at {
		moved := s.at(last)
		copy(e, moved)
		s.index.move(moved.tag(), last, at)
		if e.isLarge() {
			size, number := e.large()
			p.large[size].all[number].at = at
		}
		if p.latest == last {
			p.latest = at
		}
	}
	p.slabs[class].pop(class)
	p.n--
}
