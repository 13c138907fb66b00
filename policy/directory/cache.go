package directory

import (
	"hash/maphash"
	"math/bits"
	"strings"
	"sync/atomic"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// cache has what is known of tenants, in a hash table with as many chains as its bound in bytes has room for. Who reads takes
// no lock; who writes holds that of the directory. A reader that meets a writer may miss an entry, which the writer's lock then
// shows.
//
// Tenants with a record, and those without, have a list each, with a bound each: names that nobody has drive out no record.
// In both, an entry that was asked for since the hand has last passed it stays (SIEVE): names that come once drive out no
// tenant that comes again.
type cache struct {
	seed          maphash.Seed
	chains        []atomic.Pointer[entry]
	known, absent list
	// kinds are the records that some tenant has, by their document.
	kinds map[string]*kind
}

// entry is what is known of a tenant.
type entry struct {
	next   atomic.Pointer[entry]
	tenant string
	// kind is nil if the tenant has no record. It does not change.
	kind     *kind
	revision uint64
	// epoch is that of the directory in which the entry was read. What is of another one, 0 for example, is asked for again.
	epoch atomic.Uint32
	// visited says that it was asked for since the hand has passed.
	visited      atomic.Bool
	newer, older *entry
}

// kind is a record that some tenants share.
type kind struct {
	record *tiers.Record
	users  int
}

// record returns that of the tenant, nil if it has none.
func (e *entry) record() *tiers.Record {
	if e.kind == nil {
		return nil
	}
	return e.kind.record
}

// list is in the order in which entries came.
type list struct {
	newest, oldest, hand *entry
	count                int
	bytes, most          int64
}

const (
	// entryBytes is what an entry takes besides its name and its record.
	entryBytes = 72
	// kindBytes is what a record takes besides itself.
	kindBytes = 64
	// chainBytes is how many bytes of the bound there are for each chain.
	chainBytes = 512
	// absentPart is the part of the bound that tenants without a record have.
	absentPart = 8
)

func newCache(most int64) *cache {
	chains := 1 << bits.Len64(uint64(most/chainBytes)-1)
	most -= int64(chains) * int64(bits.UintSize/8)
	return &cache{
		seed: maphash.MakeSeed(), chains: make([]atomic.Pointer[entry], chains), kinds: make(map[string]*kind),
		known: list{most: most - most/absentPart}, absent: list{most: most / absentPart},
	}
}

func (c *cache) chain(tenant string) *atomic.Pointer[entry] {
	return &c.chains[maphash.String(c.seed, tenant)&uint64(len(c.chains)-1)]
}

// find returns what is known of a tenant, nil if nothing is. It takes no lock.
func (c *cache) find(tenant string) *entry {
	for e := c.chain(tenant).Load(); e != nil; e = e.next.Load() {
		if e.tenant == tenant {
			return e
		}
	}
	return nil
}

// put replaces what is known of a tenant. The record is nil if it has none.
func (c *cache) put(tenant string, record *tiers.Record, revision uint64, epoch uint32) *entry {
	if e := c.find(tenant); e != nil {
		if record == nil && e.kind == nil || record != nil && e.kind != nil && e.kind.record.Document() == record.Document() {
			e.revision = revision
			e.epoch.Store(epoch)
			return e
		}
		c.drop(e)
	}
	e := &entry{tenant: strings.Clone(tenant), kind: c.intern(record), revision: revision}
	e.epoch.Store(epoch)
	chain := c.chain(tenant)
	e.next.Store(chain.Load())
	chain.Store(e)
	l := c.listOf(e)
	l.push(e)
	for l.bytes > l.most && l.count > 1 {
		c.drop(l.victim(e))
	}
	return e
}

// intern returns the kind of a record, nil if there is none.
func (c *cache) intern(record *tiers.Record) *kind {
	if record == nil {
		return nil
	}
	k := c.kinds[record.Document()]
	if k == nil {
		k = &kind{record: record}
		c.kinds[record.Document()] = k
		c.known.bytes += kindBytes + int64(record.Bytes())
	}
	k.users++
	return k
}

func (c *cache) listOf(e *entry) *list {
	if e.kind == nil {
		return &c.absent
	}
	return &c.known
}

// drop forgets an entry. Readers that are at it go on along the chain.
func (c *cache) drop(e *entry) {
	place := c.chain(e.tenant)
	for at := place.Load(); at != e; at = place.Load() {
		place = &at.next
	}
	place.Store(e.next.Load())
	c.listOf(e).remove(e)
	if k := e.kind; k != nil {
		if k.users--; k.users == 0 {
			delete(c.kinds, k.record.Document())
			c.known.bytes -= kindBytes + int64(k.record.Bytes())
		}
	}
}

func (e *entry) bytes() int64 { return entryBytes + int64(len(e.tenant)) }

func (l *list) push(e *entry) {
	if e.older = l.newest; l.newest != nil {
		l.newest.newer = e
	} else {
		l.oldest = e
	}
	l.newest = e
	l.count++
	l.bytes += e.bytes()
}

func (l *list) remove(e *entry) {
	if l.hand == e {
		l.hand = e.newer
	}
	if e.newer != nil {
		e.newer.older = e.older
	} else {
		l.newest = e.older
	}
	if e.older != nil {
		e.older.newer = e.newer
	} else {
		l.oldest = e.newer
	}
	e.newer, e.older = nil, nil
	l.count--
	l.bytes -= e.bytes()
}

// victim returns the next entry, from the oldest on, that was not asked for since the hand has passed. It is another one
// than the one that has come, of which there is one.
func (l *list) victim(but *entry) *entry {
	for {
		e := l.hand
		if e == nil {
			e = l.oldest
		}
		l.hand = e.newer
		if e != but && !e.visited.Swap(false) {
			return e
		}
	}
}
