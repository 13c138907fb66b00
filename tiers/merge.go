package tiers

import (
	"cmp"
	"maps"
)

// ruleSource is what a rule set is compiled from: a tier, or what an exception makes of it.
type ruleSource struct {
	Tier

	teams, users OwnerException
	// personal are the operation rules of users.
	personal map[string]OwnerRule
	// custom are the custom limits of the tenant.
	custom map[string]CustomRule
	// changed says that the operation rules, those of users included, are not those of the tier.
	changed bool
}

// changesNothing reports whether an exception only assigns a tier.
func (x *Exception) changesNothing() bool {
	return x.Mode == "" && x.FailMode == "" && x.Store == "" && x.Times == 0 && x.Percent == 0 && x.MaxCost == 0 && len(x.Limits) == 0 &&
		x.Teams == nil && x.Users == nil && len(x.Operations) == 0 && len(x.Custom) == 0 && !x.Unlimited && !x.Blocked &&
		!x.CostReport && !x.CostValidate && x.Hide == nil && x.Usage == "" && x.Lease == "" && x.Throttle == nil
}

func (x *OwnerException) changesNothing() bool {
	return x.Mode == "" && x.FailMode == "" && len(x.Limits) == 0 && len(x.ByName) == 0
}

// merge returns the tier with the changes of the exception.
func merge(t Tier, x Exception) ruleSource {
	f := x.factor()
	if f.changes() {
		t = f.tier(t)
	}
	t.Mode, t.EnforceFrom = mergeMode(t.Mode, t.EnforceFrom, x.Mode, x.EnforceFrom)
	if x.Mode != "" {
		t.Enforcement = nil
	}
	t.FailMode = cmp.Or(x.FailMode, t.FailMode)
	t.Store = cmp.Or(x.Store, t.Store)
	t.MaxCost = cmp.Or(x.MaxCost, t.MaxCost)
	t.Limits = mergeLimits(t.Limits, x.Limits)
	t.Unlimited = t.Unlimited || x.Unlimited
	t.Blocked = t.Blocked || x.Blocked
	t.CostReport = t.CostReport || x.CostReport
	t.CostValidate = t.CostValidate || x.CostValidate
	t.Hide = cmp.Or(x.Hide, t.Hide)
	t.Usage = cmp.Or(x.Usage, t.Usage)
	t.Lease = cmp.Or(x.Lease, t.Lease)
	t.Throttle = cmp.Or(x.Throttle, t.Throttle)
	if len(x.Operations) > 0 {
		operations := make(map[string]OperationRule, len(t.Operations)+len(x.Operations))
		maps.Copy(operations, t.Operations)
		for spelling, change := range x.Operations {
			operations[spelling] = mergeOperation(operations[spelling], change)
		}
		t.Operations = operations
	}
	users, personal := t.Users.split()
	changedUsers, changedPersonal := x.Users.split()
	return ruleSource{
		Tier: t, custom: x.Custom, teams: mergeOwners(t.Teams, x.Teams), users: mergeOwners(users, changedUsers),
		personal: mergePersonal(personal, changedPersonal), changed: len(x.Operations) > 0 || len(changedPersonal) > 0 || f.changes(),
	}
}

// split returns what holds for all operations of users, and for single ones.
func (u *UserRule) split() (*OwnerRule, map[string]OwnerRule) {
	if u == nil {
		return nil, nil
	}
	return &u.OwnerRule, u.Operations
}

// split is that of [UserRule].
func (x *UserException) split() (*OwnerException, map[string]OwnerRule) {
	if x == nil {
		return nil, nil
	}
	return &x.OwnerException, x.Operations
}

func mergePersonal(rules, changes map[string]OwnerRule) map[string]OwnerRule {
	if len(changes) == 0 {
		return rules
	}
	merged := make(map[string]OwnerRule, len(rules)+len(changes))
	maps.Copy(merged, rules)
	for spelling, change := range changes {
		merged[spelling] = mergeOwner(merged[spelling], change)
	}
	return merged
}

// mergeMode returns the mode and its day that hold: those of the change if it has a mode.
func mergeMode(mode, enforceFrom, changedMode, changedFrom string) (string, string) {
	if changedMode == "" {
		return mode, enforceFrom
	}
	return changedMode, changedFrom
}

func mergeOperation(rule, change OperationRule) OperationRule {
	rule.Mode, rule.EnforceFrom = mergeMode(rule.Mode, rule.EnforceFrom, change.Mode, change.EnforceFrom)
	rule.FailMode = cmp.Or(change.FailMode, rule.FailMode)
	rule.MaxCost, rule.Instead = cmp.Or(change.MaxCost, rule.MaxCost), rule.Instead || change.Instead
	rule.Limits, rule.Units = mergeLimits(rule.Limits, change.Limits), mergeUnits(rule.Units, change.Units)
	return rule
}

func mergeUnits(units, changes map[string][]string) map[string][]string {
	if len(changes) == 0 {
		return units
	}
	merged := make(map[string][]string, len(units)+len(changes))
	maps.Copy(merged, units)
	for unit, paths := range changes {
		if len(paths) == 0 {
			delete(merged, unit)
		} else {
			merged[unit] = paths
		}
	}
	return merged
}

// mergeOwners returns what holds for the teams or the users of a tenant.
func mergeOwners(tier *OwnerRule, x *OwnerException) OwnerException {
	var merged OwnerException
	if tier != nil {
		merged.OwnerRule = *tier
	}
	if x != nil {
		merged.OwnerRule, merged.ByName = mergeOwner(merged.OwnerRule, x.OwnerRule), x.ByName
	}
	return merged
}

func mergeOwner(rule, change OwnerRule) OwnerRule {
	rule.Mode, rule.EnforceFrom = mergeMode(rule.Mode, rule.EnforceFrom, change.Mode, change.EnforceFrom)
	rule.FailMode = cmp.Or(change.FailMode, rule.FailMode)
	rule.Limits = mergeLimits(rule.Limits, change.Limits)
	return rule
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
