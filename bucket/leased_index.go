package bucket

import (
	"hash/maphash"
	"sync/atomic"
)

// leasedList has the buckets of some hashes of tenants. Takes walk it without a lock, and usually find at its head what they look for: a map would be looked up for
// each of them. A list has a lock, which it shares with others, for those who put in or take out. Who walks meanwhile may still find what was taken out, which is ended.
type leasedList struct{ first atomic.Pointer[leasedTenant] }

// hash is that of a tenant, by which its buckets are found.
func (l *Leased) hash(tenant string) uint64 { return maphash.String(l.seed, tenant) }

// find returns what is leased of a bucket of a tenant that has the hash, nil if nothing is.
func (l *Leased) find(hash uint64, tenant string, owner *Owner) *leasedTenant {
	t := l.lists[hash%leaseLists].first.Load()
	for t != nil && (t.hash != hash || t.name != tenant || t.policy.Owner != *owner) {
		t = t.next.Load()
	}
	return t
}

// begin makes the bucket at a place of the take one that is leased. It does nothing if that is negative.
func (l *Leased) begin(take *Take, at int) {
	if at < 0 || l.tenants.Load() >= maxLeased {
		return
	}
	b := take.Buckets[at]
	b.Amounts = nil
	hash := l.hash(take.Tenant)
	lock := &l.locks[hash%leaseLocks]
	lock.Lock()
	defer lock.Unlock()
	if l.find(hash, take.Tenant, &b.Owner) != nil || !l.allowed.Load() || l.isStopped() {
		return
	}
	t := newLeasedTenant(l, take.Tenant, take.Lease, b)
	t.hash = hash
	first := &l.lists[hash%leaseLists].first
	t.next.Store(first.Load())
	first.Store(t)
	l.tenants.Add(1)
}

// end forgets a tenant. What it held it has given back, or loses.
func (l *Leased) end(t *leasedTenant) {
	lock := &l.locks[t.hash%leaseLocks]
	lock.Lock()
	defer lock.Unlock()
	at := &l.lists[t.hash%leaseLists].first
	for is := at.Load(); is != t; is = at.Load() {
		if is == nil {
			return
		}
		at = &is.next
	}
	at.Store(t.next.Load())
	l.tenants.Add(-1)
}

// bucketOf is what is leased of a bucket of a tenant, nil if nothing is.
func (l *Leased) bucketOf(tenant string, owner Owner) *leasedTenant {
	return l.find(l.hash(tenant), tenant, &owner)
}

// lockedOf is bucketOf of what is not forgotten before it is unlocked.
func (l *Leased) lockedOf(tenant string, owner Owner) *leasedTenant {
	hash := l.hash(tenant)
	lock := &l.locks[hash%leaseLocks]
	lock.Lock()
	defer lock.Unlock()
	t := l.find(hash, tenant, &owner)
	if t != nil {
		t.mu.Lock()
	}
	return t
}

// each calls f with each bucket that was leased when it began. Most processes lease few, so that it ends with the last of these and not with the last list.
func (l *Leased) each(f func(*leasedTenant)) {
	left := l.tenants.Load()
	for i := 0; i < len(l.lists) && left > 0; i++ {
		for t := l.lists[i].first.Load(); t != nil; t = t.next.Load() {
			f(t)
			left--
		}
	}
}
