package report

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/number"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pseudonym"
)

const (
	// shards is how many parts count beside each other, each a part of the tenants.
	shards = 16
	// tenantsOfShard is how many tenants a shard counts by name in a second, and operationsOfShard how many root fields.
	tenantsOfShard    = 128
	operationsOfShard = 128
	// fieldsCounted is how many root fields of one operation are counted.
	fieldsCounted = 4
	// listed is how many tenants an activity has by each of three counts, and how many operations.
	listed = 24
)

// counter counts decisions. Count is safe for concurrent use. Everything else belongs to one goroutine.
type counter struct {
	names
	seed maphash.Seed
	// below is the bound of the hashes of the tenants that are sampled.
	below  atomic.Uint64
	shards [shards]shard
	spare  [shards]*slot
	// lost is how many operations have left no record.
	lost uint64
}

// shard counts some of the tenants. Its lock is held while one decision is counted, and while a slot takes the place of another.
type shard struct {
	mu  sync.Mutex
	now *slot
}

// slot is what was counted between two calls of collect.
type slot struct {
	all        Counts
	tenants    map[string]*tenant
	unlisted   int64
	operations map[string]*Counts
	records    recording
}

// tenant is what was counted of one tenant. Its name is the key.
type tenant struct {
	Counts
	tier string
	// hash is HashTenant. kinds is how many records the tenant has in a slot.
	hash  uint64
	kinds int
}

func newCounter(of names) *counter {
	c := &counter{names: of, seed: maphash.MakeSeed()}
	c.below.Store(everybody)
	for i := range c.shards {
		c.shards[i].now, c.spare[i] = newSlot(), newSlot()
	}
	return c
}

func newSlot() *slot {
	return &slot{
		tenants: make(map[string]*tenant), operations: make(map[string]*Counts),
		records: recording{kinds: make(map[uint64]*recorded), spilled: everybody},
	}
}

// count counts a decision. It allocates nothing for a tenant that asks again and again.
func (c *counter) count(v *event.Verdict) {
	if v.Outcome == "validated" {
		return
	}
	detail := c.detailOf(v)
	s := &c.shards[maphash.String(c.seed, pseudonym.Cut(v.Tenant))%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.count(c, v, detail)
}

func (s *slot) count(c *counter, v *event.Verdict, d detail) {
	counts := Counts{Decisions: 1, Cost: max(0, v.Cost), Charged: max(0, v.Charged)}
	if v.Refused {
		counts.Refused = 1
	}
	if v.WouldRefuse {
		counts.WouldRefuse = 1
	}
	s.all = s.all.Plus(counts)
	for _, field := range v.RootFields[:min(len(v.RootFields), fieldsCounted)] {
		of := s.operations[field]
		if of == nil && len(s.operations) < operationsOfShard {
			of = new(Counts)
			s.operations[strings.Clone(pseudonym.Cut(field))] = of
		}
		if of != nil {
			*of = of.Plus(counts)
		}
	}
	var hash uint64
	t := s.tenant(c, v)
	if t != nil {
		t.Counts, t.tier, hash = t.Plus(counts), v.Tier, t.hash
	} else {
		s.unlisted++
		hash = HashTenant(c.key, v.Tenant)
	}
	if isSampled(v.Outcome) && below(hash, c.below.Load()) {
		s.records.add(c, v, d, t, hash)
	}
}

// tenant returns the counts of the tenant, nil if there is no room for another.
func (s *slot) tenant(c *counter, v *event.Verdict) *tenant {
	name := pseudonym.Cut(v.Tenant)
	t := s.tenants[name]
	if t == nil && len(s.tenants) < tenantsOfShard {
		t = &tenant{hash: HashTenant(c.key, name)}
		s.tenants[strings.Clone(name)] = t
	}
	return t
}

// reset makes the slot empty. Tenants and operations that come often keep their place, so that others cannot take it and counting them
// allocates nothing.
func (s *slot) reset() {
	s.all, s.unlisted = Counts{}, 0
	s.records.reset()
	const often = 2
	for name, t := range s.tenants {
		if t.Decisions < often || len(s.tenants) > tenantsOfShard/2 {
			delete(s.tenants, name)
			continue
		}
		t.Counts, t.kinds = Counts{}, 0
	}
	for name, of := range s.operations {
		if of.Decisions < often || len(s.operations) > operationsOfShard/2 {
			delete(s.operations, name)
			continue
		}
		*of = Counts{}
	}
}

// collect moves what was counted since it was called last into an activity. Requests go on being counted meanwhile.
func (c *counter) collect(a *Activity) {
	var records recordings
	var tenants []Tenant
	operations := make(map[string]Counts)
	for i := range c.shards {
		s := c.swap(i)
		a.Total, a.Unlisted = a.Total.Plus(s.all), number.Sum(a.Unlisted, s.unlisted)
		for name, t := range s.tenants {
			if t.Decisions > 0 {
				tenants = append(tenants, Tenant{Name: name, Tier: t.tier, Counts: t.Counts})
			}
		}
		for name, of := range s.operations {
			if of.Decisions > 0 {
				operations[name] = operations[name].Plus(*of)
			}
		}
		records.add(&s.records)
		s.reset()
	}
	a.Tenants = topTenants(tenants)
	all := a.Total.Decisions
	for i := range a.Tenants {
		t := &a.Tenants[i]
		t.Name, t.Tier = pseudonym.Written(t.Name), pseudonym.Written(t.Tier)
		all -= t.Decisions
	}
	a.Unlisted = max(0, all)
	for name, of := range operations {
		a.Operations = append(a.Operations, Operation{Name: pseudonym.Written(name), Counts: of})
	}
	slices.SortFunc(a.Operations, func(a, b Operation) int {
		return cmp.Or(cmp.Compare(b.Decisions, a.Decisions), cmp.Compare(a.Name, b.Name))
	})
	a.Operations = a.Operations[:min(len(a.Operations), listed)]
	a.Sample = c.sample(&records)
	a.Unrecorded = c.lost
}

// swap has a shard count in its other slot, and returns the one that it has counted in.
func (c *counter) swap(i int) *slot {
	s := &c.shards[i]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now, c.spare[i] = c.spare[i], s.now
	return c.spare[i]
}

// topTenants returns the tenants with most decisions, most refusals and most would-be refusals, each once, by name.
func topTenants(all []Tenant) []Tenant {
	if len(all) > listed {
		chosen := make(map[string]Tenant)
		for _, of := range [...]func(Tenant) int64{
			func(t Tenant) int64 { return t.Decisions }, func(t Tenant) int64 { return t.Refused }, func(t Tenant) int64 { return t.WouldRefuse },
		} {
			slices.SortFunc(all, func(a, b Tenant) int { return cmp.Or(cmp.Compare(of(b), of(a)), cmp.Compare(a.Name, b.Name)) })
			for _, t := range all[:listed] {
				if of(t) > 0 {
					chosen[t.Name] = t
				}
			}
		}
		all = all[:0]
		for _, t := range chosen {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b Tenant) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
