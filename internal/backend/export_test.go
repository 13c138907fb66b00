package backend

import "github.com/gqlgen-ratelimit/ratelimit/bucket"

// Entries returns how many refusals, and tenants without one, the gate remembers, by its own count, or -1 if that is wrong.
func (g *Gate) Entries() int {
	if g.refusals == nil {
		return 0
	}
	all := 0
	for i := range g.refusals.shards {
		s := &g.refusals.shards[i]
		entries := 0
		for _, t := range s.byTenant {
			entries += t.size()
		}
		if entries != s.entries || len(s.byTenant) != int(s.tenants.Load()) {
			return -1
		}
		all += entries
	}
	return all
}

// UnderWay returns how many tenants have calls under way.
func (g *Gate) UnderWay() int {
	all := 0
	for i := range g.bulkhead.shards {
		all += len(g.bulkhead.shards[i].calls)
	}
	return all
}

// SetStore puts another store behind the gate.
func (g *Gate) SetStore(store bucket.Store) { g.store = store }
