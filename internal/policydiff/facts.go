package policydiff

import (
	"fmt"
	"maps"
	"strconv"

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
	out := collect(p, tiers.Subject{Tenant: anybody, Team: anybody, User: anybody, Tier: tier}).facts
	if e := p.Written.Tiers[tier].Enforcement; e != nil {
		out["enforcement"] = fmt.Sprintf("for %d %% of the tenants", e.Share)
		if e.Seed != "" {
			out["enforcement"] += ", seed " + strconv.Quote(e.Seed)
		}
	}
	return out
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
	if !rules.Throttle.Usual() {
		out["throttle"] = rules.Throttle.String()
	}
	if rules.Usage != tiers.CountNothing {
		out["usage"] = rules.Usage.String()
	}
	noteCost(out, "maximum cost", &rules.MaxCost)
	noteLimits(out, Buckets(rules.Buckets, operations, rulesFor), ownerName)
	for _, spelling := range operations {
		most, own := rulesFor(spelling).MaxCost, &rules.MaxCost
		if most.Enforce != own.Enforce || most.Warn != own.Warn || most.Shadow != own.Shadow {
			noteCost(out, "maximum cost of "+spelling, &most)
		}
	}
	return tenantFacts{rules.Tier, out}
}

// ofBackstop are the facts of the budgets over all tenants.
func ofBackstop(p *Policy) facts {
	out := facts{}
	noteLimits(out, Backstop(p.Snapshot, p.Written), func(owner bucket.Owner) string {
		if owner.Level == bucket.Tenant {
			return "backstop"
		}
		return "backstop of " + owner.Name
	})
	return out
}

func noteLimits(out facts, buckets []bucket.Bucket, named func(bucket.Owner) string) {
	for _, b := range buckets {
		for _, l := range b.Limits.All() {
			text := Limit(&l)
			if l.Mode != bucket.Enforce {
				text += ", " + l.Mode.String()
			}
			if l.Soft {
				text += ", soft"
			}
			if l.FailMode != bucket.FailBounded {
				text += ", fails " + l.FailMode.String()
			}
			out[fmt.Sprintf("%s limit %s", named(b.Owner), l.Name)] = text
		}
	}
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
