package tiers

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// maxWarnings is how many warnings a policy has at most.
const maxWarnings = 100

// allocation is what limits are added up by: those of the teams or users of a tenant share what it has where
// they count the same thing over the same time.
type allocation struct {
	unit   bucket.Unit
	period Period
}

// allocations are the smallest capacities of an owner that refuse.
type allocations map[allocation]int64

// refusing returns what of the limits refuses now or from a known day on.
func refusing(limits map[string]*Limit, inherited setting) allocations {
	smallestOf := make(allocations)
	for _, limit := range limits {
		if key, ok := limit.refuses(inherited); ok {
			smallestOf[key] = smallest(smallestOf[key], limit.Capacity)
		}
	}
	return smallestOf
}

// refuses returns false for a limit that refuses nothing, now or from a known day on.
func (l *Limit) refuses(inherited setting) (allocation, bool) {
	key, ok := l.allocation()
	if !ok {
		return key, false
	}
	s := inherited.with(l.Mode, l.EnforceFrom, "")
	return key, s.mode == bucket.Enforce || s.mode == bucket.Warn && !s.enforceFrom.IsZero()
}

// least returns the smallest capacity that bounds what can be used of another: that of the same unit over as
// long a time or a longer one. It returns false if there is none.
func (a allocations) least(of allocation) (least allocation, capacity int64, found bool) {
	for _, key := range sortedAllocations(a) {
		if key.unit == of.unit && key.period.length() >= of.period.length() && (!found || a[key] < capacity) {
			least, capacity, found = key, a[key], true
		}
	}
	return least, capacity, found
}

// length is the period as a duration, the longest that the calendar has.
func (p Period) length() time.Duration {
	switch p {
	case Month:
		return 31 * 24 * time.Hour
	case Year:
		return 366 * 24 * time.Hour
	default:
		return time.Duration(p)
	}
}

// allocation returns false for a limit that refuses nothing.
func (l *Limit) allocation() (allocation, bool) {
	if l == nil || l.Soft || l.Mode == bucket.Off.String() {
		return allocation{}, false
	}
	return allocation{unit: cmp.Or(bucket.Unit(l.Unit), bucket.Points), period: l.Per}, true
}

// oversight looks for budgets that hold all the same and are odd.
type oversight struct {
	odd []finding
}

// odd returns names that look misspelt, the budgets of teams, users and operations that exceed those above them, those
// that hold less than an operation may cost, and leases of nothing. A tenant is looked at in the tier that it is assigned to.
func (c *compiler) odd() []finding {
	var o oversight
	o.spelling(c.policy)
	o.unreachable(c.policy)
	o.unleased(c.policy)
	inherited := setting{}.with(c.policy.Mode, c.policy.EnforceFrom, "")
	for _, name := range sorted(c.policy.Tiers) {
		o.look(path("").to("tiers").to(name), inherited, merge(c.policy.Tiers[name], Exception{}))
	}
	for _, name := range sorted(c.policy.Tenants) {
		x := c.policy.Tenants[name]
		// Without a change of its own the tier has the same to say.
		if x.Mode != "" || x.factor().changes() || len(x.Limits) > 0 || x.Teams != nil || x.Users != nil || len(x.Operations) > 0 {
			o.look(path("").to("tenants").to(name), inherited, merge(c.policy.Tiers[cmp.Or(x.Tier, c.policy.Default)], x))
		}
	}
	return o.odd[:min(len(o.odd), maxWarnings)]
}

// parent is an owner that pays whenever those below it do.
type parent struct {
	what string
	allocations
}

func (o *oversight) look(at path, inherited setting, t ruleSource) {
	if t.Blocked || t.Unlimited {
		return
	}
	inherited = inherited.with(t.Mode, t.EnforceFrom, "")
	teams := inherited.with(t.teams.Mode, t.teams.EnforceFrom, "")
	users := inherited.with(t.users.Mode, t.users.EnforceFrom, "")
	tenant := parent{"their tenant", refusing(t.Limits, inherited)}
	o.lookAt(at.to("teams"), "teams", teams, t.teams, tenant)
	o.lookAt(at.to("users"), "users", users, t.users, tenant, parent{"a team", refusing(t.teams.Limits, teams)})
	for _, spelling := range sorted(t.Operations) {
		rule := t.Operations[spelling]
		own := inherited.with(rule.Mode, rule.EnforceFrom, "")
		if rule.Instead {
			// It has nothing to do with what the tenant has.
			continue
		}
		o.single(at.to("operations").to(spelling).to("limits"), own, withoutCalls(rule.Limits), tenant)
	}
	for _, spelling := range sorted(t.personal) {
		rule := t.personal[spelling]
		own := users.with(rule.Mode, rule.EnforceFrom, "")
		o.single(at.to("users").to("operations").to(spelling).to("limits"), own, withoutCalls(rule.Limits),
			tenant, parent{"a user", refusing(t.users.Limits, users)})
	}
}

// withoutCalls returns the limits that count what those of the tenant count. One request may make many calls.
func withoutCalls(limits map[string]*Limit) map[string]*Limit {
	counted := make(map[string]*Limit, len(limits))
	for name, l := range limits {
		if l != nil && l.Unit != string(bucket.Requests) {
			counted[name] = l
		}
	}
	return counted
}

func (o *oversight) lookAt(at path, what string, inherited setting, x OwnerException, parents ...parent) {
	o.single(at.to("limits"), inherited, x.Limits, parents...)
	sums, counts := make(allocations), make(map[allocation]int)
	for _, name := range sorted(x.ByName) {
		if len(o.odd) >= maxWarnings {
			return
		}
		rule := x.ByName[name]
		own := inherited.with(rule.Mode, rule.EnforceFrom, "")
		o.single(at.to("byName").to(name).to("limits"), own, rule.Limits, parents...)
		for key, capacity := range refusing(mergeLimits(x.Limits, rule.Limits), own) {
			sums[key] = min(sums[key], math.MaxInt64-capacity) + capacity
			counts[key]++
		}
	}
	tenant := parents[0]
	for _, key := range sortedAllocations(sums) {
		if most, found := tenant.allocations[key]; found && sums[key] > most && counts[key] > 1 {
			o.add(at.to("byName"), "%d named %s have %d %s each %s together, more than the %d of their tenant",
				counts[key], what, sums[key], key.unit, key.period, most)
		}
	}
}

// single finds limits that can never be used whole, because a parent has less.
func (o *oversight) single(at path, inherited setting, limits map[string]*Limit, parents ...parent) {
	for _, name := range sorted(limits) {
		key, ok := limits[name].refuses(inherited)
		if !ok || len(o.odd) >= maxWarnings {
			continue
		}
		for _, p := range parents {
			least, most, found := p.least(key)
			if !found || limits[name].Capacity <= most {
				continue
			}
			over := ""
			if least.period != key.period {
				over = " each " + least.period.String()
			}
			o.add(at.to(name).to("capacity"), "a capacity of %d %s each %s can never be used whole: %s has %d%s",
				limits[name].Capacity, key.unit, key.period, p.what, most, over)
			break
		}
	}
}

func (o *oversight) add(at path, format string, args ...any) {
	o.odd = append(o.odd, finding{path: at, problem: fmt.Sprintf(format, args...)})
}

func sortedAllocations(a allocations) []allocation {
	return slices.SortedFunc(maps.Keys(a), func(a, b allocation) int {
		return cmp.Or(cmp.Compare(a.unit, b.unit), cmp.Compare(a.period, b.period))
	})
}
