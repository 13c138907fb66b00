package tiers

import (
	"cmp"
	"encoding/json"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
)

// register has what is different for the tenants that a policy lists: once for all of whom it is the same, and as text,
// because most of a large policy is about tenants that do not ask at the moment. It never changes.
//
// Of the names it has 64 bits of a hash each, in a hash table with linear probing, so that a look-up reads one place of
// memory and a collector none. Those of the tenants on the list differ. One that is not on a list of 100 000 passes for one
// that is with a probability of 10^-14; nobody can look for it, since the seed is drawn in each process.
type register struct {
	seed  maphash.Seed
	slots []listedTenant
	kinds []kind
}

// listedTenant is a tenant by the hash of its name. Its kind is counted from 1, and zero where there is no tenant.
type listedTenant struct {
	hash uint64
	kind uint32
}

// kind is an exception that some tenants have.
type kind struct {
	// tier is the one that the tenants are assigned to.
	tier string
	// text is the exception in JSON. It is empty if nothing is different but the tier.
	text string
}

// newRegister returns the register of a policy, and of the tenants of each kind one: the first by its name. What is
// wrong with it is wrong with all of the kind.
func newRegister(p *Policy) (*register, map[string]Exception) {
	r := &register{}
	firsts := make(map[string]Exception)
	places := make(map[kind]uint32)
	names := sorted(p.Tenants)
	kinds := make([]uint32, len(names))
	for i, name := range names {
		x := p.Tenants[name]
		k := kindOfException(p, &x)
		place, known := places[k]
		// A name that does not fit is a mistake of one tenant alone.
		if !known || longNameProblem("", name) != "" {
			place = uint32(len(r.kinds))
			places[k] = place
			r.kinds = append(r.kinds, k)
			firsts[name] = x
		}
		kinds[i] = place
	}
	r.kinds = slices.Clip(r.kinds)
	for !r.enter(names, kinds) {
		// Two names had one hash.
	}
	return r, firsts
}

// enter makes the table with a new seed. It returns false if two names have one hash.
func (r *register) enter(names []string, kinds []uint32) bool {
	size := 4
	for size*3 < len(names)*4 {
		size *= 2
	}
	r.seed, r.slots = maphash.MakeSeed(), make([]listedTenant, size)
	for i, name := range names {
		slot := r.slot(name)
		if slot.kind != 0 {
			return false
		}
		*slot = listedTenant{hash: maphash.String(r.seed, name), kind: kinds[i] + 1}
	}
	return true
}

// slot returns where a tenant stands, or the free place where it would.
func (r *register) slot(tenant string) *listedTenant {
	hash, mask := maphash.String(r.seed, tenant), uint64(len(r.slots)-1)
	for i := hash & mask; ; i = (i + 1) & mask {
		if slot := &r.slots[i]; slot.hash == hash || slot.kind == 0 {
			return slot
		}
	}
}

// find returns the place of the kind of a tenant, false if the policy does not list it.
func (r *register) find(tenant string) (place uint32, listed bool) {
	slot := r.slot(tenant)
	return slot.kind - 1, slot.kind != 0
}

func kindOfException(p *Policy, x *Exception) kind {
	k := kind{tier: cmp.Or(x.Tier, p.Default)}
	if !x.changesNothing() || x.EnforceFrom != "" || x.Tier == "" {
		// All of it can be written as JSON. Text that is not UTF-8 loses what it is, and does not compile.
		text, _ := json.Marshal(x)
		k.text = string(text)
	}
	return k
}

// exception returns what is different for tenants of a kind.
func (k *kind) exception() Exception {
	x := Exception{Tier: k.tier}
	if k.text != "" {
		x = Exception{}
		// It was written by this package.
		_ = json.Unmarshal([]byte(k.text), &x)
	}
	return x
}

// exception returns what is different for a tenant, the zero value if the policy does not list it.
func (r *register) exception(tenant string) Exception {
	if place, listed := r.find(tenant); listed {
		return r.kinds[place].exception()
	}
	return Exception{}
}

// alike adds to the first tenants of all kinds those of the kinds that findings are about, so that what they have in common
// is reported for each.
func (r *register) alike(p *Policy, firsts map[string]Exception, findings []finding) map[string]Exception {
	found := make(map[uint32]bool)
	for i := range findings {
		keys := strings.SplitN(string(findings[i].path), "\x00", 3)
		if place, listed := r.find(keys[min(1, len(keys)-1)]); listed && keys[0] == "tenants" {
			found[place] = true
		}
	}
	all := maps.Clone(firsts)
	for name, x := range p.Tenants {
		if place, _ := r.find(name); found[place] {
			all[name] = x
		}
	}
	return all
}
