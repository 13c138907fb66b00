package bucket

import "sync/atomic"

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

func (w *weight) add(other weight, sign int64) {
	w.entries += sign * other.entries
	w.bytes += sign * other.bytes
}

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
	// large has the values that no slab has room for, by their size, and is nil as long as there was none.
	large *[largeSizes]larges
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
	stays, apart := s.weigh(latest, s.at(latest))
	stays.add(apart, 1)
	fullest := s.store.fullest(kind, s, bytes, stays.of(bytes))
	switch {
	case fullest == nil:
		return false
	case fullest == s:
		return s.evict(kind, bytes)
	case fullest.mu.TryLock():
		defer fullest.mu.Unlock()
		return fullest.evict(kind, bytes)
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
