package report

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pseudonym"
)

// recordings are the operations of all slots.
type recordings struct {
	kinds    []*recorded
	from, to time.Time
	spilled  uint64
	some     bool
	lost     uint64
	known    known
}

func (r *recordings) add(s *recording) {
	if !r.some {
		r.some, r.spilled = true, everybody
	}
	for _, one := range s.kinds {
		r.kinds = append(r.kinds, one)
	}
	if !s.from.IsZero() && (r.from.IsZero() || s.from.Before(r.from)) {
		r.from = s.from
	}
	if s.to.After(r.to) {
		r.to = s.to
	}
	r.spilled, r.lost = min(r.spilled, s.spilled), r.lost+s.lost
	r.known.merge(&s.known)
}

// sampleRoom is how many bytes of an activity the records and parameters of a sample have.
const sampleRoom = maxActivity / 2

// sample returns the records of as many tenants as there is room for, nil if there were no operations, and has those tenants recorded
// from now on.
func (c *counter) sample(r *recordings) *Sample {
	if len(r.kinds) == 0 {
		c.widen(0)
		return nil
	}
	slices.SortFunc(r.kinds, func(a, b *recorded) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.cost, b.cost)) })
	sample := &Sample{
		From: r.from, To: r.to, Below: min(c.below.Load(), r.spilled), Parameters: r.known.written(), Key: HashKey(c.key),
	}
	room := sampleRoom
	for _, name := range sample.Parameters {
		room -= len(name) + len(`"",`)
	}
	for i, one := range r.kinds {
		if !below(one.hash, sample.Below) {
			break
		}
		record := c.record(one)
		text, err := json.Marshal(record)
		if room -= len(text) + 1; err != nil || room < 0 || i >= maxRecords {
			sample.Below = one.hash
			break
		}
		sample.Records = append(sample.Records, record)
	}
	// Of the tenant at the bound there may be some records. Nothing of it is complete.
	whole := 0
	for whole < len(sample.Records) && below(r.kinds[whole].hash, sample.Below) {
		whole++
	}
	sample.Records = sample.Records[:whole]
	c.lost += r.lost
	for _, one := range r.kinds[whole:] {
		c.lost += uint64(one.n)
	}
	if sample.Below < c.below.Load() {
		c.below.Store(sample.Below)
	} else {
		c.widen(len(r.kinds))
	}
	return sample
}

// widen has more tenants recorded where there is room for twice as many.
func (c *counter) widen(had int) {
	was := c.below.Load()
	if was == everybody || had > maxRecords/2 {
		return
	}
	next := was + was/8 + 1
	if next < was {
		next = everybody
	}
	c.below.Store(next)
}

// record returns a record as it is written.
func (c *counter) record(one *recorded) Record {
	r := Record{
		Tenant: pseudonym.Written(one.tenant), Tier: pseudonym.Written(one.tier), Document: pseudonym.Written(one.document), Cost: one.cost,
		N: one.n, Refused: one.refused, Mixed: one.mixed,
		Team: c.team(one.tenant, one.team, one.hideOwners), User: c.user(one.tenant, one.user, one.hideOwners),
	}
	if one.mixed {
		r.Cost = one.cost / max(1, one.n)
	}
	r.Cut = one.cut
	for _, part := range one.parts {
		r.Parts = append(r.Parts, Part{N: part.Calls})
	}
	for _, carried := range one.carried {
		if carried.Value != "" {
			if r.Carried == nil {
				r.Carried = make(map[string]string)
			}
			r.Carried[pseudonym.Written(carried.Parameter)] = carried.Value
		}
	}
	for _, field := range one.fields[:min(len(one.fields), maxFields)] {
		r.Fields = append(r.Fields, pseudonym.Written(field))
	}
	for _, amount := range one.units {
		if amount.Unit != "" {
			r.Units = append(r.Units, event.Amount{Unit: pseudonym.Written(amount.Unit), N: amount.N})
		}
	}
	return r
}
