package tiers

import "github.com/gqlgen-ratelimit/ratelimit/bucket"

// ownerLimits are the budgets of the teams, or of the users, of a tenant. The zero value has none.
type ownerLimits struct {
	// each is what everybody has whom byName does not name. Nil is no budget.
	each   *bucket.Limits
	byName map[string]*bucket.Limits
}

// of returns the budget of a team or a user, nil if it has none or if there is nobody.
func (o *ownerLimits) of(name string) *bucket.Limits {
	if name == "" {
		return nil
	}
	if limits, named := o.byName[name]; named {
		return limits
	}
	return o.each
}

// mostLimits returns how many limits one team or user can have.
func (x *OwnerException) mostLimits() int {
	most := len(x.Limits)
	for _, rule := range x.ByName {
		if len(rule.Limits) > 0 {
			most = max(most, len(mergeLimits(x.Limits, rule.Limits)))
		}
	}
	return most
}

// withoutLimits returns the source with nothing but what a single operation may cost.
func (t ruleSource) withoutLimits() ruleSource {
	operations := make(map[string]OperationRule, len(t.Operations))
	for spelling, rule := range t.Operations {
		rule.Limits, rule.Units = nil, nil
		operations[spelling] = rule
	}
	t.Limits, t.Operations = nil, operations
	t.teams, t.users, t.personal, t.custom, t.changed = OwnerException{}, OwnerException{}, nil, nil, true
	return t
}
