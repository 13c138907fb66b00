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
// [Load] for documents. What is odd and fits all the same stands in [Snapshot.Warnings].
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
	// moment is the one as of which modes hold.
	moment
	// into is the snapshot that is made.
	into *Snapshot
	// trial says that what is compiled is not kept, so that others need not share it.
	trial bool
	// again says that a policy is compiled once more to find all that is wrong, and that its size was found to fit.
	again bool
	// most is how much may be compiled.
	most int
}

func newCompiler(p *Policy) *compiler {
	return &compiler{
		checker: checker{policy: p, unfit: make(map[*Limit]bool), days: make(map[time.Time]bool)},
		broken:  make(map[string]bool),
		into:    newSnapshot(p),
		most:    maxCompiled,
	}
}

// compile returns a family, which is of use only if there are no findings.
func compile(p Policy) (*family, []finding) {
	listed, firsts := newRegister(&p)
	each := p
	each.Tenants = firsts
	c := newCompiler(&each)
	c.all()
	if len(c.findings) > 0 && len(firsts) < len(p.Tenants) {
		fits := c.compiled <= c.most
		each.Tenants = listed.alike(&p, firsts, c.findings)
		c = newCompiler(&each)
		c.again = fits
		c.all()
	}
	if len(c.findings) > 0 {
		return nil, c.findings
	}
	f := newFamily(each, listed, slices.SortedFunc(maps.Keys(c.days), time.Time.Compare))
	if f.odd = c.odd(); len(f.odd) > 0 {
		each.Tenants = listed.alike(&p, firsts, f.odd)
		f.odd = c.odd()
	}
	return f, nil
}

// all checks and compiles everything, to find what is wrong.
func (c *compiler) all() {
	c.check()
	// The number of tiers is a factor of all that follows.
	if len(c.policy.Tiers) > maxTiers {
		return
	}
	c.tiers()
	c.trial = true
	for _, name := range sorted(c.policy.Tenants) {
		c.tenant(path("").to("tenants").to(name), c.policy.Tenants[name])
		if c.compiled > c.most {
			if !c.again {
				c.fail(path("").to("tenants"), "the policy comes to more than %d limits, operation rules, and named teams "+
					"and users, different exceptions counted once for each tier; assign more tenants to tiers", maxCompiled)
			}
			break
		}
	}
}

// newSnapshot returns a snapshot without rules, of no family.
func newSnapshot(p *Policy) *Snapshot {
	return &Snapshot{serial: serials.Add(1), tiers: make(map[string]*ruleSet, len(p.Tiers)), shared: newShared()}
}

// compile returns a snapshot of the policy, which has compiled before: modes are no part of what can be wrong.
func (f *family) compile(phase int, early bool, strictest bucket.Mode) *Snapshot {
	s := newSnapshot(&f.policy)
	s.family, s.phase, s.early, s.strictest = f, phase, early, strictest
	s.exceptions = make([]exceptionRules, len(f.listed.kinds))
	s.compiler().tiers()
	for i := range f.listed.kinds {
		if k := &f.listed.kinds[i]; k.text == "" {
			s.exceptions[i].assigned.Store(s.tiers[k.tier])
		}
	}
	return s
}

// compiler returns one that compiles what belongs to the snapshot.
func (s *Snapshot) compiler() *compiler {
	c := newCompiler(&s.family.policy)
	c.moment, c.into = s.moment(), s
	return c
}

// tiers compiles the tiers.
func (c *compiler) tiers() {
	c.into.custom = c.customs(path("").to("custom"), c.policy.Custom, setting{}.with(c.policy.Mode, c.policy.EnforceFrom, ""))
	c.into.backstop = c.backstop()
	for _, name := range sorted(c.policy.Tiers) {
		found := len(c.findings)
		t := merge(c.policy.Tiers[name], Exception{})
		set := c.ruleSet(path("").to("tiers").to(name), name, t)
		set.foresee()
		c.into.tiers[name] = set
		c.broken[name] = len(c.findings) > found
	}
	c.into.fallback = c.into.tiers[c.policy.Default]
}

// tenant compiles an exception in every tier that a subject may carry, to find what is wrong with it.
func (c *compiler) tenant(at path, x Exception) {
	if x.changesNothing() {
		return
	}
	found := len(c.findings)
	for _, name := range sorted(c.policy.Tiers) {
		if c.broken[name] {
			continue
		}
		if c.compiled > c.most {
			return
		}
		c.ruleSet(at, name, merge(c.policy.Tiers[name], x))
		if len(c.findings) > found {
			// The other tiers would say the same.
			return
		}
	}
}

// ruleSet compiles what holds for the tenants of a tier, or for one of them.
func (c *compiler) ruleSet(at path, name string, t ruleSource) *ruleSet {
	inherited := setting{}.with(c.policy.Mode, c.policy.EnforceFrom, "").with(t.Mode, t.EnforceFrom, t.FailMode)
	now := inherited.as(c.moment)
	set := &ruleSet{enforcement: t.Enforcement, rules: Rules{
		Tier: name, Store: t.Store, Mode: now.mode, EnforceFrom: now.enforceFrom, FailMode: inherited.failMode,
		Blocked: t.Blocked, Unlimited: t.Unlimited && !t.Blocked,
		CostReport: t.CostReport, CostValidate: t.CostValidate, Hide: hidden(t.Hide), Usage: usages[t.Usage], Lease: leases[t.Lease], Throttle: shedding(t.Throttle),
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
	set.custom, set.strictest = c.customs(at.to("custom"), t.custom, inherited), c.strictestGeneral(&t, inherited)
	set.rules.byCall = set.custom != nil || len(c.policy.Custom) > 0
	set.teams = c.owners(at.to("teams"), t.teams, inherited)
	set.users = c.owners(at.to("users"), t.users, inherited)
	if len(t.Operations) > 0 || len(t.personal) > 0 {
		set.operations = c.operationRules(at, name, &t, inherited)
		set.rules.byCall = set.rules.byCall || set.operations.standing != 0
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
		if c.compiled > c.most {
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
			own := inherited.with(l.Mode, l.EnforceFrom, l.FailMode).as(c.moment)
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
	key := c.into.shared.key(all, days)
	if equal, found := c.into.shared.limitsOf(key); found {
		if c.into.shared.below != nil {
			c.into.enforce(equal, days)
		}
		return equal
	}
	compiled, err := bucket.Compile(all...)
	for _, mistake := range limitErrors(err) {
		c.fail(at.to("limits").to(mistake.Limit), "%s", mistake.Reason)
	}
	if len(all) == 0 {
		return nil
	}
	c.into.enforce(compiled, days)
	if !c.trial && err == nil {
		c.into.shared.limits[key] = compiled
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
