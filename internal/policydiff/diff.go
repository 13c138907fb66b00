// Package policydiff says in words what differs between two policies. The command and the control plane say the same by it.
package policydiff

import (
	"maps"
	"reflect"
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Policy is a policy as it holds, and as it was written.
type Policy struct {
	*tiers.Snapshot

	Written *tiers.Policy
}

// Change is one thing that differs.
type Change struct {
	// Tier or Tenant is whose it is. Both are empty for what is about everybody.
	Tier   string `json:"tier,omitempty"`
	Tenant string `json:"tenant,omitempty"`
	// What is what it is about, such as tenant limit minute.
	What string `json:"what"`
	// Old and New say it in words. Empty is nothing.
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty"`
}

// Compare returns what changes for all, for tiers, and for the tenants that a policy lists, in this order, and how many of these change
// as their tier does.
func Compare(before, after *Policy) (changes []Change, following int) {
	if was, is := before.Written.Default, after.Written.Default; was != is {
		changes = append(changes, Change{What: "default tier", Old: was, New: is})
	}
	changes = append(changes, difference(ofBackstop(before), ofBackstop(after))...)
	changes = append(changes, custom("", before.Written.Custom, after.Written.Custom)...)
	byTier := make(map[[2]string][]Change)
	for _, tier := range union(before.Written.Tiers, after.Written.Tiers) {
		for _, change := range difference(ofTier(before, tier), ofTier(after, tier)) {
			change.Tier = tier
			changes = append(changes, change)
		}
	}
	for _, tenant := range union(before.Written.Tenants, after.Written.Tenants) {
		was, is := ofTenant(before, tenant), ofTenant(after, tenant)
		own := difference(was.facts, is.facts)
		move := [2]string{was.tier, is.tier}
		if _, known := byTier[move]; !known {
			byTier[move] = difference(ofTier(before, was.tier), ofTier(after, is.tier))
		}
		keyed := custom(tenant, before.Written.Tenants[tenant].Custom, after.Written.Tenants[tenant].Custom)
		if was.tier == is.tier && slices.Equal(own, byTier[move]) {
			if len(own) > 0 {
				following++
			}
			changes = append(changes, keyed...)
			continue
		}
		if was.tier != is.tier {
			own = append([]Change{{What: "tier", Old: was.tier, New: is.tier}}, own...)
		}
		for _, change := range own {
			change.Tenant = tenant
			changes = append(changes, change)
		}
		changes = append(changes, keyed...)
	}
	return changes, following
}

// custom returns what differs between custom limits.
func custom(tenant string, before, after map[string]tiers.CustomRule) []Change {
	var changes []Change
	for _, key := range union(before, after) {
		was, is := before[key], after[key]
		if reflect.DeepEqual(was, is) {
			continue
		}
		change := Change{Tenant: tenant, What: "custom limits of " + key, Old: written(was.Limits), New: written(is.Limits)}
		if change.Old == change.New {
			// What differs is said by no limit: a mode, for example.
			change.Old, change.New = change.Old+", as it was", change.New+", with other settings"
		}
		changes = append(changes, change)
	}
	return changes
}

func union[A, B any](a map[string]A, b map[string]B) []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(all)
	return slices.Compact(all)
}
