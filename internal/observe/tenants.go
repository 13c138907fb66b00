package observe

import (
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

// otherTenants stands for all tenants that metrics do not name.
const otherTenants = "other"

// tenantNames decides which tenants metrics name: those on a list, and the busiest of the rest.
//
// The busiest are found by the space-saving algorithm (Metwally, Agrawal, El Abbadi: Efficient
// Computation of Frequent and Top-k Elements in Data Streams, 2005) with a fixed number of counters, which are halved as
// time goes by. Who is among them is looked at now and then, so that a burst of many tenants, one after the other, takes
// no names, and who was not among them for long has none. A name makes series, so their number is bounded at any time, and
// how many change in an hour.
type tenantNames struct {
	listed map[string]bool
	top    int
	// sets are those of the tenants that have names.
	sets atomic.Pointer[sets]

	mu sync.Mutex
	// ranking holds the counters, the highest first; place finds a tenant in it.
	ranking []tenantCount
	place   map[string]int
	// named says when a tenant that has a name was last seen among the busiest.
	named map[string]time.Time
	// looked and halved are when that was last done, and hour is since when changed counts names that others have got.
	looked, halved, hour time.Time
	changed              int
}

type tenantCount struct {
	tenant string
	count  uint64
}

const (
	// countersPerName is how many candidates compete for each name.
	countersPerName = 8
	// namesPerPlace is how many tenants have names for each of the top places.
	namesPerPlace = 4

	// lookEvery is how often the names follow the ranking, and halveEvery how often its counts are halved.
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
		listed: make(map[string]bool, len(listed)), top: top,
		place: make(map[string]int), named: make(map[string]time.Time), looked: now, halved: now, hour: now,
	}
	t.sets.Store(&sets{})
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
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count(tenant)
	if now.Sub(t.looked) >= lookEvery {
		t.look(now)
	}
	if _, named := t.named[tenant]; named {
		return boundedName(tenant)
	}
	// The first ones need not wait for the next look: they take a name from nobody.
	if len(t.named) < t.top && t.place[tenant] < t.top {
		t.named[tenant] = now
		return boundedName(tenant)
	}
	return otherTenants
}

// look gives names to the busiest, and takes them from those that have not been among these for long.
func (t *tenantNames) look(now time.Time) {
	t.looked = now
	if passed := now.Sub(t.halved).Truncate(halveEvery); passed > 0 {
		t.halved = t.halved.Add(passed)
		halvings := passed / halveEvery
		for i := range t.ranking {
			t.ranking[i].count >>= min(halvings, 63)
		}
	}
	if now.Sub(t.hour) >= time.Hour {
		t.hour, t.changed = now, 0
	}
	busiest := t.ranking[:min(t.top, len(t.ranking))]
	for _, b := range busiest {
		if _, named := t.named[b.tenant]; named && b.count > 0 {
			t.named[b.tenant] = now
		}
	}
	for tenant, seen := range t.named {
		if now.Sub(seen) >= nameHolds {
			t.forget(tenant)
		}
	}
	for _, b := range busiest {
		if _, named := t.named[b.tenant]; !named && b.count > 0 && t.makeRoom(now) {
			t.named[b.tenant] = now
		}
	}
}

// makeRoom reports whether there is room for another name. It takes one from who is not among the busiest for longest, as
// often an hour as there are top places.
func (t *tenantNames) makeRoom(now time.Time) bool {
	if len(t.named) < t.top*namesPerPlace {
		return true
	}
	longest, since := "", now
	for tenant, seen := range t.named {
		if seen.Before(since) {
			longest, since = tenant, seen
		}
	}
	if longest == "" || t.changed >= t.top {
		return false
	}
	t.changed++
	t.forget(longest)
	return true
}

// forget takes the name of a tenant, and what was made for those that have one.
func (t *tenantNames) forget(tenant string) {
	delete(t.named, tenant)
	t.sets.Store(&sets{})
}

// count adds one to the tenant's counter; a newcomer takes over the smallest one.
func (t *tenantNames) count(tenant string) {
	at, known := t.place[tenant]
	if !known {
		at = len(t.ranking)
		if at < t.top*countersPerName {
			t.ranking = append(t.ranking, tenantCount{tenant: tenant})
		} else {
			at--
			delete(t.place, t.ranking[at].tenant)
			t.ranking[at].tenant = tenant
		}
		t.place[tenant] = at
	}
	// Among equals the first moves, so that the ranking stays sorted.
	count := t.ranking[at].count
	first := sort.Search(at, func(i int) bool { return t.ranking[i].count <= count })
	t.ranking[at], t.ranking[first] = t.ranking[first], t.ranking[at]
	t.place[t.ranking[at].tenant] = at
	t.place[tenant] = first
	t.ranking[first].count++
}
