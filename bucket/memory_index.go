package bucket

import (
	"hash/maphash"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

type entryKind uint8

// The kinds below these are the levels of owners.
const (
	recordEntry entryKind = iota + entryKind(Operation) + 1
	settledEntry
)

// tenantKey is the name under which a tenant is kept, and its hash.
type tenantKey struct {
	name string
	hash uint64
}

type entryKey struct {
	tenant string
	name   string
	hash   uint64
	kind   entryKind
}

// key returns the key of an entry of the tenant.
func (s *shard) key(tenant tenantKey, kind entryKind, name string) entryKey {
	return entryKey{tenant: tenant.name, name: name, hash: s.hash(tenant, kind, name), kind: kind}
}

// hash is that of a key. Names are hashed with a seed, so that nobody can choose two that meet.
func (s *shard) hash(tenant tenantKey, kind entryKind, name string) uint64 {
	hash := tenant.hash + uint64(kind)
	if name != "" {
		hash += maphash.String(s.store.seed, name)
	}
	return hash
}

func (s *shard) bucketKey(tenant tenantKey, owner Owner) entryKey {
	return s.key(tenant, entryKind(owner.Level), memoryName(owner.Name))
}

// bucket returns the entry of an owner, or nil. It makes no key, which would be copied.
func (s *shard) bucket(tenant tenantKey, owner *Owner) *entry {
	kind, name := entryKind(owner.Level), memoryName(owner.Name)
	e := s.index[s.hash(tenant, kind, name)]
	for e != nil && (e.key.kind != kind || e.key.name != name || e.key.tenant != tenant.name) {
		e = e.next
	}
	return e
}

// lookup returns the entry of the key or nil.
func (s *shard) lookup(key *entryKey) *entry {
	e := s.index[key.hash]
	for e != nil && (e.key.kind != key.kind || e.key.name != key.name || e.key.tenant != key.tenant) {
		e = e.next
	}
	return e
}

func (k entryKind) pool() poolKind {
	if k >= recordEntry {
		return recordPool
	}
	return bucketPool
}

type entry struct {
	key entryKey
	// next is another entry of the same hash.
	next *entry
	// expires is the Unix millisecond at which the entry means the same as none.
	expires int64
	place   int
	weight  int64
	ledger  state.Owner
	record  *state.Record
}

// find returns a living entry or nil. One that has expired is removed, as Redis does, so that a clock
// that is set back does not bring it back.
func (s *shard) find(key entryKey, now int64) *entry {
	e := s.lookup(&key)
	if e != nil && e.expires <= now {
		s.remove(e)
		return nil
	}
	return e
}

// obtain returns the entry of the key, a new one if there is none that lives.
func (s *shard) obtain(key entryKey, now int64) *entry {
	if e := s.find(key, now); e != nil {
		return e
	}
	s.due += sweepStep
	e := &entry{key: key}
	s.weigh(e, 1)
	list := &s.pools[key.kind.pool()].list
	e.place = len(*list)
	e.next = s.index[key.hash]
	s.index[key.hash] = e
	*list = append(*list, e)
	return e
}

func (s *shard) remove(e *entry) {
	kind := e.key.kind.pool()
	p := &s.pools[kind]
	last := len(p.list) - 1
	moved := p.list[last]
	p.list[e.place] = moved
	moved.place = e.place
	p.list[last] = nil
	p.list = p.list[:last]
	s.unlink(e)
	p.used.Add(-e.weight)
	s.store.left[kind].Add(e.weight)
	e.weight = 0
}

// unlink takes the entry out of the index.
func (s *shard) unlink(e *entry) {
	first := s.index[e.key.hash]
	switch {
	case first != e:
		for first.next != e {
			first = first.next
		}
		first.next = e.next
	case e.next != nil:
		s.index[e.key.hash] = e.next
	default:
		delete(s.index, e.key.hash)
	}
	e.next = nil
}

// memoryName bounds the length of a name that is kept. The two forms never meet, because names that
// start with ~ are always encoded.
func memoryName(name string) string {
	if len(name) <= maxLiteralBytes && (name == "" || name[0] != '~') {
		return name
	}
	return segment(name)
}
