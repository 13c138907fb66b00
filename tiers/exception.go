package tiers

import (
	"hash/maphash"
	"maps"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// exceptionRules are what one kind of exceptions makes of the tiers, compiled when a subject first asks for it: those of a
// large policy do not all ask, and take a kilobyte each.
type exceptionRules struct {
	// assigned are those in the tier that the tenants are assigned to. They are there from the beginning if nothing else is
	// different.
	assigned atomic.Pointer[ruleSet]
	// carried are those in other tiers, which subjects have carried. The map never changes.
	carried atomic.Pointer[map[string]*ruleSet]
}

// in returns what was compiled for a tier, nil if nothing was.
func (e *exceptionRules) in(tier, assigned string) *ruleSet {
	if tier == assigned {
		return e.assigned.Load()
	}
	if carried := e.carried.Load(); carried != nil {
		return (*carried)[tier]
	}
	return nil
}

// keep is called by one at a time.
func (e *exceptionRules) keep(set *ruleSet, tier, assigned string) {
	if tier == assigned {
		e.assigned.Store(set)
		return
	}
	carried := make(map[string]*ruleSet, 1)
	if was := e.carried.Load(); was != nil {
		maps.Copy(carried, *was)
	}
	carried[tier] = set
	e.carried.Store(&carried)
}

// exception returns the rules of a kind of exceptions in a tier.
func (s *Snapshot) exception(place uint32, tier string) *ruleSet {
	k, e := &s.family.listed.kinds[place], &s.exceptions[place]
	if k.text == "" {
		return s.tiers[tier]
	}
	if set := e.in(tier, k.tier); set != nil {
		return set
	}
	s.making.Lock()
	defer s.making.Unlock()
	if set := e.in(tier, k.tier); set != nil {
		return set
	}
	// It has compiled before, for all tiers.
	set := s.compiler().ruleSet("", tier, merge(s.family.policy.Tiers[tier], k.exception()))
	e.keep(set, tier, k.tier)
	return set
}

// shared is what rule sets of one snapshot have in common. Limits that are equal, with the days on which they become
// enforced, are compiled once, and so are the operation rules of a tier that an exception does not touch.
type shared struct {
	seeds      [2]maphash.Seed
	limits     map[[2]uint64]*bucket.Limits
	operations map[operationsKey]*operationRules
	// below is what is looked at besides, and not changed. It is nil for a snapshot.
	below *shared
}

// operationsKey tells what the operation rules of a tier depend on besides the tier.
type operationsKey struct {
	tier             string
	inherited, users setting
	// units are those that rules compute and limits count.
	units string
	// others is the strictest mode of the limits in whose place a rule can stand.
	others bucket.Mode
}

func newShared() *shared {
	return &shared{
		seeds:  [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		limits: make(map[[2]uint64]*bucket.Limits), operations: make(map[operationsKey]*operationRules),
	}
}

// key returns 128 bits that limits have in common with no others.
func (s *shared) key(limits []bucket.Limit, days map[string]time.Time) [2]uint64 {
	var key [2]uint64
	for i := range key {
		var h maphash.Hash
		h.SetSeed(s.seeds[i])
		for l := range limits {
			maphash.WriteComparable(&h, limits[l])
			maphash.WriteComparable(&h, days[limits[l].Name].Unix())
		}
		key[i] = h.Sum64()
	}
	return key
}
