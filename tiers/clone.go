package tiers

import "slices"

// cloneTiers returns a copy that shares nothing with them, so that a snapshot can be compiled from it later.
func cloneTiers(tiers map[string]Tier) map[string]Tier {
	return cloneMap(tiers, func(t Tier) Tier {
		t.Limits = cloneLimits(t.Limits)
		t.Teams, t.Users = clonePointer(t.Teams, OwnerRule.clone), clonePointer(t.Users, UserRule.clone)
		t.Operations = cloneMap(t.Operations, OperationRule.clone)
		t.Hide, t.Enforcement = clonePointer(t.Hide, Hide.clone), clonePointer(t.Enforcement, Enforcement.clone)
		return t
	})
}

func (o OwnerRule) clone() OwnerRule {
	o.Limits = cloneLimits(o.Limits)
	return o
}

func (u UserRule) clone() UserRule {
	u.Limits, u.Operations = cloneLimits(u.Limits), cloneMap(u.Operations, OwnerRule.clone)
	return u
}

func (o OperationRule) clone() OperationRule {
	o.Limits, o.Units = cloneLimits(o.Limits), cloneMap(o.Units, slices.Clone[[]string])
	return o
}

func (r CustomRule) clone() CustomRule {
	r.Limits = cloneLimits(r.Limits)
	return r
}

func (h Hide) clone() Hide { return h }

func cloneLimits(limits map[string]*Limit) map[string]*Limit {
	return cloneMap(limits, func(l *Limit) *Limit {
		return clonePointer(l, func(l Limit) Limit { return l })
	})
}

func cloneMap[T any](entries map[string]T, clone func(T) T) map[string]T {
	if entries == nil {
		return nil
	}
	copied := make(map[string]T, len(entries))
	for name, entry := range entries {
		copied[name] = clone(entry)
	}
	return copied
}

func clonePointer[T any](p *T, clone func(T) T) *T {
	if p == nil {
		return nil
	}
	copied := clone(*p)
	return &copied
}
