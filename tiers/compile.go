package tiers

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// Compile checks a policy and makes it a snapshot of generation 1, which shares nothing with it.
//
// The error is a [*PolicyError] with everything that is wrong, without lines: use [Parse] or
// [OpenFile] for documents.
func Compile(p Policy) (*Snapshot, error) {
	snapshot, findings := compile(p)
	mistakes := make([]Mistake, len(findings))
	for i, f := range findings {
		mistakes[i] = Mistake{Path: f.path.String(), Problem: f.problem}
	}
	if err := policyError(mistakes); err != nil {
		return nil, err
	}
	return snapshot, nil
}

// compiler makes the rule sets of a policy, and finds what is wrong with parts that are put
// together.
type compiler struct {
	checker
	compiled int
	// broken are the tiers that do not compile: those that an exception changes do not either.
	broken map[string]bool
}

// compile returns a snapshot, which is of use only if there are no findings.
func compile(p Policy) (*Snapshot, []finding) {
	c := &compiler{
		checker: checker{policy: &p, unfit: make(map[*Limit]bool)},
		broken:  make(map[string]bool),
	}
	c.check()
	s := &Snapshot{
		generation: 1,
		tiers:      make(map[string]*ruleSet, len(p.Tiers)),
		tenants:    make(map[string]*tenant, len(p.Tenants)),
	}
	// The number of tiers is a factor of all that follows.
	if len(p.Tiers) > MaxTiers {
		return nil, c.findings
	}
	for _, name := range sorted(p.Tiers) {
		found := len(c.findings)
		s.tiers[name] = c.ruleSet(path("").to("tiers").to(name), name, p.Tiers[name])
		c.broken[name] = len(c.findings) > found
	}
	s.fallback = s.tiers[p.Default]
	for _, name := range sorted(p.Tenants) {
		if c.compiled > MaxCompiled {
			c.fail(path("").to("tenants"), "the policy comes to more than %d limits and operation rules, "+
				"exceptions counted once for each tier; assign more tenants to tiers", MaxCompiled)
			break
		}
		s.tenants[name] = c.tenant(s, path("").to("tenants").to(name), p.Tenants[name])
	}
	return s, c.findings
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
		byTier[name] = c.ruleSet(at, name, merge(c.policy.Tiers[name], x))
		if len(c.findings) > found {
			// The other tiers would say the same.
			break
		}
	}
	return &tenant{assigned: byTier[assigned], byTier: byTier}
}

// changesNothing reports whether an exception only assigns a tier.
func (x *Exception) changesNothing() bool {
	return x.Mode == "" && x.FailMode == "" && x.MaxCost == 0 && len(x.Limits) == 0 &&
		len(x.Operations) == 0 && !x.Unlimited && !x.Blocked
}

// merge returns the tier with the changes of the exception.
func merge(t Tier, x Exception) Tier {
	t.Mode = cmp.Or(x.Mode, t.Mode)
	t.FailMode = cmp.Or(x.FailMode, t.FailMode)
	t.MaxCost = cmp.Or(x.MaxCost, t.MaxCost)
	t.Limits = mergeLimits(t.Limits, x.Limits)
	t.Unlimited = t.Unlimited || x.Unlimited
	t.Blocked = t.Blocked || x.Blocked
	if len(x.Operations) > 0 {
		operations := make(map[string]OperationRule, len(t.Operations)+len(x.Operations))
		maps.Copy(operations, t.Operations)
		for spelling, change := range x.Operations {
			rule := operations[spelling]
			rule.MaxCost = cmp.Or(change.MaxCost, rule.MaxCost)
			rule.Limits = mergeLimits(rule.Limits, change.Limits)
			operations[spelling] = rule
		}
		t.Operations = operations
	}
	return t
}

func mergeLimits(limits, changes map[string]*Limit) map[string]*Limit {
	if len(changes) == 0 {
		return limits
	}
	merged := make(map[string]*Limit, len(limits)+len(changes))
	maps.Copy(merged, limits)
	for name, change := range changes {
		if change == nil {
			delete(merged, name)
		} else {
			merged[name] = change
		}
	}
	return merged
}

