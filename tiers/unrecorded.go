package tiers

import (
	"cmp"
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// Recorded says what records of operations have beside prices and root fields. The zero value is nothing.
type Recorded struct {
	// Parts says that they have how often each root field is called.
	Parts bool
	// Parameters are those of which they have the values, by [Parameter.String], or stand-ins that tell these apart.
	Parameters []string
	// Users says that they have the names of users, and not hashes of them.
	Users bool
}

// Unrecorded returns the paths of the limits, rules and parameters of which nobody knows what is asked of them without more than is
// recorded, limits that are divided by an argument, rules that stand in the place of
// limits where parts are not recorded or work is computed, budgets that all tenants share, parameters, and keys of users. A replay does not judge them as a
// server does. What exceptions of tenants add is one entry, tenants.
func (s *Snapshot) Unrecorded(known Recorded) []string {
	p := &s.family.policy
	var paths []string
	root := path("")
	for _, name := range sorted(p.Tiers) {
		tier := p.Tiers[name]
		at := root.to("tiers").to(name).to("operations")
		known.operations(tier.Operations, computes(tier.Operations), func(rule, limit string) {
			if limit == "" {
				paths = append(paths, at.to(rule).to("instead").String())
			} else {
				paths = append(paths, at.to(rule).to("limits").to(limit).String())
			}
		})
	}
	for _, name := range sorted(p.Parameters) {
		if !slices.Contains(known.Parameters, p.Parameters[name].String()) {
			paths = append(paths, root.to("parameters").to(name).String())
		}
	}
	for _, spelled := range sorted(p.Custom) {
		if rule := p.Custom[spelled]; known.custom(spelled, &rule) {
			paths = append(paths, root.to("custom").to(spelled).String())
		}
	}
	for i := range s.family.listed.kinds {
		x := s.family.listed.kinds[i].exception()
		if known.exception(&x, computes(p.Tiers[cmp.Or(x.Tier, p.Default)].Operations)) {
			return append(paths, root.to("tenants").String())
		}
	}
	return paths
}

// computes reports whether a rule computes a unit from arguments.
func computes(rules map[string]OperationRule) bool {
	for _, rule := range rules {
		if len(rule.Units) > 0 {
			return true
		}
	}
	return false
}

// operations finds the rules that stand in the place of limits, and the limits of rules, that cannot be judged.
func (k *Recorded) operations(rules map[string]OperationRule, computed bool, found func(rule, limit string)) {
	for _, spelling := range sorted(rules) {
		rule := rules[spelling]
		if rule.Instead && (!k.Parts || computed) {
			found(spelling, "")
		}
		for _, limit := range sorted(rule.Limits) {
			if l := rule.Limits[limit]; l != nil && l.By != "" {
				found(spelling, limit)
			}
		}
	}
}

// custom reports whether a custom limit cannot be judged, whatever its parameters are.
func (k *Recorded) custom(spelled string, rule *CustomRule) bool {
	key, err := ParseKey(spelled)
	return rule.Across || err == nil && !k.Users && key.Value(parameterUser) != ""
}

// exception reports whether the exception has a limit of which nobody knows what is asked of it.
func (k *Recorded) exception(x *Exception, computed bool) (unrecorded bool) {
	k.operations(x.Operations, computed || computes(x.Operations), func(string, string) { unrecorded = true })
	for spelled, rule := range x.Custom {
		unrecorded = unrecorded || k.custom(spelled, &rule)
	}
	return unrecorded
}

// Counted returns the units that limits of the policy count, of whomever, sorted.
func (s *Snapshot) Counted() []bucket.Unit { return slices.Clone(s.family.units) }
