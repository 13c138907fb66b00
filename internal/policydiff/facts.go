package policydiff

import (
	"fmt"
	"maps"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// anybody stands for a team or a user that no policy names. A name of this length is no key of a document.
var anybody = string(make([]byte, tiers.MaxLongName+1))

// facts are what a policy says of somebody, in words.
type facts map[string]string

// ofTier are the facts of a tenant of a tier that no policy lists. A tier that is not there has none.
func ofTier(p *Policy, tier string) facts {
	if !p.HasTier(tier) {
		return facts{}
	}
	return collect(p, tiers.Subject{Tenant: anybody, Team: anybody, User: anybody, Tier: tier}).facts
}

// tenantFacts are the facts of a tenant in its tier.
type tenantFacts struct {
	tier  string
	facts facts
}

// ofTenant are the facts of a tenant, with those of the teams and users that its exception names.
func ofTenant(p *Policy, tenant string) tenantFacts {
	all := collect(p, tiers.Subject{Tenant: tenant, Team: anybody, User: anybody})
	exception := p.Written.Tenants[tenant]
	if exception.Teams != nil {
		for team := range exception.Teams.ByName {
			maps.Copy(all.facts, collect(p, tiers.Subject{Tenant: tenant, Team: team, User: anybody}).facts)
		}
	}
	if exception.Users != nil {
		for user := range exception.Users.ByName {
			maps.Copy(all.facts, collect(p, tiers.Subject{Tenant: tenant, Team: anybody, User: user}).facts)
		}
	}
	return all
}

func collect(p *Policy, subject tiers.Subject) tenantFacts {
	rules := p.Rules(subject, tiers.Selection{})
	operations := Operations(p.Written, rules.Tier, subject.Tenant)
	rulesFor := func(operation string) tiers.Rules { return p.Rules(subject, Selecting(operation)) }
	out := facts{}
	switch {
	case rules.Blocked:
		out["blocked"] = "blocked"
	case rules.Unlimited:
		out["unlimited"] = "unlimited"
	}
	if rules.Store != "" {
		out["store"] = rules.Store
	}
	noteCost(out, "maximum cost", &rules.MaxCost)
	for _, b := range Buckets(rules.Buckets, operations, rulesFor) {
		for _, l := range b.Limits.All() {
			text := Limit(&l)
			if l.Mode != bucket.Enforce {
				text += ", " + l.Mode.String()
			}
			if l.Soft {
				text += ", soft"
			}
			if l.FailMode != bucket.FailOpen {
				text += ", fails " + l.FailMode.String()
			}
			out[fmt.Sprintf("%s limit %s", ownerName(b.Owner), l.Name)] = text
		}
	}
	for _, spelling := range operations {
		most, own := rulesFor(spelling).MaxCost, &rules.MaxCost
		if most.Enforce != own.Enforce || most.Warn != own.Warn || most.Shadow != own.Shadow {
			noteCost(out, "maximum cost of "+spelling, &most)
		}
	}
	return tenantFacts{rules.Tier, out}
}

func noteCost(out facts, what string, most *tiers.MaxCost) {
	for _, m := range []struct {
		points int64
		mode   bucket.Mode
	}{{most.Enforce, bucket.Enforce}, {most.Warn, bucket.Warn}, {most.Shadow, bucket.Shadow}} {
		if m.points > 0 {
			out[fmt.Sprintf("%s (%s)", what, m.mode)] = fmt.Sprintf("%d points", m.points)
		}
	}
}

// ownerName names an owner, where anybody is each of its level.
func ownerName(owner bucket.Owner) string {
	switch {
	case owner.Name == anybody:
		return "each " + owner.Level.String()
	case owner.Part == tiers.UserPart(anybody):
		return "each user's " + owner.Name
	}
	return Owner(owner)
}

// difference returns what differs, by what it is about.
func difference(before, after facts) []Change {
	var changes []Change
	for _, what := range union(before, after) {
		if before[what] != after[what] {
			changes = append(changes, Change{What: what, Old: before[what], New: after[what]})
		}
	}
	return changes
}
