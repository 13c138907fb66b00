package tiers

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// Compile checks a policy and makes it a snapshot of generation 1, which shares nothing with it and
// has the modes of this moment.
//
// The error is a [*PolicyError] with everything that is wrong, without lines: use [Parse] or
// [OpenFile] for documents. What is odd and fits all the same stands in [Snapshot.Warnings].
func Compile(p Policy) (*Snapshot, error) {
	f, findings := compile(p)
	byPath := func(f finding) Mistake { return Mistake{Path: f.path.String(), Problem: f.problem} }
	mistakes := make([]Mistake, len(findings))
	for i := range findings {
		mistakes[i] = byPath(findings[i])
	}
	if err := policyError(mistakes); err != nil {
		return nil, err
	}
	f.warn(byPath)
	return f.at(time.Now(), bucket.Enforce), nil
}

// compiler makes the rule sets of a policy, and finds what is wrong with parts that are put
// together.
type compiler struct {
	checker
	compiled int
	// broken are the tiers that do not compile: those that an exception changes do not either.
	broken map[string]bool
	// day is the one as of which modes hold, strictest the strictest of them.
	day       time.Time
	strictest bucket.Mode
	// enforced is when limits in mode warn become enforced, those that nobody knows of left out.
	enforced map[limitOf]time.Time
}

func newCompiler(p *Policy) *compiler {
	return &compiler{
		checker:  checker{policy: p, unfit: make(map[*Limit]bool), days: make(map[time.Time]bool)},
		broken:   make(map[string]bool),
		enforced: make(map[limitOf]time.Time),
	}
}

// compile returns a family, which is of use only if there are no findings.
func compile(p Policy) (*family, []finding) {
	p = p.clone()
	c := newCompiler(&p)
	c.check()
	// The number of tiers is a factor of all that follows.
	if len(p.Tiers) > maxTiers {
		return nil, c.findings
	}
	first := c.snapshot()
	if len(c.findings) > 0 {
		return nil, c.findings
	}
	f := newFamily(p, slices.SortedFunc(maps.Keys(c.days), time.Time.Compare))
	f.odd = c.odd()
	f.keep(first, 0, bucket.Enforce)
	return f, nil
}

// snapshot compiles all tiers and exceptions.
func (c *compiler) snapshot() *Snapshot {
	p := c.policy
	s := &Snapshot{tiers: make(map[string]*ruleSet, len(p.Tiers)), tenants: make(map[string]*tenant, len(p.Tenants))}
	for _, name := range sorted(p.Tiers) {
		found := len(c.findings)
		s.tiers[name] = c.ruleSet(path("").to("tiers").to(name), name, merge(p.Tiers[name], Exception{}))
		c.broken[name] = len(c.findings) > found
	}
	s.fallback = s.tiers[p.Default]
	for _, name := range sorted(p.Tenants) {
		s.tenants[name] = c.tenant(s, path("").to("tenants").to(name), p.Tenants[name])
		if c.compiled > maxCompiled {
			c.fail(path("").to("tenants"), "the policy comes to more than %d limits, operation rules, and named teams "+
				"and users, exceptions counted once for each tier; assign more tenants to tiers", maxCompiled)
			break
		}
	}
	if len(c.enforced) > 0 {
		s.enforced = c.enforced
	}
	return s
}

// tenant compiles an exception in every tier that a subject may carry.
func (c *compiler) tenant(s *Snapshot, at path, x Exception) *tenant {
	assigned := cmp.Or(x.Tier, c.policy.Default)
	if x.changesNothing() {
		return &tenant{assigned: s.tiers[assigned]}
	}
	byTier := make(map[string]*ruleSet, len(s.tiers))
	found := len(c.findings)
	for _, name := range sorted(c.policy.Tiers) {
		if c.broken[name] {
			continue
		}
		if c.compiled > maxCompiled {
			break
		}
		byTier[name] = c.ruleSet(at, name, merge(c.policy.Tiers[name], x))
		if len(c.findings) > found {
			// The other tiers would say the same.
			break
		}
	}
	return &tenant{assigned: byTier[assigned], byTier: byTier}
}

