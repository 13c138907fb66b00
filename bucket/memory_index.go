package bucket

import (
	"hash/maphash"
	"strconv"
)

// tenantKey is the name under which a tenant is kept, and its hash.
type tenantKey struct {
	name string
	hash uint64
}

// entryKey is an address, with the name that is kept of it.
type entryKey struct {
	tenant string
	name   string
	hash   uint64
	kind   keyKind
}

// oddFactor sets the hash of a tenant apart from that of a name, so that two that change places have another.
const oddFactor = 0x9E3779B97F4A7C15

// key returns the key of what is kept of the tenant. Names are hashed with a seed, so that nobody can choose two that
// meet.
func (s *shard) key(tenant tenantKey, kind keyKind, name string) entryKey {
	key := entryKey{tenant: tenant.name, name: memoryName(name), hash: tenant.hash*oddFactor + uint64(kind), kind: kind}
	if name != "" {
		key.hash += maphash.String(s.store.seed, key.name)
	}
	return key
}

// keyOf returns the key of an address.
func (s *shard) keyOf(tenant tenantKey, a *address) entryKey {
	if a.candidate != "" {
		// No tenant has this name: one that starts with ~ has no other in it.
		tenant = s.store.tenant("~" + a.candidate + "~" + tenant.name)
	}
	return s.key(tenant, a.kind, memoryPart(a.name, a.part))
}

// bucketKey returns the key of the bucket of an owner.
func (s *shard) bucketKey(tenant tenantKey, owner *Owner) entryKey {
	if owner.Part != "" {
		return s.key(tenant, partKey, memoryPart(owner.Name, owner.Part))
	}
	return s.key(tenant, keyKind(owner.Level), owner.Name)
}

// memoryPart is one name for a name and a part: no two of them have the same.
func memoryPart(name, part string) string {
	if part == "" {
		return name
	}
	return strconv.Itoa(len(name)) + ":" + name + part
}

// lookup returns the entry of the key or nil.
func (s *shard) lookup(key *entryKey) *entry {
	if e := s.index[key.hash]; e != nil && e.key == *key {
		return e
	}
	return nil
}

func (k keyKind) pool() poolKind {
	switch {
	case k >= overridesKey:
		return overridePool
	case k >= recordKey:
		return recordPool
	default:
		return bucketPool
	}
}

type entry struct {
	key entryKey
	// expires is the Unix millisecond at which the entry means the same as none.
	expires int64
	place   int
	weight  int64
	// value is what is kept, packed as package state has it.
	value []byte
}

// find returns a living entry or nil. One that has expired is removed, as Redis does, so that a clock
// that is set back does not bring it back.
func (s *shard) find(key *entryKey, now int64) *entry {
	e := s.lookup(key)
	if e != nil && e.expires <= now {
		s.remove(e)
		return nil
	}
	return e
}

// obtain returns the entry of the key, a new one if there is none that lives.
func (s *shard) obtain(key *entryKey, now int64) *entry {
	if e := s.find(key, now); e != nil {
		return e
	}
	if e := s.index[key.hash]; e != nil {
		// Two keys of one hash are too rare to be kept beside each other: the older one makes room.
		s.remove(e)
	}
	s.due += sweepStep
	e := &entry{key: *key}
	s.weigh(e, 1)
	list := &s.pools[key.kind.pool()].list
	e.place = len(*list)
	*list = append(*list, e)
	s.index[key.hash] = e
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
	delete(s.index, e.key.hash)
	p.used.Add(-e.weight)
	s.store.left[kind].Add(e.weight)
	e.weight = 0
}

// memoryName bounds the length of a name that is kept. The two forms never meet, because names that
// start with ~ are always encoded.
func memoryName(name string) string {
	if len(name) <= maxLiteralBytes && (name == "" || name[0] != '~') {
		return name
	}
	return segment(name)
}
