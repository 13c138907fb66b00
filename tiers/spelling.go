package tiers

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// ownUnits are those that the extension charges by itself.
var ownUnits = []bucket.Unit{
	bucket.Points, bucket.Requests, bucket.Records, bucket.AnswerBytes, bucket.Replays, bucket.ResponseBytes, bucket.Events,
}

// Units returns the units that nothing charges but the code of a server, by ratelimit.Charge: those of the limits of the
// policy besides points, requests, records, answer_bytes, replays, response_bytes and events and those that operation
// rules compute, sorted. The slice is the caller's own.
func (s *Snapshot) Units() []bucket.Unit {
	return slices.DeleteFunc(slices.Clone(s.family.units), func(u bucket.Unit) bool {
		return slices.Contains(ownUnits, u) || s.family.computed[u]
	})
}

// computes returns the units that operation rules compute.
func (p *Policy) computes() map[bucket.Unit]bool {
	units := make(map[bucket.Unit]bool)
	p.eachOperations(func(r ruled) {
		for _, rule := range r.operations {
			for unit := range rule.Units {
				units[bucket.Unit(unit)] = true
			}
		}
	})
	return units
}

// Counts reports whether any limit of the policy counts the unit, of whomever.
func (s *Snapshot) Counts(unit bucket.Unit) bool { return slices.Contains(s.family.units, unit) }

// units returns what the limits of the policy count.
func (p *Policy) units() []bucket.Unit {
	named := make(map[bucket.Unit]bool)
	p.eachLimits(func(_ path, limits, _ map[string]*Limit) {
		for _, l := range limits {
			if l != nil {
				named[cmp.Or(bucket.Unit(l.Unit), bucket.Points)] = true
			}
		}
	})
	return slices.Sorted(maps.Keys(named))
}

// eachLimits yields all limits by what has them, with those of the tier that the limits of a tenant are merged with.
func (p *Policy) eachLimits(yield func(at path, limits, before map[string]*Limit)) {
	for _, key := range sorted(p.Custom) {
		yield(path("").to("custom").to(key).to("limits"), p.Custom[key].Limits, nil)
	}
	merged := make(map[string]ruleSource, len(p.Tiers))
	for _, name := range sorted(p.Tiers) {
		at, t := path("").to("tiers").to(name), merge(p.Tiers[name], Exception{})
		merged[name] = t
		yield(at.to("limits"), t.Limits, nil)
		yield(at.to("teams").to("limits"), t.teams.Limits, nil)
		yield(at.to("users").to("limits"), t.users.Limits, nil)
		for _, spelling := range sorted(t.Operations) {
			yield(at.to("operations").to(spelling).to("limits"), t.Operations[spelling].Limits, nil)
		}
		for _, spelling := range sorted(t.personal) {
			yield(at.to("users").to("operations").to(spelling).to("limits"), t.personal[spelling].Limits, nil)
		}
	}
	for _, name := range sorted(p.Tenants) {
		at, x := path("").to("tenants").to(name), p.Tenants[name]
		t := merged[cmp.Or(x.Tier, p.Default)]
		yield(at.to("limits"), x.Limits, t.Limits)
		for _, key := range sorted(x.Custom) {
			yield(at.to("custom").to(key).to("limits"), x.Custom[key].Limits, nil)
		}
		eachOwnerLimits(at.to("teams"), x.Teams, t.teams.Limits, yield)
		users, personal := x.Users.split()
		eachOwnerLimits(at.to("users"), users, t.users.Limits, yield)
		for _, spelling := range sorted(personal) {
			yield(at.to("users").to("operations").to(spelling).to("limits"), personal[spelling].Limits, t.personal[spelling].Limits)
		}
		for _, spelling := range sorted(x.Operations) {
			yield(at.to("operations").to(spelling).to("limits"), x.Operations[spelling].Limits, t.Operations[spelling].Limits)
		}
	}
}

func eachOwnerLimits(at path, x *OwnerException, before map[string]*Limit, yield func(at path, limits, before map[string]*Limit)) {
	if x == nil {
		return
	}
	yield(at.to("limits"), x.Limits, before)
	for _, name := range sorted(x.ByName) {
		yield(at.to("byName").to(name).to("limits"), x.ByName[name].Limits, mergeLimits(before, x.Limits))
	}
}

// spelling finds units and limits of tenants whose names are a slip away from those that were probably meant: nobody
// charges the one, and the other stands beside the limit that it should change.
func (o *oversight) spelling(p *Policy) {
	charged := slices.Clone(ownUnits)
	computed := p.computes()
	charged = append(charged, slices.Sorted(maps.Keys(computed))...)
	p.eachLimits(func(at path, limits, before map[string]*Limit) {
		for _, name := range sorted(limits) {
			if len(o.odd) >= maxWarnings {
				return
			}
			if l := limits[name]; l != nil && !computed[bucket.Unit(l.Unit)] {
				for _, unit := range charged {
					if similar(l.Unit, string(unit)) {
						o.add(at.to(name).to("unit"), "the unit %s is charged by the code of a server alone; is %s meant?", echo(l.Unit), unit)
					}
				}
			}
			for _, other := range sorted(before) {
				if before[name] == nil && similar(name, other) {
					o.add(at.to(name), "a limit beside %s, which it does not change; is that one meant?", echo(other))
				}
			}
		}
	})
}

// similar reports whether one text becomes the other by a slip: one letter too many, too few, wrong or in the wrong place,
// or another case. Texts of up to three letters, and those that differ in a digit, are meant to differ.
func similar(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	switch {
	case a == b || len(a) <= 3 || len(b)-len(a) > 1:
		return false
	case strings.EqualFold(a, b):
		return true
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	switch {
	case isDigit(b[i]) || i < len(a) && isDigit(a[i]):
		return false
	case len(a) < len(b):
		return a[i:] == b[i+1:]
	case a[i+1:] == b[i+1:]:
		return true
	default:
		return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
	}
}