// ruleSet compiles what holds for the tenants of a tier, or for one of them.
func (c *compiler) ruleSet(at path, name string, t ruleSource) *ruleSet {
	inherited := setting{}.with(c.policy.Mode, c.policy.EnforceFrom, "").with(t.Mode, t.EnforceFrom, t.FailMode)
	now := inherited.as(c.day, c.strictest)
	set := &ruleSet{rules: Rules{
		Tier: name, Store: t.Store, Mode: now.mode, EnforceFrom: now.enforceFrom, FailMode: inherited.failMode,
		Blocked: t.Blocked, Unlimited: t.Unlimited && !t.Blocked,
		CostReport: t.CostReport, CostValidate: t.CostValidate, Hide: hidden(t.Hide),
	}}
	if t.Blocked {
		return set
	}
	set.rules.MaxCost = newMaxCost(t.MaxCost, now)
	if t.Unlimited {
		// Only what a single operation may cost is left of the rules.
		t = t.withoutLimits()
	}
	if !c.fits(at, &t) {
		return set
	}
	if limits := c.bucketLimits(at, t.Limits, inherited); limits != nil {
		set.rules.Buckets = []bucket.Bucket{{Limits: limits}}
	}
	set.teams = c.owners(at.to("teams"), t.teams, inherited)
	set.users = c.owners(at.to("users"), t.users, inherited)
	if len(t.Operations) > 0 || len(t.personal) > 0 {
		set.operations = c.operationRules(at, &t, set.rules.Buckets, inherited)
	}
	return set
}

// owners compiles what holds for teams or users.
func (c *compiler) owners(at path, x OwnerException, inherited setting) ownerLimits {
	inherited = inherited.with(x.Mode, x.EnforceFrom, x.FailMode)
	o := ownerLimits{each: c.bucketLimits(at, x.Limits, inherited)}
	if len(x.ByName) == 0 {
		return o
	}
	o.byName = make(map[string]*bucket.Limits, len(x.ByName))
	for _, name := range sorted(x.ByName) {
		if c.compiled > maxCompiled {
			// Whoever compiles the tenant reports it.
			return o
		}
		c.compiled++
		rule := x.ByName[name]
		own := inherited.with(rule.Mode, rule.EnforceFrom, rule.FailMode)
		o.byName[name] = c.bucketLimits(at.to("byName").to(name), mergeLimits(x.Limits, rule.Limits), own)
	}
	return o
}

// bucketLimits compiles the limits of one owner, the shortest first. It returns nil if there are none.
func (c *compiler) bucketLimits(at path, limits map[string]*Limit, inherited setting) *bucket.Limits {
	all := make([]bucket.Limit, 0, len(limits))
	days := make(map[string]time.Time)
	for _, name := range sorted(limits) {
		// What was reported is left out, so that the rest can be looked at; null is nothing here.
		if l := limits[name]; l != nil && !c.unfit[l] {
			own := inherited.with(l.Mode, l.EnforceFrom, l.FailMode).as(c.day, c.strictest)
			resolved := l.resolve(name, own)
			resolved.Strictest = c.strictest
			all = append(all, resolved)
			if !own.enforceFrom.IsZero() {
				days[name] = own.enforceFrom
			}
		}
	}
	slices.SortStableFunc(all, func(a, b bucket.Limit) int { return cmp.Compare(rank(&a), rank(&b)) })
	c.compiled += len(all)
	compiled, err := bucket.Compile(all...)
	for _, mistake := range limitErrors(err) {
		c.fail(at.to("limits").to(mistake.Limit), "%s", mistake.Reason)
	}
	if len(all) == 0 {
		return nil
	}
	for name, day := range days {
		c.enforced[limitOf{compiled, name}] = day
	}
	return compiled
}

// rank is what limits are ordered by.
func rank(l *bucket.Limit) time.Duration {
	if l.Window.Kind.Calendar() {
		// The zone does not make a month shorter than another one.
		anywhere := bucket.Limit{Window: bucket.Window{Kind: l.Window.Kind}}
		return anywhere.Length()
	}
	return l.Period
}

// resolve returns the limit as a store knows it.
func (l *Limit) resolve(name string, s setting) bucket.Limit {
	window, period := l.window()
	return bucket.Limit{
		Name: name, Unit: bucket.Unit(l.Unit), Capacity: l.Capacity, Refill: l.Refill,
		Period: period, Window: window, Soft: l.Soft, Mode: s.mode, FailMode: s.failMode,
	}
}
