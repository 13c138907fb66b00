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

// entryKey is an address, with the name that is kept of it. A name has 64 bytes at most, and a tenant 130: that of a candidate policy.
type entryKey struct {
	tenant string
	name   string
	// tag is the beginning of the hash of all of it.
	tag  uint64
	kind keyKind
}

// These factors set the hash of a tenant apart from that of a name, so that two that change places have another, and the kinds
// of one name from each other.
const (
	tenantFactor = 0x9E3779B97F4A7C15
	kindFactor   = 0xD6E8FEB86659FD93
)

// key returns the key of what is kept of the tenant. Names are hashed with a seed, so that nobody can choose many that
// meet, and compared, so that two that do are two.
func (s *shard) key(tenant tenantKey, kind keyKind, name string) entryKey {
	hash := tenant.hash*tenantFactor + uint64(kind)*kindFactor
	if name != "" {
		name = memoryName(name)
		hash += maphash.String(s.store.seed, name)
	}
	return entryKey{tenant: tenant.name, name: name, tag: s.tag(hash), kind: kind}
}

// tag is the part of a hash that is kept.
func (s *shard) tag(hash uint64) uint64 { return hash & s.store.hashed >> placeBits }

// keyOf returns the key of an address.
func (s *shard) keyOf(tenant tenantKey, a *address) entryKey {
	switch {
	case a.candidate != "":
		tenant = s.candidate(tenant, a.candidate)
	case a.held:
		// No candidate has an empty name.
		tenant = s.candidate(tenant, "")
	}
	return s.key(tenant, a.kind, memoryPart(a.name, a.part))
}

// candidate returns the tenant under which its buckets of a candidate policy are kept. No other has this name: one that starts
// with ~ has no other in it.
func (s *shard) candidate(tenant tenantKey, id string) tenantKey {
	return s.store.tenant("~" + id + "~" + tenant.name)
}

// bucketKey returns the key of the bucket of an owner.
func (s *shard) bucketKey(tenant tenantKey, owner *Owner) entryKey {
	if owner.Level == Tenant {
		// It has no name to be hashed, and stands in most takes.
		return entryKey{tenant: tenant.name, tag: s.tag(tenant.hash * tenantFactor)}
	}
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

// memoryName bounds the length of a name that is kept. The two forms never meet, because names that
// start with ~ are always encoded.
func memoryName(name string) string {
	if len(name) <= maxLiteralBytes && (name == "" || name[0] != '~') {
		return name
	}
	return segment(name)
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
