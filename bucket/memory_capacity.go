package bucket

import (
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
	// counts the instances is in it too, and weighs nothing.
	overridePool
	poolKinds
)

// recordShare is the part of the capacity that is for records, answers and markers: one in so many.
const recordShare = 4

// pool holds the entries of a shard that share a capacity.
type pool struct {
	// list has the entries in any order, for sweeping and sampling.
	list   []*entry
	cursor int
	// used is the weight of the entries. Other shards read it to find the fullest.
	used atomic.Int64
}

// weigh sets how much of the capacity the entry takes, and makes room for it: in the fullest shard, so
// that a tenant with many entries does not displace those of tenants with few. If that shard is busy,
// the room stays overdrawn until a later call makes it: waiting could wait for ever, and room made
// elsewhere would be made by those who are not to blame.
func (s *shard) weigh(e *entry, weight int64) {
	kind := e.key.kind.pool()
	s.pools[kind].used.Add(weight - e.weight)
	left := &s.store.left[kind]
	left.Add(e.weight - weight)
	e.weight = weight
	for kind != overridePool && left.Load() < 0 {
		fullest := s.store.fullest(kind, s, weight)
		if fullest == nil {
			return
		}
		switch {
		case fullest == s:
			if !s.evict(kind, e) {
				return
			}
		case fullest.mu.TryLock():
			fullest.evict(kind, nil)
			fullest.mu.Unlock()
		default:
			return
		}
	}
}

// fullest returns the shard with most in the pool, of which a weight in the asking shard does not count
// because it is to stay. It returns nil if there is nothing. The answer may be a little out of date.
func (m *Memory) fullest(kind poolKind, asking *shard, stays int64) *shard {
	var fullest *shard
	most := int64(0)
	for i := range m.shards {
		s := &m.shards[i]
		used := s.pools[kind].used.Load()
		if s == asking {
			used -= stays
		}
		if used > most {
			fullest, most = s, used
		}
	}
	return fullest
}

// evict removes an entry, other than the one spared, from a sample: one of the tenant with most in it,
// and of these the one that expires first, which of budgets is the nearest to full and of records the
// oldest. Records of operations that are running go last. It reports whether there was any.
func (s *shard) evict(kind poolKind, spared *entry) bool {
	p := &s.pools[kind]
	var sample [evictionSample]*entry
	n := 0
	for i := range min(evictionSample, len(p.list)) {
		if e := p.list[(p.cursor+i)%len(p.list)]; e != spared {
			sample[n] = e
			n++
		}
	}
	if n == 0 {
		return false
	}
	first := sample[0]
	for _, e := range sample[1:n] {
		if goesBefore(e, first, sample[:n]) {
			first = e
		}
	}
	p.cursor += evictionSample
	if kind == bucketPool && first.expires > s.now() {
		s.store.evicted.Add(1)
	}
	s.remove(first)
	return true
}

func goesBefore(e, other *entry, sample []*entry) bool {
	if running := e.running(); running != other.running() {
		return !running
	}
	if many, few := sameTenant(e, sample), sameTenant(other, sample); many != few {
		return many > few
	}
	return e.expires < other.expires
}

// running says whether it is the record of an attempt that runs.
func (e *entry) running() bool {
	return e.key.kind == recordKey && state.RecordState(e.value) == state.Running
}

func sameTenant(e *entry, sample []*entry) int {
	n := 0
	for _, other := range sample {
		if other.key.tenant == e.key.tenant {
			n++
		}
	}
	return n
}
