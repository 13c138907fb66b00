package tiers

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// checker finds what is wrong with the parts of a policy, each for itself.
type checker struct {
	policy   *Policy
	findings []finding
	// unfit are the limits that are wrong in themselves.
	unfit map[*Limit]bool
}

func (c *checker) fail(at path, format string, args ...any) {
	c.findings = append(c.findings, finding{path: at, problem: fmt.Sprintf(format, args...)})
}

func (c *checker) lacks(at path, kind findingKind, problem string) {
	c.findings = append(c.findings, finding{path: at, problem: problem, kind: kind})
}

// check looks at every part in the order of names, so that the same policy has the same findings.
func (c *checker) check() {
	p, root := c.policy, path("")
	if p.Version != 0 && p.Version != Version {
		c.fail(root.to("version"), "version %d is unknown; %d fits", p.Version, Version)
	}
	if len(p.Tiers) == 0 {
		c.lacks(root.to("tiers"), missing, "no tiers; at least one is required")
	}
	if len(p.Tiers) > MaxTiers {
		c.fail(root.to("tiers"), "%d tiers; at most %d fit", len(p.Tiers), MaxTiers)
	}
	if p.Default == "" {
		c.lacks(root.to("default"), missing, "the default tier is required")
	} else {
		c.tierName(root.to("default"), p.Default)
	}
	for _, name := range sorted(p.Tiers) {
		c.tier(root.to("tiers").to(name), name, p.Tiers[name])
	}
	for _, name := range sorted(p.Tenants) {
		c.exception(root.to("tenants").to(name), name, p.Tenants[name])
	}
}

// tierName checks a reference to a tier.
func (c *checker) tierName(at path, name string) {
	// Without any tier, that is the mistake.
	if _, found := c.policy.Tiers[name]; !found && len(c.policy.Tiers) > 0 {
		c.fail(at, "there is no tier %s", echo(name))
	}
}

func (c *checker) tier(at path, name string, t Tier) {
	c.label(at, "the name of a tier", name)
	c.modes(at, t.Mode, t.FailMode)
	c.maxCost(at, t.MaxCost)
	switch {
	case t.Blocked:
		c.excludes(at, "a blocked tier", t.Unlimited, len(t.Limits) > 0, len(t.Operations) > 0, t.MaxCost > 0)
	case t.Unlimited:
		c.excludes(at, "an unlimited tier", false, len(t.Limits) > 0, anyLimits(t.Operations), false)
	case t.MaxCost == 0 && len(t.Limits) == 0 && len(t.Operations) == 0:
		c.lacks(at, empty, "an empty tier; limits, unlimited: true or blocked: true fit")
	}
	c.limits(at.to("limits"), t.Limits, nil, "there is no limit before that of the tier")
	c.operations(at.to("operations"), t.Operations, nil, "there is no limit before that of the tier")
}

func (c *checker) exception(at path, name string, x Exception) {
	c.longName(at, "the name of a tenant", name)
	assigned := c.policy.Default
	if x.Tier != "" {
		assigned = x.Tier
		c.tierName(at.to("tier"), x.Tier)
	}
	c.modes(at, x.Mode, x.FailMode)
	c.maxCost(at, x.MaxCost)
	t, known := c.policy.Tiers[assigned]
	switch {
	case x.Blocked:
		c.excludes(at, "a blocked tenant", x.Unlimited, len(x.Limits) > 0, len(x.Operations) > 0, x.MaxCost > 0)
	case known && t.Blocked:
		c.excludes(at, "a tenant of a blocked tier", x.Unlimited, len(x.Limits) > 0, len(x.Operations) > 0, x.MaxCost > 0)
	case x.Unlimited:
		c.excludes(at, "an unlimited tenant", false, len(x.Limits) > 0, anyLimits(x.Operations), false)
	case known && t.Unlimited:
		c.excludes(at, "a tenant of an unlimited tier", false, len(x.Limits) > 0, anyLimits(x.Operations), false)
	case x.Tier == "" && x.Mode == "" && x.FailMode == "" && x.MaxCost == 0 && len(x.Limits) == 0 && len(x.Operations) == 0:
		c.lacks(at, empty, "an empty exception; a tier or what is different fits")
	}
	if !known {
		// What null removes cannot be told.
		c.limits(at.to("limits"), x.Limits, nil, "")
		c.operations(at.to("operations"), x.Operations, nil, "")
		return
	}
	problem := "tier " + echo(assigned) + " has no such limit to remove"
	c.limits(at.to("limits"), x.Limits, t.Limits, problem)
	c.operations(at.to("operations"), x.Operations, t.Operations, problem)
}

// excludes reports what blocked and unlimited leave no room for.
func (c *checker) excludes(at path, what string, unlimited, limits, operations, maxCost bool) {
	for _, given := range []struct {
		key   string
		given bool
	}{{"unlimited", unlimited}, {"limits", limits}, {"operations", operations}, {"maxCost", maxCost}} {
		if given.given {
			c.fail(at.to(given.key), "has no effect on %s; one of the two fits", what)
		}
	}
}