// ruleSet compiles what holds for the tenants of a tier.
func (c *compiler) ruleSet(at path, name string, t Tier) *ruleSet {
	mode, _ := parseMode(t.Mode)
	failMode, _ := parseFailMode(t.FailMode)
	set := &ruleSet{rules: Rules{
		Tier: name, Mode: mode, FailMode: failMode, MaxCost: t.MaxCost,
		Blocked: t.Blocked, Unlimited: t.Unlimited && !t.Blocked,
	}}
	if t.Blocked {
		return set
	}
	if t.Unlimited {
		// Only what a single operation may cost is left of the rules.
		t.Limits = nil
	}
	if !c.fits(at, t) {
		return set
	}
	if limits := c.bucketLimits(at, t.Limits, mode, failMode); limits != nil {
		set.rules.Buckets = []bucket.Bucket{{Limits: limits}}
	}
	if len(t.Operations) == 0 {
		return set
	}
	o := &operationRules{
		exact:    make(map[string]int),
		maxCosts: make([]int64, len(t.Operations)),
		buckets:  make([]bucket.Bucket, len(t.Operations)),
		tenant:   set.rules.Buckets,
	}
	for i, spelling := range sorted(t.Operations) {
		rule := t.Operations[spelling]
		if t.Unlimited {
			rule.Limits = nil
		}
		c.compiled++
		o.add(i, spelling, rule.MaxCost)
		if limits := c.bucketLimits(at.to("operations").to(spelling), rule.Limits, mode, failMode); limits != nil {
			o.buckets[i] = bucket.Bucket{Owner: bucket.Owner{Level: bucket.Operation, Name: spelling}, Limits: limits}
			o.limited |= 1 << i
		}
	}
	o.foresee()
	set.operations = o
	return set
}

// fits reports whether no operation can touch more limits than a store takes: a client that selects
// every field of a root type matches every rule of it.
func (c *compiler) fits(at path, t Tier) bool {
	if len(t.Operations) > MaxOperations {
		c.fail(at.to("operations"), "%d operation rules hold here; at most %d fit", len(t.Operations), MaxOperations)
		return false
	}
	touched := map[string]int{"": len(t.Limits)}
	for spelling, rule := range t.Operations {
		touched[rootType(spelling)] += len(rule.Limits)
	}
	for _, root := range sorted(touched) {
		n := len(t.Limits)
		if root != "" {
			n += touched[root]
		}
		if n > bucket.MaxLimits {
			c.fail(at, "one operation could be under %d limits, those of all rules that can match it included; "+
				"at most %d fit", n, bucket.MaxLimits)
			return false
		}
	}
	return true
}

// bucketLimits compiles the limits of one owner, the shortest period first. It returns nil if there
// are none.
func (c *compiler) bucketLimits(
	at path, limits map[string]*Limit, mode bucket.Mode, failMode bucket.FailMode,
) *bucket.Limits {
	all := make([]bucket.Limit, 0, len(limits))
	for _, name := range sorted(limits) {
		// What was reported is left out, so that the rest can be looked at; null is nothing here.
		if l := limits[name]; l != nil && !c.unfit[l] {
			all = append(all, l.resolve(name, mode, failMode))
		}
	}
	slices.SortStableFunc(all, func(a, b bucket.Limit) int { return cmp.Compare(a.Period, b.Period) })
	c.compiled += len(all)
	compiled, err := bucket.Compile(all...)
	for _, mistake := range limitErrors(err) {
		c.fail(at.to("limits").to(mistake.Limit), "%s", mistake.Reason)
	}
	if len(all) == 0 {
		return nil
	}
	return compiled
}

// resolve fills in what the limit leaves to its tier.
func (l *Limit) resolve(name string, mode bucket.Mode, failMode bucket.FailMode) bucket.Limit {
	if l.Mode != "" {
		mode, _ = parseMode(l.Mode)
	}
	if l.FailMode != "" {
		failMode, _ = parseFailMode(l.FailMode)
	}
	return bucket.Limit{
		Name: name, Unit: bucket.Unit(l.Unit), Capacity: l.Capacity, Refill: l.Refill,
		Period: time.Duration(l.Per), Mode: mode, FailMode: failMode,
	}
}

// parseMode returns the mode of a word of the document, in which empty means enforce.
func parseMode(word string) (bucket.Mode, bool) {
	switch word {
	case "", bucket.Enforce.String():
		return bucket.Enforce, true
	case bucket.Shadow.String():
		return bucket.Shadow, true
	case bucket.Off.String():
		return bucket.Off, true
	default:
		return 0, false
	}
}

// parseFailMode returns the fail mode of a word of the document, in which empty means open.
func parseFailMode(word string) (bucket.FailMode, bool) {
	switch word {
	case "", bucket.FailOpen.String():
		return bucket.FailOpen, true
	case bucket.FailClosed.String():
		return bucket.FailClosed, true
	default:
		return 0, false
	}
}
