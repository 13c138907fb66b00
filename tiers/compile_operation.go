package tiers

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// operationRules compiles the operation rules, of which there is one at least. Those of a tier are shared by the exceptions
// that change nothing about them.
func (c *compiler) operationRules(at path, name string, t *ruleSource, inherited setting) *operationRules {
	users := inherited.with(t.users.Mode, t.users.EnforceFrom, t.users.FailMode)
	o := &operationRules{exact: make(map[string]uint64), units: t.computed(), others: c.strictestGeneral(t, inherited)}
	key := operationsKey{tier: name, inherited: inherited, users: users, units: fmt.Sprint(o.units), others: o.others}
	if equal := c.into.shared.operationsOf(key); equal != nil && !t.changed {
		c.compiled += equal.compiled
		return equal
	}
	before, found := c.compiled, len(c.findings)
	for _, spelling := range sorted(t.Operations) {
		rule := t.Operations[spelling]
		c.operationRule(o, at.to("operations").to(spelling), spelling, &rule, inherited)
	}
	for _, spelling := range sorted(t.personal) {
		rule := t.personal[spelling]
		c.compiled++
		limits := c.bucketLimits(at.to("users").to("operations").to(spelling), rule.Limits, users.with(rule.Mode, rule.EnforceFrom, rule.FailMode))
		if limits == nil {
			continue
		}
		o.personal |= 1 << len(o.rules)
		o.add(spelling, operationRule{bucket: ownedBy(spelling, limits), counted: o.count(spelling, limits)})
	}
	if o.compiled = c.compiled - before; !t.changed && len(c.findings) == found {
		c.into.shared.operations[key] = o
	}
	return o
}

// operationRule compiles a rule of the tenant.
func (c *compiler) operationRule(o *operationRules, at path, spelling string, rule *OperationRule, inherited setting) {
	own := inherited.with(rule.Mode, rule.EnforceFrom, rule.FailMode)
	c.compiled++
	self := uint64(1) << len(o.rules)
	r := operationRule{maxCost: newMaxCost(rule.MaxCost, own.as(c.moment))}
	divided := rule.divided()
	if limits := c.bucketLimits(at, divided[division{}], own); limits != nil {
		r.bucket, r.counted = ownedBy(spelling, limits), o.count(spelling, limits)
		o.limited |= self
		if rule.Instead {
			o.instead |= self
			if c.strictestOf(divided[division{}], (*Limit).bounds, inherited.with(rule.Mode, rule.EnforceFrom, "")) <= o.others {
				o.standing |= self
			}
		}
		if r.requests || len(r.units) > 0 {
			o.counting |= self
		}
	}
	for _, unit := range sorted(rule.Units) {
		if place := o.unit(bucket.Unit(unit)); place >= 0 {
			r.computes = append(r.computes, computed{unit: place, paths: rule.Units[unit]})
			o.reading |= self
		}
	}
	for _, d := range sortedDivisions(divided) {
		if limits := c.bucketLimits(at, divided[d], own); d.by != "" && limits != nil {
			r.groups = append(r.groups, len(o.groups))
			o.groups = append(o.groups, c.group(spelling, d, limits, o.count(spelling, limits)))
			o.reading |= self
		}
	}
	o.add(spelling, r)
}

// strictestOf returns the strictest mode of those of the limits that count, as far as the policy goes: a switch that eases modes
// leaves what is charged as it is. It is off without any.
func (c *compiler) strictestOf(limits map[string]*Limit, count func(*Limit) bool, inherited setting) bucket.Mode {
	strictest, written := bucket.Off, moment{day: c.day, early: c.early}
	for _, l := range limits {
		if l != nil && count(l) {
			strictest = min(strictest, inherited.with(l.Mode, l.EnforceFrom, "").as(written).mode)
		}
	}
	return strictest
}

// strictestGeneral returns the strictest mode of the limits that hold for all operations, in whose place a rule can stand.
func (c *compiler) strictestGeneral(t *ruleSource, inherited setting) bucket.Mode {
	refuses := func(l *Limit) bool { return !l.Soft }
	strictest := c.strictestOf(t.Limits, refuses, inherited)
	for _, x := range []*OwnerException{&t.teams, &t.users} {
		own := inherited.with(x.Mode, x.EnforceFrom, "")
		strictest = min(strictest, c.strictestOf(x.Limits, refuses, own))
		for _, rule := range x.ByName {
			named := own.with(rule.Mode, rule.EnforceFrom, "")
			strictest = min(strictest, c.strictestOf(mergeLimits(x.Limits, rule.Limits), refuses, named))
		}
	}
	return strictest
}

// group compiles limits that are divided by values. An operation with too many values is told about the strictest.
func (c *compiler) group(spelling string, d division, limits *bucket.Limits, counts counted) group {
	g := group{division: d, limits: limits, counted: counts}
	g.excess = TooManyValues{Operation: spelling, By: d.by, Mode: bucket.Off}
	for _, l := range limits.All() {
		mode := l.Mode
		if l.Soft {
			mode = max(mode, bucket.Shadow)
		}
		if g.excess.Limit == "" || mode < g.excess.Mode {
			g.excess.Limit, g.excess.Mode = l.Name, mode
			g.excess.EnforceFrom = c.into.enforcedFrom(limits, l.Name)
		}
	}
	return g
}