func anyLimits(operations map[string]OperationRule) bool {
	for _, rule := range operations {
		if len(rule.Limits) > 0 {
			return true
		}
	}
	return false
}

func (c *checker) operations(at path, rules, before map[string]OperationRule, nothingToRemove string) {
	for _, spelling := range sorted(rules) {
		rule, at := rules[spelling], at.to(spelling)
		if problem := problemOfPattern(spelling); problem != "" {
			c.fail(at, "%s", problem)
		}
		c.maxCost(at, rule.MaxCost)
		if rule.MaxCost == 0 && len(rule.Limits) == 0 {
			c.lacks(at, empty, "an empty rule; a maxCost or limits fit")
		}
		c.limits(at.to("limits"), rule.Limits, before[spelling].Limits, nothingToRemove)
	}
}

// limits checks limits that are merged into those that come before. If it cannot be told what these
// are, nothingToRemove is empty.
func (c *checker) limits(at path, limits, before map[string]*Limit, nothingToRemove string) {
	for _, name := range sorted(limits) {
		at := at.to(name)
		if limits[name] != nil {
			c.limit(at, name, limits[name])
		} else if before[name] == nil && nothingToRemove != "" {
			c.fail(at, "null removes a limit, but %s", nothingToRemove)
		}
	}
}

func (c *checker) limit(at path, name string, l *Limit) {
	found := len(c.findings)
	c.label(at, "the name of a limit", name)
	if l.Unit != "" {
		c.label(at.to("unit"), "a unit", l.Unit)
	}
	c.modes(at, l.Mode, l.FailMode)
	// What is wrong here is replaced by something that fits, so that the bucket reports the rest.
	trial := bucket.Limit{Name: "trial", Capacity: l.Capacity, Refill: l.Refill, Period: time.Duration(l.Per)}
	switch {
	case l.Capacity == 0:
		c.lacks(at.to("capacity"), missing, "a capacity of at least 1 is required")
	case l.Capacity < 0:
		c.fail(at.to("capacity"), "the capacity is %d; at least 1 fits", l.Capacity)
	}
	if l.Capacity < 1 {
		trial.Capacity, trial.Refill = 1, min(l.Refill, 1)
	}
	if l.Per == 0 {
		c.lacks(at.to("per"), missing, "a period is required, such as minute")
		trial.Period = time.Duration(Second)
	}
	_, err := bucket.Compile(trial)
	for _, mistake := range limitErrors(err) {
		key, reason := keyOf(mistake.Reason), mistake.Reason
		if key == "refill" && l.Refill == 0 {
			key, reason = "capacity", "without a refill it is the capacity: "+reason
		}
		c.fail(at.to(key), "%s", reason)
	}
	if len(c.findings) > found {
		c.unfit[l] = true
	}
}

// limitErrors returns the mistakes of an error of bucket.Compile.
func limitErrors(err error) []*bucket.LimitError {
	var all []*bucket.LimitError
	var mistake *bucket.LimitError
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			all = append(all, limitErrors(err)...)
		}
	} else if errors.As(err, &mistake) {
		all = append(all, mistake)
	}
	return all
}

// keyOf returns the key of a limit that the reason of a [*bucket.LimitError] is about, or capacity,
// which is a part of all others.
func keyOf(reason string) string {
	switch {
	case strings.HasPrefix(reason, "the refill "):
		return "refill"
	case strings.HasPrefix(reason, "the period "):
		return "per"
	default:
		return "capacity"
	}
}

func (c *checker) modes(at path, mode, failMode string) {
	if _, ok := parseMode(mode); !ok {
		c.fail(at.to("mode"), "mode %s is unknown; off, shadow or enforce fits", echo(mode))
	}
	if _, ok := parseFailMode(failMode); !ok {
		c.fail(at.to("failMode"), "fail mode %s is unknown; open or closed fits", echo(failMode))
	}
}

func (c *checker) maxCost(at path, maxCost int64) {
	if maxCost < 0 {
		c.fail(at.to("maxCost"), "the maximum cost is %d; at least 1 fits", maxCost)
	}
}

// label checks a name that stands in headers and metrics.
func (c *checker) label(at path, what, name string) {
	switch {
	case len(name) > MaxName:
		c.fail(at, "%s", tooLong(what, name, MaxName))
	case !isWord(strings.ReplaceAll(name, ".", "_")):
		c.fail(at, "%s is of letters, digits, _, - and . only, and not empty", what)
	}
}

// longName checks a name that only this package compares.
func (c *checker) longName(at path, what, name string) {
	switch {
	case len(name) > MaxLongName:
		c.fail(at, "%s", tooLong(what, name, MaxLongName))
	case name == "", !utf8.ValidString(name), strings.IndexFunc(name, unicode.IsControl) >= 0:
		c.fail(at, "%s is valid UTF-8 without control characters, and not empty", what)
	}
}

func tooLong(what, name string, most int) string {
	return fmt.Sprintf("%s is at most %d bytes long; this has %d", what, most, len(name))
}

func sorted[T any](entries map[string]T) []string {
	return slices.Sorted(maps.Keys(entries))
}
