package bucket

import (
	"bytes"
	"math/rand/v2"
	"sync/atomic"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// evictionSample is among how many entries the one to make room is chosen.
const evictionSample = 8

// poolKind tells budgets from what belongs to keys and receipts: however many of the latter a tenant
// makes, no budget gives way to them.
type poolKind uint8

const (
	bucketPool poolKind = iota
	recordPool
	// overridePool is full when nothing more comes in: nothing in it makes room. The weight is that of the records. What
	// counts the instances is in it too, and is no entry.
	overridePool
	poolKinds
)

// The parts of the room for each pool: of the entries a quarter is for records, answers and markers, and of the bytes two eighths;
// an eighth of these is for override records, of which there may be as many as all entries together.
const (
	recordShare   = 4
	byteShare     = 8
	recordBytes   = 2
	overrideBytes = 1
)

// weight is how much room is taken, in both measures that bound it.
type weight struct{ entries, bytes int64 }

// room is a weight that several goroutines read and change.
type room struct{ entries, bytes atomic.Int64 }

func (r *room) add(w weight, sign int64) {
	r.entries.Add(sign * w.entries)
	r.bytes.Add(sign * w.bytes)
}

// short reports whether more is taken than there is, and of which measure: of entries first.
func (r *room) short() (bytes, short bool) {
	if r.entries.Load() < 0 {
		return false, true
	}
	return true, r.bytes.Load() < 0
}

// of returns one of the measures.
func (r *room) of(bytes bool) int64 {
	if bytes {
		return r.bytes.Load()
	}
	return r.entries.Load()
}

func (w *weight) of(bytes bool) int64 {
	if bytes {
		return w.bytes
	}
	return w.entries
}

// pool holds the entries of a shard that share a capacity.
type pool struct {
	// slabs is nil as long as there was no entry.
	slabs *[slabs]slab
	// cursor is the place at which sweeping goes on.
	cursor place
	// latest is the entry that the call under way has put last, which is to stay, or zero.
	latest place
	// n is the number of entries.
	n int
	// used is the weight of the entries. Other shards read it to find the fullest.
	used room
}

// next returns the place of the entry at the cursor or the first one after it, of entries of which there is one.
func (p *pool) next() place {
	class, slot := p.cursor.class(), p.cursor.slot()
	for slot >= p.slabs[class].n {
		class, slot = (class+1)%slabs, 0
	}
	return placeOf(p.cursor.pool(), class, slot)
}

// nth returns the place of an entry by its number among all of the pool, of which there are more.
func (p *pool) nth(kind poolKind, i uint32) place {
	class := 0
	for i >= p.slabs[class].n {
		i -= p.slabs[class].n
		class++
	}
	return placeOf(kind, class, i)
}

// pass moves the cursor past a place.
func (p *pool) pass(at place) {
	p.cursor = at + 1<<(placePool+placeSlab)
}

// makeRoom makes as much as the calls of this shard have taken too much: in the fullest shard, so
// that a tenant with many entries does not displace those of tenants with few. If that shard is busy,
// the room stays overdrawn until a later call makes it: waiting could wait for ever, and room made
// elsewhere would be made by those who are not to blame.
func (s *shard) makeRoom() {
	for kind := range overridePool {
		p := &s.pools[kind]
		for p.latest != 0 {
			bytes, short := s.store.left[kind].short()
			if !short || !s.makeRoomOnce(kind, bytes) {
				p.latest = 0
			}
		}
	}
}

// makeRoomOnce reports whether it made any.
func (s *shard) makeRoomOnce(kind poolKind, bytes bool) bool {
	latest := s.pools[kind].latest
	stays := s.weigh(latest, s.at(latest))
	fullest := s.store.fullest(kind, s, bytes, stays.of(bytes))
	switch {
	case fullest == nil:
		return false
	case fullest == s:
		return s.evict(kind)
	case fullest.mu.TryLock():
		defer fullest.mu.Unlock()
		return fullest.evict(kind)
	default:
		return false
	}
}

// fullest returns the shard with most in the pool by one measure, of which a weight in the asking shard does not count
// because it is to stay. It returns nil if there is nothing. The answer may be a little out of date.
func (m *Memory) fullest(kind poolKind, asking *shard, bytes bool, stays int64) *shard {
	var fullest *shard
	most := int64(0)
	for i := range m.shards {
		s := &m.shards[i]
		used := s.pools[kind].used.of(bytes)
		if s == asking {
			used -= stays
		}
		if used > most {
			fullest, most = s, used
		}
	}
	return fullest
}

// evictable is an entry that may make room.
type evictable struct {
	entry
	at      place
	running bool
}

// evict removes an entry, other than the latest, from a sample: one that has expired, or one of the tenant with most in it,
// and of these the one that expires first, which of budgets is the nearest to full and of records the
// oldest. Records of operations that are running go last. It reports whether there was any.
func (s *shard) evict(kind poolKind) bool {
	p, now := &s.pools[kind], s.now()
	var all [evictionSample]evictable
	sample := all[:0]
	// Entries that came one after the other lie beside each other, and so do those whose names have the same length. They
	// are taken from the whole pool, at equal distances: neighbours would be a crowd of few tenants each.
	n := min(evictionSample, p.n)
	start := rand.IntN(max(1, p.n)) //nolint:gosec // Any start is good enough.
	for i := range n {
		at := p.nth(kind, uint32((start+i*p.n/n)%p.n))
		if at == p.latest {
			continue
		}
		e := s.at(at)
		running := e.kind() == recordKey && state.RecordState(s.valueOf(e)) == state.Running
		sample = append(sample, evictable{e, at, running})
	}
	if len(sample) == 0 {
		return false
	}
	first := &sample[0]
	for i := range sample[1:] {
		if e := &sample[1+i]; e.goesBefore(first, sample, now) {
			first = e
		}
	}
	s.drop(first.at)
	return true
}

// drop removes an entry, and counts it if it is a budget that is not full.
func (s *shard) drop(at place) {
	if at.pool() == bucketPool && s.at(at).expires() > s.now() {
		s.store.evicted.Add(1)
	}
	s.remove(at)
}

func (e *evictable) goesBefore(other *evictable, sample []evictable, now int64) bool {
	if gone := e.expires() <= now; gone != (other.expires() <= now) {
		return gone
	}
	if e.running != other.running {
		return other.running
	}
	if many, few := e.sameTenant(sample), other.sameTenant(sample); many != few {
		return many > few
	}
	return e.expires() < other.expires()
}

func (e *evictable) sameTenant(sample []evictable) int {
	n := 0
	for i := range sample {
		if bytes.Equal(sample[i].tenant(), e.tenant()) {
			n++
		}
	}
	return n
}
