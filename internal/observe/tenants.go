package observe

import (
	"sort"
	"sync"
)

// otherTenants stands for all tenants that metrics do not name.
const otherTenants = "other"

// tenantNames decides which tenants metrics name: those on a list, and the busiest of the rest.
//
// The busiest are found by the space-saving algorithm (Metwally, Agrawal, El Abbadi: Efficient
// Computation of Frequent and Top-k Elements in Data Streams, 2005) with a fixed number of counters.
// A name that was once handed out makes a series for the life of the process, so their number is
// bounded as well.
type tenantNames struct {
	listed map[string]bool
	top    int

	mu sync.Mutex
	// ranking holds the counters, the highest first; place finds a tenant in it.
	ranking []tenantCount
	place   map[string]int
	named   map[string]bool
}

type tenantCount struct {
	tenant string
	count  uint64
}

const (
	// countersPerName is how many candidates compete for each name.
	countersPerName = 8
	// namesPerPlace is how many tenants may follow one another in one of the top places.
	namesPerPlace = 4
)

// newTenantNames returns nil if metrics name no tenant.
func newTenantNames(listed []string, top int) *tenantNames {
	if len(listed) == 0 && top <= 0 {
		return nil
	}
	t := &tenantNames{
		listed: make(map[string]bool, len(listed)), top: top,
		place: make(map[string]int), named: make(map[string]bool),
	}
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
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count(tenant)
	if !t.named[tenant] {
		if len(t.named) >= t.top*namesPerPlace || t.place[tenant] >= t.top {
			return otherTenants
		}
		t.named[tenant] = true
	}
	return boundedName(tenant)
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
