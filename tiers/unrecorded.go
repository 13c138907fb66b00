package tiers

import (
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// Unrecorded returns the paths of the limits and rules of which nobody knows what is asked of them without the request itself,
// those of the next policy first where a document has two: limits that are divided by an argument, rules that stand in the place of limits, and custom limits. A replay
// of recorded prices does not judge them as a server does. What exceptions of tenants add is one entry, tenants.
func (s *Snapshot) Unrecorded() []string {
	p := &s.family.policy
	var paths []string
	if g := s.family.staged; g != nil {
		paths = g.following(s).Unrecorded()
	}
	root := path("")
	for _, name := range sorted(p.Tiers) {
		tier := p.Tiers[name]
		at := root.to("tiers").to(name).to("operations")
		for _, spelling := range sorted(tier.Operations) {
			rule := tier.Operations[spelling]
			if rule.Instead {
				paths = append(paths, at.to(spelling).to("instead").String())
			}
			for _, limit := range sorted(rule.Limits) {
				if l := rule.Limits[limit]; l != nil && l.By != "" {
					paths = append(paths, at.to(spelling).to("limits").to(limit).String())
				}
			}
		}
	}
	if len(p.Custom) > 0 {
		paths = append(paths, root.to("custom").String())
	}
	for i := range s.family.listed.kinds {
		if x := s.family.listed.kinds[i].exception(); x.unrecorded() {
			return append(paths, root.to("tenants").String())
		}
	}
	return paths
}

// unrecorded says whether the exception has a limit of which nobody knows what is asked of it without the request.
func (x *Exception) unrecorded() bool {
	for _, rule := range x.Operations {
		if rule.Instead {
			return true
		}
		for _, l := range rule.Limits {
			if l != nil && l.By != "" {
				return true
			}
		}
	}
	return len(x.Custom) > 0
}

// Counted returns the units that limits of the policy count, of whomever, sorted.
func (s *Snapshot) Counted() []bucket.Unit { return slices.Clone(s.family.units) }
