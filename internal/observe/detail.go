package observe

import (
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
)

// detail is what a decision says beside its verdict.
type detail decision.Decision

var _ event.Detail = (*detail)(nil)

// detailOf returns the detail of a decision, nil if nobody knows one.
func detailOf(d *decision.Decision) event.Detail {
	if d.Selected == nil {
		return nil
	}
	return (*detail)(d)
}

// Parts implements event.Detail.
func (d *detail) Parts() []event.Part {
	calls := d.Selected.Calls
	if calls == nil || len(d.RootFields) == 0 || len(d.RootFields) == 1 && calls.Len() == 1 {
		return nil
	}
	parts := make([]event.Part, len(d.RootFields))
	for i := range calls.Len() {
		if at, found := slices.BinarySearch(d.RootFields, calls.Field(i)); found {
			parts[at].Calls++
		}
	}
	return parts
}

// Carried implements event.Detail.
func (d *detail) Carried() []event.Carried {
	var all []event.Carried
	for p, value := range d.Rules.Carried(d.Subject, d.Selected.Parameters) {
		all = append(all, event.Carried{Parameter: p.String(), Value: value})
	}
	return all
}
