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
	// days are those on which enforcement begins somewhere.
	days map[time.Time]bool
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
	if p.Version != 0 && p.Version != version {
		c.fail(root.to("version"), "version %d is unknown; %d fits", p.Version, version)
	}
	if len(p.Tiers) == 0 {
		c.lacks(root.to("tiers"), missing, "no tiers; at least one is required")
	}
	if len(p.Tiers) > maxTiers {
		c.fail(root.to("tiers"), "%d tiers; at most %d fit", len(p.Tiers), maxTiers)
	}
	if p.Default == "" {
		c.lacks(root.to("default"), missing, "the default tier is required")
	} else {
		c.tierName(root.to("default"), p.Default)
	}
	c.modes(root, p.Mode, p.EnforceFrom, "")
	c.parameters(root.to("parameters"), p.Parameters)
	c.custom(root.to("custom"), p.Custom, false)
	c.backstop(root.to("backstop"), p.Backstop)
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
	c.store(at, t.Store)
	c.modes(at, t.Mode, t.EnforceFrom, t.FailMode)
	c.usage(at, t.Usage)
	c.lease(at, t.Lease)
	c.throttle(at, t.Throttle)
	c.enforcement(at, t.Enforcement)
	c.maxCost(at, t.MaxCost)
	charged := charges{
		limits: len(t.Limits) > 0, teams: t.Teams != nil, users: t.Users != nil, operations: anyCharge(t.Operations),
	}
	switch {
	case t.Blocked:
		c.blocked(at, "a blocked tier", charged, t.Unlimited, t.Operations, t.MaxCost)
	case t.Unlimited:
		c.excludes(at, "an unlimited tier", charged)
	case t.MaxCost == 0 && !charged.any() && len(t.Operations) == 0:
		c.lacks(at, empty, "an empty tier; limits, unlimited: true or blocked: true fit")
	}
	const nothing = "there is no limit before that of the tier"
	c.limits(at.to("limits"), t.Limits, nil, nothing)
	c.undivided(at.to("limits"), t.Limits)
	c.ownerRule(at.to("teams"), t.Teams, nil, nothing)
	c.userRule(at.to("users"), t.Users, nothing)
	c.operations(at.to("operations"), t.Operations, nil, nothing)
}

func (c *checker) exception(at path, name string, x Exception) {
	c.longName(at, "the name of a tenant", name)
	assigned := c.policy.Default
	if x.Tier != "" {
		assigned = x.Tier
		c.tierName(at.to("tier"), x.Tier)
	}
	c.store(at, x.Store)
	c.modes(at, x.Mode, x.EnforceFrom, x.FailMode)
	c.usage(at, x.Usage)
	c.lease(at, x.Lease)
	c.throttle(at, x.Throttle)
	c.maxCost(at, x.MaxCost)
	c.factor(at, &x)
	t, known := c.policy.Tiers[assigned]
	charged := charges{
		factor: x.factorKey(), custom: len(x.Custom) > 0, limits: len(x.Limits) > 0, teams: x.Teams != nil, users: x.Users != nil, operations: anyCharge(x.Operations),
	}
	switch {
	case x.Blocked:
		c.blocked(at, "a blocked tenant", charged, x.Unlimited, x.Operations, x.MaxCost)
	case known && t.Blocked:
		c.blocked(at, "a tenant of a blocked tier", charged, x.Unlimited, x.Operations, x.MaxCost)
	case x.Unlimited:
		c.excludes(at, "an unlimited tenant", charged)
	case known && t.Unlimited:
		c.excludes(at, "a tenant of an unlimited tier", charged)
	case x.Tier == "" && x.changesNothing():
		c.lacks(at, empty, "an empty exception; a tier or what is different fits")
	}
	problem := "tier " + echo(assigned) + " has no such limit to remove"
	if !known {
		// What null removes cannot be told.
		problem = ""
	}
	c.limits(at.to("limits"), x.Limits, t.Limits, problem)
	c.undivided(at.to("limits"), x.Limits)
	if x.Teams != nil && x.Teams.changesNothing() {
		c.lacks(at.to("teams"), empty, "an empty exception; limits or byName fit")
	}
	c.ownerException(at.to("teams"), "a team", x.Teams, t.Teams, problem)
	c.userException(at.to("users"), x.Users, t.Users, problem)
	c.operations(at.to("operations"), x.Operations, t.Operations, problem)
	c.custom(at.to("custom"), x.Custom, true)
}

// charges says which parts of a tier or an exception have limits.
type charges struct {
	limits, teams, users, operations, custom bool
	// factor is the key of what multiplies limits, empty if nothing does.
	factor string
}

func (g charges) any() bool {
	return g != charges{}
}

// excludes reports the limits that blocked and unlimited leave no room for.
func (c *checker) excludes(at path, what string, g charges) {
	for _, given := range []struct {
		key   string
		given bool
	}{{"limits", g.limits}, {"teams", g.teams}, {"users", g.users}, {"operations", g.operations}, {"custom", g.custom}, {g.factor, g.factor != ""}} {
		if given.given {
			c.fail(at.to(given.key), noEffect, what)
		}
	}
}

// blocked reports everything that stands beside blocked.
func (c *checker) blocked(
	at path, what string, g charges, unlimited bool, operations map[string]OperationRule, maxCost int64,
) {
	if unlimited {
		c.fail(at.to("unlimited"), noEffect, what)
	}
	g.operations = len(operations) > 0
	c.excludes(at, what, g)
	if maxCost > 0 {
		c.fail(at.to("maxCost"), noEffect, what)
	}
}

