package tiers

import (
	"cmp"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// unleased looks for tiers and exceptions whose lease leases nothing: whoever wrote it expects a server to ask the store less often.
func (o *oversight) unleased(p *Policy) {
	inherited := setting{}.with(p.Mode, p.EnforceFrom, "")
	for _, name := range sorted(p.Tiers) {
		tier := merge(p.Tiers[name], Exception{})
		o.leasesNothing(path("").to("tiers").to(name).to("lease"), unleasedOf(inherited, &tier))
	}
	for _, name := range sorted(p.Tenants) {
		x, at := p.Tenants[name], path("").to("tenants").to(name)
		assigned := p.Tiers[cmp.Or(x.Tier, p.Default)]
		tier, merged := merge(assigned, Exception{}), merge(assigned, x)
		why := unleasedOf(inherited, &merged)
		switch {
		case x.Lease != "":
			o.leasesNothing(at.to("lease"), why)
		case !merged.Unlimited && why != unleasedOf(inherited, &tier):
			// Without a change of its own the tier has the same to say, and who lifts all limits of one tenant wants no lease of it.
			o.leasesNothing(at, why)
		}
	}
}

// leasesNothing adds a reason, if there is one.
func (o *oversight) leasesNothing(at path, why string) {
	if why != "" && len(o.odd) < maxWarnings {
		o.add(at, "nothing is leased: %s", why)
	}
}

// unleasedOf returns why nothing can be leased of tenants although it should be, and nothing if something can. What is blocked asks for nothing.
func unleasedOf(inherited setting, t *ruleSource) string {
	mode := leases[t.Lease]
	if mode == bucket.LeaseOff || t.Blocked {
		return ""
	}
	if t.Unlimited {
		return "who is unlimited has no limit of which a part could be held; leave lease out"
	}
	if len(t.Limits) == 0 {
		return "there are no limits that hold for the whole tenant; leave lease out, or add some"
	}
	inherited = inherited.with(t.Mode, t.EnforceFrom, t.FailMode)
	for _, name := range sorted(t.Limits) {
		l := t.Limits[name]
		limit := l.resolve(name, inherited.with(l.Mode, l.EnforceFrom, l.FailMode))
		if why := mode.Unleasable(&limit); why != "" {
			return "limits." + name + " cannot be, and all limits are or none: " + why
		}
	}
	return ""
}
