package tiers

import (
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// Backstop is a budget of the whole namespace, over all tenants: what the servers behind it can bear, whatever was granted to each
// tenant. It is charged before everything else, for tenants that are unlimited or in another mode than enforce as well, and
// gets back what the tenant's own limits refuse. Subjects that are exempt are not charged. The zero value is a mistake.
//
// A refusal tells the client that the servers have more to do than they can, and names no limit.
type Backstop struct {
	// Mode is off, shadow or enforce, for the limits that name none. Empty means that of the policy. Warn, which
	// a backstop can inherit, means shadow to it: no client can do anything about what all clients do together.
	Mode string `yaml:"mode,omitempty" json:"mode,omitempty"`
	// FailMode is bounded or open: what happens while the store is away. Empty means bounded. A backstop does not fail closed or
	// local, because what is there to keep the API up would take it down.
	FailMode string `yaml:"failMode,omitempty" json:"failMode,omitempty"`
	// Limits are the budgets by name, in points or requests. They are not soft, and not divided.
	Limits map[string]*Limit `yaml:"limits,omitempty" json:"limits,omitempty"`
	// Operations are budgets of single operations over all tenants, by root field as in [Tier.Operations]. In requests they count
	// the calls that match, in points the price of the whole operation.
	Operations map[string]BackstopRule `yaml:"operations,omitempty" json:"operations,omitempty"`
}

// BackstopRule is what holds for an operation over all tenants. The zero value is a mistake.
type BackstopRule struct {
	// Mode is that of [Backstop], for the limits that name none. Empty means that of the backstop.
	Mode string `yaml:"mode,omitempty" json:"mode,omitempty"`
	// FailMode is that of [Backstop], for the limits that name none. Empty means that of the backstop.
	FailMode string `yaml:"failMode,omitempty" json:"failMode,omitempty"`
	// Limits are the budgets by name. At least one is required.
	Limits map[string]*Limit `yaml:"limits" json:"limits"`
}

// rules returns the rules for operations as those of a tier.
func (b *Backstop) rules() map[string]OperationRule {
	rules := make(map[string]OperationRule, len(b.Operations))
	for spelling, r := range b.Operations {
		rules[spelling] = OperationRule{Mode: r.Mode, FailMode: r.FailMode, Limits: r.Limits}
	}
	return rules
}

// backstop checks that of the policy, if there is one.
func (c *checker) backstop(at path, b *Backstop) {
	if b == nil {
		return
	}
	if len(b.Limits) == 0 && len(b.Operations) == 0 {
		c.lacks(at, empty, "an empty backstop; limits or operations fit")
	}
	c.backstopPart(at, b.Mode, b.FailMode, b.Limits)
	for _, spelling := range sorted(b.Operations) {
		rule, at := b.Operations[spelling], at.to("operations").to(spelling)
		c.spelling(at, spelling)
		if isDocument(spelling) {
			c.fail(at, "a backstop looks at what is called and not at documents; a root field such as Mutation.checkout fits")
		}
		if len(rule.Limits) == 0 {
			c.lacks(at, empty, "an empty rule; limits fit")
		}
		c.backstopPart(at, rule.Mode, rule.FailMode, rule.Limits)
	}
}

// backstopPart checks what holds for all operations, or for one.
func (c *checker) backstopPart(at path, mode, failMode string, limits map[string]*Limit) {
	c.modes(at, mode, "", failMode)
	c.backstopModes(at, mode, failMode)
	c.limits(at.to("limits"), limits, nil, "there is no limit before that of the backstop")
	for _, name := range sorted(limits) {
		l, at := limits[name], at.to("limits").to(name)
		if l == nil {
			continue
		}
		c.backstopModes(at, l.Mode, l.FailMode)
		switch {
		case l.By != "" || l.Across:
			c.fail(at.to("by"), "a backstop is one budget; a limit with across: true in operations of a tier fits")
		case l.Soft:
			c.fail(at.to("soft"), "a soft limit refuses nothing, and a backstop reports to nobody; mode: shadow fits")
		case !slices.Contains([]bucket.Unit{"", bucket.Points, bucket.Requests}, bucket.Unit(l.Unit)):
			c.fail(at.to("unit"), "a backstop counts what operations take before they run; points or requests fits")
		}
	}
}

// backstopModes refuses what is no mode of a backstop.
func (c *checker) backstopModes(at path, mode, failMode string) {
	if mode == bucket.Warn.String() {
		c.fail(at.to("mode"), "no client can do anything about what all do together, so that none is warned; off, shadow or enforce fits")
	}
	if failMode == bucket.FailClosed.String() || failMode == bucket.FailLocal.String() {
		c.fail(at.to("failMode"), "a backstop that refuses while the store is away takes the API down; bounded or open fits")
	}
}

// backstop compiles that of the policy, nil if there is none or a part of it does not fit.
func (c *compiler) backstop() *ruleSet {
	b := c.policy.Backstop
	if b == nil {
		return nil
	}
	at := path("").to("backstop")
	source := ruleSource{Tier: Tier{Limits: b.Limits, Operations: b.rules()}}
	if !c.fits(at, &source) {
		return nil
	}
	inherited := setting{}.with(c.policy.Mode, c.policy.EnforceFrom, "").with(b.Mode, "", b.FailMode)
	set := &ruleSet{}
	if limits := c.bucketLimits(at, b.Limits, inherited); limits != nil {
		set.rules.Buckets = []bucket.Bucket{{Limits: limits}}
	}
	if len(source.Operations) > 0 {
		// No tier has an empty name.
		set.operations = c.operationRules(at, "", &source, inherited)
	}
	set.foresee()
	return set
}

// backstops are the budgets over all tenants. A view of others has those of the policy that holds.
func (s *Snapshot) backstops() *ruleSet {
	if s.eased != nil {
		return s.eased.base.backstops()
	}
	return s.backstop
}

// charged returns the buckets over all tenants that an operation is charged to.
func (set *ruleSet) charged(selected *Selection) []bucket.Bucket {
	var rules Rules
	matched := uint64(0)
	if set.operations != nil {
		matched = set.operations.apply(&rules, selected) & set.operations.limited
	}
	switch {
	case matched == 0:
		return set.rules.Buckets
	case set.operations.asks(matched, selected, ""):
		set.operations.tally(selected, matched).ask(&rules, set.buckets(nil, [2]owned{}, 0), "")
		return rules.Buckets
	}
	if foreseen, found := set.foreseen[matched]; found {
		return foreseen
	}
	return set.buckets(nil, [2]owned{}, matched)
}
