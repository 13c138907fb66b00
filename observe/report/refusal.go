package report

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pseudonym"
)

// Refusal is a refusal with what explains it. It is the data of its entry in the stream of denials: the fields of the event, and further
// ones.
type Refusal struct {
	event.Decided

	// Instance is the name of the instance that refused. It stands in the source of the entry.
	Instance string `json:"instance,omitempty"`
	// Policy is the revision that decided. It has an author if the instance was told of it.
	Policy Policy `json:"policy"`
	// Shortened says that limits which refused nothing are left out, because the refusal was too long.
	Shortened bool `json:"shortened,omitempty"`
}

// encode returns the refusal as JSON. It is false for one with a number that JSON has not.
func (r *Refusal) encode() (json.RawMessage, bool) {
	text, err := json.Marshal(r)
	return text, err == nil
}

// decode reads a refusal, which anybody may have written.
func (r *Refusal) decode(data []byte) error {
	if len(data) > maxRefusal {
		return fmt.Errorf("%w: it has %d bytes, and %d fit", ErrUnreadable, len(data), maxRefusal)
	}
	var read Refusal
	if json.Unmarshal(data, &read) != nil {
		return ErrUnreadable
	}
	*r = read
	return nil
}

// refusal returns a refusal as it is written.
func (n names) refusal(d event.Decided, policy Policy) Refusal {
	tenant, hidden := d.Tenant, d.Hides.Owners
	d.Tenant, d.Team, d.User = pseudonym.Written(tenant), n.team(tenant, d.Team, hidden), n.user(tenant, d.User, hidden)
	d.SubjectTier, d.Operation = pseudonym.Written(d.SubjectTier), pseudonym.Written(d.Operation)
	d.Origin.Overrides = n.overrides(tenant, d.Origin.Overrides, hidden)
	d.Limits = slices.Clone(d.Limits)
	for i := range d.Limits {
		l := &d.Limits[i]
		l.Owner, l.Part = n.owner(tenant, l.Level, l.Owner, hidden), n.user(tenant, l.Part, hidden)
		if l.Origin != nil {
			origin := *l.Origin
			origin.Overrides = n.overrides(tenant, origin.Overrides, hidden)
			l.Origin = &origin
		}
	}
	r := Refusal{Decided: d, Policy: policy}
	r.shorten()
	return r
}

// shorten leaves out what explains least until the refusal fits.
func (r *Refusal) shorten() {
	fits := func() bool {
		text, err := json.Marshal(r)
		return err == nil && len(text) <= maxRefusal
	}
	if fits() {
		return
	}
	r.Shortened = true
	r.Limits = slices.DeleteFunc(r.Limits, func(l event.LimitState) bool { return !l.Refuses })
	if fits() {
		return
	}
	const few = 2
	r.Limits = r.Limits[:min(few, len(r.Limits))]
	for i := range r.Limits {
		if o := r.Limits[i].Origin; o != nil {
			o.Overrides = last(o.Overrides)
		}
	}
	r.Origin.Overrides = last(r.Origin.Overrides)
	if fits() {
		return
	}
	// Nothing else has texts of that length.
	r.RootFields, r.Dearest, r.Amounts, r.Limits, r.Origin.Overrides, r.Policy.Reason = nil, "", nil, nil, nil, ""
}

// last returns the override that beats the others, as a slice.
func last(of []event.Override) []event.Override { return of[max(0, len(of)-1):] }