const noEffect = "has no effect on %s; one of the two fits"

func anyCharge(operations map[string]OperationRule) bool {
	for _, rule := range operations {
		if len(rule.Limits) > 0 || len(rule.Units) > 0 {
			return true
		}
	}
	return false
}

// ownerRule checks what holds for teams or users of a tier, if there is anything.
func (c *checker) ownerRule(at path, rule *OwnerRule, before map[string]*Limit, nothingToRemove string) {
	if rule == nil {
		return
	}
	if len(rule.Limits) == 0 {
		c.lacks(at, empty, "an empty rule; limits fit")
	}
	c.owner(at, rule, before, nothingToRemove)
}

// owner checks the modes and the limits of an owner.
func (c *checker) owner(at path, rule *OwnerRule, before map[string]*Limit, nothingToRemove string) {
	c.modes(at, rule.Mode, rule.EnforceFrom, rule.FailMode)
	c.limits(at.to("limits"), rule.Limits, before, nothingToRemove)
	c.undivided(at.to("limits"), rule.Limits)
}

// ownerException checks what is different for teams or users of a tenant, if there is anything.
func (c *checker) ownerException(at path, what string, x *OwnerException, tier *OwnerRule, nothingToRemove string) {
	if x == nil {
		return
	}
	var before map[string]*Limit
	if tier != nil {
		before = tier.Limits
	}
	c.owner(at, &x.OwnerRule, before, nothingToRemove)
	before = mergeLimits(before, x.Limits)
	for _, name := range sorted(x.ByName) {
		rule, at := x.ByName[name], at.to("byName").to(name)
		c.longName(at, "the name of "+what, name)
		if rule.Mode == "" && rule.FailMode == "" && len(rule.Limits) == 0 {
			c.lacks(at, empty, "an empty exception; limits or a mode fit")
		}
		c.owner(at, &rule, before, nothingToRemove)
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
	c.division(at, l)
	if l.Unit != "" {
		c.label(at.to("unit"), "a unit", l.Unit)
	}
	c.modes(at, l.Mode, l.EnforceFrom, l.FailMode)
	windowFits := c.window(at, l)
	switch {
	case l.Capacity == 0:
		c.lacks(at.to("capacity"), missing, "a capacity of at least 1 is required")
	case l.Capacity < 0:
		c.fail(at.to("capacity"), "the capacity is %d; at least 1 fits", l.Capacity)
	}
	if l.Per == 0 {
		c.lacks(at.to("per"), missing, "a period is required, such as minute")
	}
	_, err := bucket.Compile(l.trial(windowFits))
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

// trial returns the limit with what was reported replaced by something that fits, so that the bucket
// reports the rest.
func (l *Limit) trial(windowFits bool) bucket.Limit {
	trial := bucket.Limit{Name: "trial", Capacity: l.Capacity, Refill: l.Refill, Period: time.Duration(Second)}
	switch {
	case !windowFits:
		trial.Refill = 0
	case l.Per != 0:
		trial.Window, trial.Period = l.window()
	}
	if l.Capacity < 1 {
		trial.Capacity, trial.Refill = 1, min(trial.Refill, 1)
	}
	return trial
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

func (c *checker) modes(at path, mode, enforceFrom, failMode string) {
	parsed, ok := parseMode(mode)
	if !ok {
		c.fail(at.to("mode"), "mode %s is unknown; off, shadow, warn or enforce fits", echo(mode))
	}
	day, isDay := parseDay(enforceFrom)
	switch {
	case enforceFrom == "":
	case !isDay:
		c.fail(at.to("enforceFrom"), "%s is not a day; one such as 2026-12-01 fits", echo(enforceFrom))
	case ok && parsed != bucket.Warn:
		c.fail(at.to("enforceFrom"), "a day on which enforcement begins fits beside mode: warn only")
	default:
		c.days[day] = true
		if len(c.days) == maxDays+1 {
			c.fail(at.to("enforceFrom"), "enforcement begins on more than %d different days; at most so many fit", maxDays)
		}
	}
	if _, ok := parseFailMode(failMode); !ok {
		c.fail(at.to("failMode"), "fail mode %s is unknown; bounded, closed, local or open fits", echo(failMode))
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
	case len(name) > maxName:
		c.fail(at, "%s", tooLong(what, name, maxName))
	case !isWord(strings.ReplaceAll(name, ".", "_")):
		c.fail(at, "%s is of letters, digits, _, - and . only, and not empty", what)
	}
}

// longName checks a name that only this package compares.
func (c *checker) longName(at path, what, name string) {
	if problem := longNameProblem(what, name); problem != "" {
		c.fail(at, "%s", problem)
	}
}

// longNameProblem returns what is wrong with a name that only this package compares, empty if nothing is.
func longNameProblem(what, name string) string {
	switch {
	case len(name) > MaxLongName:
		return tooLong(what, name, MaxLongName)
	case name == "", !utf8.ValidString(name), strings.IndexFunc(name, unicode.IsControl) >= 0:
		return what + " is valid UTF-8 without control characters, and not empty"
	default:
		return ""
	}
}

func tooLong(what, name string, most int) string {
	return fmt.Sprintf("%s is at most %d bytes long; this has %d", what, most, len(name))
}

func sorted[T any](entries map[string]T) []string {
	return slices.Sorted(maps.Keys(entries))
}
