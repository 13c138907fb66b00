package digest

import (
	"encoding/json"
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pseudonym"
)

// kept are the refusals that can be found.
type kept struct {
	most int
	// all are in order of time.
	all []Refusal
	// of is how many there are of each tenant.
	of map[string]int
}

func newKept(most int) kept { return kept{most: max(0, most), of: make(map[string]int)} }

// add keeps a refusal, and returns the id of the one that has made room, empty if none had to.
func (k *kept) add(r Refusal) (gone string) {
	if len(k.all) >= k.most {
		gone = k.makeRoom()
	}
	k.all = append(k.all, r)
	k.of[r.Decided.Tenant]++
	return gone
}

// makeRoom forgets the oldest refusal of the tenant that has most: who is refused all the time does not hide others.
func (k *kept) makeRoom() string {
	most, victim := 0, 0
	for i := range k.all {
		if n := k.of[k.all[i].Decided.Tenant]; n > most {
			most, victim = n, i
		}
	}
	gone := k.all[victim].Decided
	if k.of[gone.Tenant]--; k.of[gone.Tenant] == 0 {
		delete(k.of, gone.Tenant)
	}
	k.all = slices.Delete(k.all, victim, victim+1)
	return gone.RefusalID
}

// keep keeps the refusals that wait.
func (c *Collector) keep() (came []Refusal, gone []string) {
	for range waiting {
		select {
		case e := <-c.refusals.Events():
			decided, ok := e.(event.Decided)
			if !ok {
				continue
			}
			r := c.refusal(decided)
			came = append(came, r)
			if id := c.kept.add(r); id != "" {
				gone = append(gone, id)
			}
			continue
		default:
		}
		break
	}
	// What came and went at once was never there.
	came = slices.DeleteFunc(came, func(r Refusal) bool { return slices.Contains(gone, r.Decided.RefusalID) })
	return came, gone
}

// Kept returns the refusals that can be found, the oldest first, for an owner that has to write all of them anew. The slice is the
// caller's own.
func (c *Collector) Kept() []Refusal { return slices.Clone(c.kept.all) }

// refusal returns a refusal as it is written.
func (c *Collector) refusal(d event.Decided) Refusal {
	r := Refusal{Version: Version, Policy: Policy{Revision: d.Revision}}
	if p, known := c.policy(&d.Revision); known {
		r.Policy = p
	}
	tenant, hidden := d.Tenant, d.Hides.Owners
	owner := func(level, name string) string {
		switch level {
		case "user":
			return c.user(tenant, name, hidden)
		case "team":
			return c.team(tenant, name, hidden)
		default:
			return pseudonym.Written(name)
		}
	}
	overrides := func(of []event.Override) []event.Override {
		of = slices.Clone(of)
		for i := range of {
			o := &of[i]
			o.Owner, o.Part = owner(o.Level, o.Owner), c.user(tenant, o.Part, hidden)
			o.Reason, o.Actor = reason(o.Reason), pseudonym.Written(o.Actor)
		}
		return of
	}
	d.Tenant, d.Team, d.User = pseudonym.Written(tenant), c.team(tenant, d.Team, hidden), c.user(tenant, d.User, hidden)
	d.SubjectTier, d.Operation = pseudonym.Written(d.SubjectTier), pseudonym.Written(d.Operation)
	d.Origin.Overrides = overrides(d.Origin.Overrides)
	d.Limits = slices.Clone(d.Limits)
	for i := range d.Limits {
		l := &d.Limits[i]
		l.Owner, l.Part = owner(l.Level, l.Owner), c.user(tenant, l.Part, hidden)
		if l.Origin != nil {
			origin := *l.Origin
			origin.Overrides = overrides(origin.Overrides)
			l.Origin = &origin
		}
	}
	r.Decided = d
	r.shorten()
	return r
}

// reason returns a text of people, which may be longer than a name.
func reason(text string) string {
	const longest = 1024
	var b []byte
	for text = text[:min(len(text), longest)]; text != ""; {
		part := text[:min(len(text), pseudonym.MaxName)]
		b = append(b, pseudonym.Written(part)...)
		text = text[len(part):]
	}
	return string(b)
}

// shorten leaves out what explains least until the refusal fits.
func (r *Refusal) shorten() {
	fits := func() bool {
		text, err := json.Marshal(r)
		return err == nil && len(text) <= MaxRefusal-pseudonym.MaxName*4
	}
	if fits() {
		return
	}
	r.Shortened = true
	r.Decided.Limits = slices.DeleteFunc(r.Decided.Limits, func(l event.LimitState) bool { return !l.Refuses })
	if fits() {
		return
	}
	const few = 2
	r.Decided.Limits = r.Decided.Limits[:min(few, len(r.Decided.Limits))]
	for i := range r.Decided.Limits {
		if o := r.Decided.Limits[i].Origin; o != nil {
			o.Overrides = last(o.Overrides)
		}
	}
	r.Decided.Origin.Overrides = last(r.Decided.Origin.Overrides)
	if fits() {
		return
	}
	// Nothing else has texts of that length.
	d := &r.Decided
	d.RootFields, d.Dearest, d.Amounts, d.Limits, d.Origin.Overrides, r.Policy.Reason = nil, "", nil, nil, nil, ""
}

// last returns the override that beats the others, as a slice.
func last(of []event.Override) []event.Override { return of[max(0, len(of)-1):] }
