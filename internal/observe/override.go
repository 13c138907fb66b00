package observe

import (
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
)

// maxOverrideUses is how many override records are told of one decision.
const maxOverrideUses = 8

// overrideUses returns the override records under which a decision was made. For a tenant without any it looks at two fields.
func overrideUses(d *decision.Decision) (uses []event.OverrideUse) {
	if !d.Overridden && d.Lifted == nil {
		return nil
	}
	add := func(o *bucket.Override, changed bool) {
		use := event.OverrideUse{Override: overrideOf(o), Changed: changed}
		at := slices.IndexFunc(uses, func(u event.OverrideUse) bool { return u.Override == use.Override })
		switch {
		case at >= 0:
			uses[at].Changed = uses[at].Changed || changed
		case len(uses) < maxOverrideUses:
			uses = append(uses, use)
		}
	}
	if d.Refusal != nil && d.Refusal.BlockedBy != nil {
		add(d.Refusal.BlockedBy, true)
		return uses
	}
	for i := range d.Limits {
		l := &d.Limits[i]
		if !l.Overridden {
			continue
		}
		changed := changes(d, l)
		for _, record := range l.Limit.Overrides() {
			add(&record, changed)
		}
	}
	if d.Lifted != nil {
		for i := range *d.Lifted {
			add(&(*d.Lifted)[i], false)
		}
	}
	return uses
}

// changes reports whether a decision was another one because records have changed a limit, by what was spent when it was made. What this
// instance has decided alone says nothing: it has a share of the limit.
func changes(d *decision.Decision, l *bucket.LimitState) bool {
	if l.Asked <= 0 || d.StoreAway() {
		return false
	}
	policy := l.Limit.Policy()
	spent := l.Limit.Capacity - l.Remaining + l.Overdraft - l.Charged
	would := policy.Mode == bucket.Enforce && !policy.Soft && spent > policy.Capacity-l.Asked
	if d.Refusal == nil {
		return would
	}
	if would || !decision.RefusesIn(bucket.Enforce, l) {
		return false
	}
	// Where another limit refuses too, it was refused all the same.
	return !slices.ContainsFunc(d.Limits, func(other bucket.LimitState) bool {
		return !other.Overridden && decision.RefusesIn(bucket.Enforce, &other)
	})
}