func ownedBy(spelling string, limits *bucket.Limits) bucket.Bucket {
	return bucket.Bucket{Owner: bucket.Owner{Level: bucket.Operation, Name: spelling}, Limits: limits}
}

// division is what limits of a rule are divided by. The zero value is nothing.
type division struct {
	by     string
	across bool
}

func sortedDivisions(divided map[division]map[string]*Limit) []division {
	return slices.SortedFunc(maps.Keys(divided), func(a, b division) int {
		if a.by == b.by && a.across != b.across {
			// What the tenant has for itself stands before what all share.
			if b.across {
				return -1
			}
			return 1
		}
		return strings.Compare(a.by, b.by)
	})
}

// divided returns the limits by what divides them.
func (o *OperationRule) divided() map[division]map[string]*Limit {
	divided := make(map[division]map[string]*Limit)
	for name, l := range o.Limits {
		if l != nil {
			d := division{l.By, l.Across}
			if divided[d] == nil {
				divided[d] = make(map[string]*Limit)
			}
			divided[d][name] = l
		}
	}
	return divided
}

// computed returns the units that operation rules compute and limits count, sorted.
func (t *ruleSource) computed() []bucket.Unit {
	counted := make(map[string]bool)
	count := func(limits map[string]*Limit) {
		for _, l := range limits {
			if l != nil {
				counted[l.Unit] = true
			}
		}
	}
	for _, limits := range []map[string]*Limit{t.Limits, t.teams.Limits, t.users.Limits} {
		count(limits)
	}
	for _, rules := range []map[string]OwnerRule{t.teams.ByName, t.users.ByName, t.personal} {
		for _, rule := range rules {
			count(rule.Limits)
		}
	}
	for _, rule := range t.Operations {
		count(rule.Limits)
	}
	units := make(map[bucket.Unit]bool)
	for _, rule := range t.Operations {
		for unit := range rule.Units {
			if counted[unit] {
				units[bucket.Unit(unit)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(units))
}

// fits reports whether no operation can touch more limits than a store takes: a client that selects
// every field of a root type matches every rule of it.
func (c *compiler) fits(at path, t *ruleSource) bool {
	if n := len(t.Operations) + len(t.personal); n > maxOperations {
		c.fail(at.to("operations"), "%d operation rules hold here, those of users included; at most %d fit", n, maxOperations)
		return false
	}
	if n := len(t.computed()); n > maxUnits {
		c.fail(at.to("operations"), "operation rules compute %d units here; at most %d fit", n, maxUnits)
		return false
	}
	always := len(t.Limits) + t.teams.mostLimits() + t.users.mostLimits() + max(mostCustom(c.policy.Custom), mostCustom(t.custom))
	// An operation is of one document.
	document, personalDocument := 0, 0
	divides := false
	touched, across := map[string]int{"": 0}, map[string]int{"": 0}
	for spelling, rule := range t.Operations {
		own, shared := rule.mostLimits()
		if isDocument(spelling) {
			document = max(document, own)
			continue
		}
		divides = divides || own > len(rule.Limits)
		touched[rootType(spelling)] += own
		across[rootType(spelling)] += shared
	}
	for spelling, rule := range t.personal {
		if isDocument(spelling) {
			personalDocument = max(personalDocument, len(rule.Limits))
			continue
		}
		touched[rootType(spelling)] += len(rule.Limits)
	}
	always += document + personalDocument
	for _, root := range sorted(touched) {
		n := always
		if root != "" {
			n += touched[root]
		}
		if n > bucket.MaxLimits {
			each := ""
			if divides {
				each = fmt.Sprintf(", and one with by: for each of %d values", maxValues)
			}
			c.fail(at, "one operation could be under %d limits, those of all rules that can match it included%s; at most %d fit",
				n, each, bucket.MaxLimits)
			return false
		}
		if n := across[root] + c.mostShared(root, t); n > bucket.MaxLimits {
			c.fail(at.to("operations"), "one operation could be under %d limits that all tenants share: each with across: true for each of %d values, "+
				"custom ones, and those of the backstop; at most %d fit", n, maxValues, bucket.MaxLimits)
			return false
		}
	}
	return true
}

// mostShared returns how many limits that all tenants share, beside those of operation rules, an operation of a root type is under at most.
func (c *compiler) mostShared(root string, t *ruleSource) int {
	most := 0
	for _, custom := range []map[string]CustomRule{c.policy.Custom, t.custom} {
		for _, rule := range custom {
			if rule.Across {
				most = max(most, len(rule.Limits))
			}
		}
	}
	if b := c.policy.Backstop; b != nil {
		most += len(b.Limits)
		for spelling, rule := range b.Operations {
			if rootType(spelling) == root {
				most += len(rule.Limits)
			}
		}
	}
	return most
}

// mostCustom returns how many custom limits one request is under at most: those of one key.
func mostCustom(custom map[string]CustomRule) int {
	most := 0
	for _, rule := range custom {
		most = max(most, len(rule.Limits))
	}
	return most
}

// mostLimits returns how many limits of the rule one operation can touch: those of the tenant, and those that all
// tenants share.
func (o *OperationRule) mostLimits() (own, across int) {
	for _, l := range o.Limits {
		switch {
		case l == nil:
		case l.Across:
			across += maxValues
		case l.By != "":
			own += maxValues
		default:
			own++
		}
	}
	return own, across
}
