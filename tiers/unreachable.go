package tiers

import (
	"cmp"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// unreachable looks for limits that hold less than an operation may cost, in tiers and in what exceptions
// change: what is dearer than the capacity can never run, although the maximum cost permits it.
func (o *oversight) unreachable(p *Policy) {
	dearest := int64(0)
	for _, name := range sorted(p.Tiers) {
		tier := p.Tiers[name]
		o.unreachableIn(path("").to("tiers").to(name), merge(tier, Exception{}), tier.Operations)
		dearest = max(dearest, tier.MaxCost)
	}
	if b := p.Backstop; b != nil {
		o.below(path("").to("backstop"), dearest, b.Limits)
		for _, spelling := range sorted(b.Operations) {
			o.below(path("").to("backstop").to("operations").to(spelling), dearest, b.Operations[spelling].Limits)
		}
	}
	for _, name := range sorted(p.Tenants) {
		x := p.Tenants[name]
		merged := merge(p.Tiers[cmp.Or(x.Tier, p.Default)], x)
		users, personal := x.Users.split()
		if x.MaxCost == 0 && !x.factor().changes() {
			// Of limits that the exception does not change the tier has the same to say.
			merged.Limits, merged.teams, merged.users = x.Limits, mergeOwners(nil, x.Teams), mergeOwners(nil, users)
			merged.personal = personal
		}
		o.unreachableIn(path("").to("tenants").to(name), merged, x.Operations)
	}
}

// unreachableIn looks at what is merged, and of its operation rules at those that are changed.
func (o *oversight) unreachableIn(at path, t ruleSource, changed map[string]OperationRule) {
	if t.Blocked || t.Unlimited {
		return
	}
	o.below(at, t.MaxCost, t.Limits)
	o.belowOwners(at.to("teams"), t.MaxCost, t.teams)
	o.belowOwners(at.to("users"), t.MaxCost, t.users)
	for _, spelling := range sorted(t.personal) {
		o.below(at.to("users").to("operations").to(spelling), t.MaxCost, t.personal[spelling].Limits)
	}
	for _, spelling := range sorted(changed) {
		o.below(at.to("operations").to(spelling), smallest(t.Operations[spelling].MaxCost, t.MaxCost), changed[spelling].Limits)
	}
}

func (o *oversight) belowOwners(at path, most int64, x OwnerException) {
	o.below(at, most, x.Limits)
	for _, name := range sorted(x.ByName) {
		o.below(at.to("byName").to(name), most, x.ByName[name].Limits)
	}
}

// below finds limits that hold less than the maximum cost, of which zero is none.
func (o *oversight) below(at path, most int64, limits map[string]*Limit) {
	for _, name := range sorted(limits) {
		if len(o.odd) >= maxWarnings {
			return
		}
		key, ok := limits[name].allocation()
		if ok && key.unit == bucket.Points && limits[name].Capacity < most {
			o.add(at.to("limits").to(name).to("capacity"),
				"a capacity of %d points is below the maxCost of %d: operations that cost more than the capacity can never run",
				limits[name].Capacity, most)
		}
	}
}
