package observe

import (
	"hash/maphash"
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// otherTenants stands for all tenants that metrics do not name.
const otherTenants = "other"

// tenantNames decides which tenants metrics name: those on a list, and the busiest of the rest.
//
// The busiest are found by counters whose values are halved as time goes by. Who is among them is looked at now and then,
// by what was surely counted of each, so that many tenants, one after the other, take no names, and who was not among them for
// long has none. A name
// makes series, so their number is bounded at any time, and how many change in an hour. Decisions count without a lock;
// tenants are told apart by 64 bits of a hash.
type tenantNames struct {
	listed map[string]bool
	top    int
	seed   maphash.Seed
	// counts find the busiest.
	counts counters
	// names are those that are given out, in a map that never changes, and sets are those of the tenants that have names.
	names atomic.Pointer[map[uint64]bool]
	sets  atomic.Pointer[sets]
	// free says that the first names are not all given out, and due is when the names follow the counters next.
	free atomic.Bool
	due  atomic.Int64

	// mu guards what follows, which decisions do not read.
	mu sync.Mutex
	// named says when a tenant that has a name was last seen among the busiest.
	named map[uint64]time.Time
	// halved is when the counters last were, and hour is since when changed counts names that others have got.
	halved, hour time.Time
	changed      int
}

const (
	// namesPerPlace is how many tenants have names for each of the top places.
	namesPerPlace = 4

	// lookEvery is how often the names follow the counters, and halveEvery how often these are halved.
	lookEvery  = 10 * time.Second
	halveEvery = 10 * time.Minute
	// nameHolds is for how long a tenant keeps its name that is not among the busiest any more.
	nameHolds = time.Hour
)

// newTenantNames returns nil if metrics name no tenant.
func newTenantNames(listed []string, top int) *tenantNames {
	if len(listed) == 0 && top <= 0 {
		return nil
	}
	now := time.Now()
	t := &tenantNames{
		listed: make(map[string]bool, len(listed)), top: max(0, top), seed: maphash.MakeSeed(),
		counts: newCounters(max(0, top)), named: make(map[uint64]time.Time), halved: now, hour: now,
	}
	t.sets.Store(&sets{})
	t.names.Store(&map[uint64]bool{})
	t.free.Store(top > 0)
	t.due.Store(now.Add(lookEvery).UnixNano())
	for _, tenant := range listed {
		t.listed[tenant] = true
	}
	return t
}

// name counts an operation of the tenant and returns what metrics call it.
func (t *tenantNames) name(tenant string) string {
	if t.listed[tenant] {
		return boundedName(tenant)
	}
	if t.top <= 0 {
		return otherTenants
	}
	id, now := maphash.String(t.seed, tenant), time.Now()
	t.counts.count(id)
	if due := t.due.Load(); now.UnixNano() >= due && t.due.CompareAndSwap(due, now.Add(lookEvery).UnixNano()) {
		t.look(now)
	}
	if (*t.names.Load())[id] || t.free.Load() && t.first(id, now) {
		return boundedName(tenant)
	}
	return otherTenants
}

// first gives a name to one of the first tenants, which need not wait for the next look: they take it from nobody.
func (t *tenantNames) first(id uint64, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, named := t.named[id]; named {
		return true
	}
	if len(t.named) >= t.top {
		t.free.Store(false)
		return false
	}
	t.named[id] = now
	t.publish()
	return true
}

// look gives names to the busiest, and takes them from those that have not been among these for long.
func (t *tenantNames) look(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if passed := now.Sub(t.halved).Truncate(halveEvery); passed > 0 {
		t.halved = t.halved.Add(passed)
		t.counts.halve(int(min(passed/halveEvery, 63)))
	}
	if now.Sub(t.hour) >= time.Hour {
		t.hour, t.changed = now, 0
	}
	busiest, busy := t.counts.busiest(t.top)
	for _, id := range busiest {
		if _, named := t.named[id]; named {
			t.named[id] = now
		}
	}
	maps.DeleteFunc(t.named, func(_ uint64, seen time.Time) bool { return now.Sub(seen) >= nameHolds })
	for _, id := range busiest[:busy] {
		if _, named := t.named[id]; !named && t.makeRoom(now) {
			t.named[id] = now
		}
	}
	t.publish()
}

// makeRoom reports whether there is room for another name. It takes one from who is not among the busiest for longest, as
// often an hour as there are top places.
func (t *tenantNames) makeRoom(now time.Time) bool {
	if len(t.named) < t.top*namesPerPlace {
		return true
	}
	longest, since := uint64(0), now
	for id, seen := range t.named {
		if seen.Before(since) {
			longest, since = id, seen
		}
	}
	if since.Equal(now) || t.changed >= t.top {
		return false
	}
	t.changed++
	delete(t.named, longest)
	return true
}

// publish tells decisions who has a name, and drops what was made for names that are gone.
func (t *tenantNames) publish() {
	was, names := *t.names.Load(), make(map[uint64]bool, len(t.named))
	gone := len(was)
	for id := range t.named {
		names[id] = true
		if was[id] {
			gone--
		}
	}
	t.names.Store(&names)
	if gone > 0 {
		t.sets.Store(&sets{})
	}
}
