package tiers

import (
	"slices"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

func (c *checker) operations(at path, rules, before map[string]OperationRule, nothingToRemove string) {
	for _, spelling := range sorted(rules) {
		rule, at := rules[spelling], at.to(spelling)
		c.spelling(at, spelling)
		c.modes(at, rule.Mode, rule.EnforceFrom, rule.FailMode)
		c.maxCost(at, rule.MaxCost)
		_, changes := before[spelling]
		changes = changes && (rule.Mode != "" || rule.FailMode != "")
		if rule.MaxCost == 0 && len(rule.Limits) == 0 && len(rule.Units) == 0 && !changes && !rule.Instead {
			c.lacks(at, empty, "an empty rule; a maxCost, limits or units fit")
		}
		c.limits(at.to("limits"), rule.Limits, before[spelling].Limits, nothingToRemove)
		c.units(at.to("units"), rule.Units, before[spelling].Units, nothingToRemove)
		merged := mergeOperation(before[spelling], rule)
		c.divisions(at, spelling, merged, rule.Limits)
		if merged.Instead && !slices.ContainsFunc(sorted(merged.Limits), func(name string) bool { return merged.Limits[name].bounds() }) {
			c.fail(at.to("instead"), "the calls would be under no limit; one in points or requests fits, without by and soft")
		}
	}
}

// personal checks the operation rules of users.
func (c *checker) personal(at path, rules, before map[string]OwnerRule, nothingToRemove string) {
	for _, spelling := range sorted(rules) {
		rule, at := rules[spelling], at.to(spelling)
		c.spelling(at, spelling)
		_, changes := before[spelling]
		changes = changes && (rule.Mode != "" || rule.FailMode != "")
		if len(rule.Limits) == 0 && !changes {
			c.lacks(at, empty, "an empty rule; limits fit")
		}
		c.owner(at, &rule, before[spelling].Limits, nothingToRemove)
	}
}

// bounds reports whether a limit of an operation rule bounds calls, whatever their arguments are: what a client chooses to
// divide by makes budgets, and work of size 0 is made without end.
func (l *Limit) bounds() bool {
	return l != nil && l.By == "" && !l.Soft && slices.Contains([]string{"", string(bucket.Points), string(bucket.Requests)}, l.Unit)
}

func (c *checker) spelling(at path, spelling string) {
	if problem := problemOfPattern(spelling); problem != "" {
		c.fail(at, "%s", problem)
	}
}

// userRule checks what holds for the users of a tier, if there is anything.
func (c *checker) userRule(at path, rule *UserRule, nothingToRemove string) {
	all, personal := rule.split()
	if all == nil {
		return
	}
	if len(personal) == 0 || len(all.Limits) > 0 {
		c.ownerRule(at, all, nil, nothingToRemove)
	} else {
		c.modes(at, all.Mode, all.EnforceFrom, all.FailMode)
	}
	c.personal(at.to("operations"), personal, nil, nothingToRemove)
}

// userException checks what is different for the users of a tenant, if there is anything.
func (c *checker) userException(at path, x *UserException, tier *UserRule, nothingToRemove string) {
	changed, personal := x.split()
	if changed == nil {
		return
	}
	before, personalBefore := tier.split()
	if changed.changesNothing() && len(personal) == 0 {
		c.lacks(at, empty, "an empty exception; limits, operations or byName fit")
	}
	c.ownerException(at, "a user", changed, before, nothingToRemove)
	c.personal(at.to("operations"), personal, personalBefore, nothingToRemove)
}

// units checks the units that a rule computes, as limits checks limits.
func (c *checker) units(at path, units, before map[string][]string, nothingToRemove string) {
	for _, unit := range sorted(units) {
		paths, at := units[unit], at.to(unit)
		c.label(at, "a unit", unit)
		if slices.Contains(ownUnits, bucket.Unit(unit)) {
			c.fail(at, "%s are counted by themselves; a name of its own fits, such as elements", unit)
		}
		switch _, removes := before[unit]; {
		case len(paths) == 0 && nothingToRemove != "" && !removes:
			c.fail(at, "no paths, and no unit of this name to remove; the arguments that are multiplied fit, such as [origins, destinations]")
		case len(paths) > maxPaths:
			c.fail(at, "%d paths; at most %d fit", len(paths), maxPaths)
		}
		for _, p := range paths {
			c.path(at, p)
		}
	}
}

// path checks a path into arguments.
func (c *checker) path(at path, spelled string) {
	if len(spelled) > MaxLongName {
		c.fail(at, "%s", tooLong("a path", spelled, MaxLongName))
		return
	}
	names := strings.Split(spelled, ".")
	if len(names) > maxPathNames {
		c.fail(at, "a path of %d names; at most %d fit", len(names), maxPathNames)
		return
	}
	for _, name := range names {
		if !isName(name) {
			c.fail(at, "%s is not a path into arguments; names with dots between them fit, such as input.email", echo(spelled))
			return
		}
	}
}

// division checks what a limit says about its division, wherever it stands.
func (c *checker) division(at path, l *Limit) {
	if l.By != "" {
		c.path(at.to("by"), l.By)
	} else if l.Across {
		c.fail(at.to("across"), "without by there is nothing that tenants could share; by: input.email fits, for example")
	}
}

// undivided refuses limits that are divided where no call has arguments.
func (c *checker) undivided(at path, limits map[string]*Limit) {
	for _, name := range sorted(limits) {
		if l := limits[name]; l != nil && l.By != "" {
			c.fail(at.to(name).to("by"), "only limits of operation rules read arguments; operations of the tier or the tenant fit, "+
				"such as operations: Mutation.login")
		}
	}
}

// divisions checks that the limits of an operation rule count something of which each value has a part. The rule is
// merged with what comes before it.
func (c *checker) divisions(at path, spelling string, merged OperationRule, limits map[string]*Limit) {
	if isDocument(spelling) {
		if len(merged.Units) > 0 {
			c.fail(at.to("units"), "a document is no call with arguments; a root field such as Query.matrix fits")
		}
		for _, name := range sorted(limits) {
			if l := limits[name]; l != nil && l.By != "" {
				c.fail(at.to("limits").to(name).to("by"), "a document is no call with arguments; a root field such as Mutation.login fits")
			}
		}
		return
	}
	for _, name := range sorted(limits) {
		l := limits[name]
		if l == nil || l.By == "" || l.Unit == string(bucket.Requests) || merged.Units[l.Unit] != nil {
			continue
		}
		c.fail(at.to("limits").to(name).to("unit"), "beside by a limit counts calls, or what they compute; unit: requests fits, "+
			"or a unit that units of the rule name")
	}
}
