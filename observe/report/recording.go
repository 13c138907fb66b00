package report

import (
	"hash/maphash"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/number"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pseudonym"
)

const (
	// maxRecords is how many records a second has. Where there is more to record, fewer tenants are sampled.
	maxRecords = 64
	// kindsOfTenant is how many records one tenant has before its further operations are mixed into one.
	kindsOfTenant = maxRecords / 4
)

// isSampled says whether an operation of this outcome is offered to a policy: a replay runs nothing, and who is unknown or exempt has no
// limits.
func isSampled(outcome string) bool {
	switch outcome {
	case "replayed", "exempt", "subject_unknown", "key_invalid", "key_reused", "in_flight", "answer_unavailable", "outcome_unknown",
		"cost_request_invalid", "cost_request_forbidden":
		return false
	default:
		return true
	}
}

// recording are the operations of a slot that are recorded, by a hash of everything that makes two of them differ.
type recording struct {
	kinds    map[uint64]*recorded
	from, to time.Time
	// spilled is the smallest hash of a tenant of whom an operation was left out: what there is of tenants below is complete.
	spilled uint64
	// lost is how many operations were left out.
	lost uint64
	// known is what all of them say.
	known known
}

// recorded are operations that are alike. Its names are those of the request.
type recorded struct {
	hash                     uint64
	tenant, team, user, tier string
	fields                   []string
	document                 string
	cost, n, refused         int64
	units                    [event.MaxUnits]event.Amount
	parts                    []event.Part
	carried                  []event.Carried
	mixed, hideOwners, cut   bool
}

// add records an operation of a tenant, nil for one without room.
func (r *recording) add(c *counter, v *event.Verdict, d detail, t *tenant, hash uint64) {
	r.known.meet(d)
	if r.from.IsZero() || v.At.Before(r.from) {
		r.from = v.At
	}
	if v.At.After(r.to) {
		r.to = v.At
	}
	if !d.asked {
		// More tenants are recorded than when it was asked.
		r.spilled = min(r.spilled, hash)
		r.lost++
		return
	}
	kind := c.kindOf(v, d)
	one := r.kinds[kind]
	if one == nil {
		mixed := t != nil && t.kinds >= kindsOfTenant
		if mixed {
			kind = maphash.String(c.seed, pseudonym.Cut(v.Tenant)) ^ mixedKind
			one = r.kinds[kind]
		}
		switch {
		case one != nil:
		case t == nil || len(r.kinds) >= maxRecords:
			r.spilled = min(r.spilled, hash)
			r.lost++
			return
		default:
			one = newRecorded(v, d, hash, mixed)
			r.kinds[kind] = one
			t.kinds++
		}
	}
	if one.mixed {
		one.cost = number.Sum(one.cost, v.Cost)
	}
	one.n++
	if v.Refused {
		one.refused++
	}
}

// mixedKind tells the record of a tenant's further operations from those of one kind.
const mixedKind = 0x9e3779b97f4a7c15

func newRecorded(v *event.Verdict, d detail, hash uint64, mixed bool) *recorded {
	one := &recorded{hash: hash, tenant: pseudonym.Cut(v.Tenant), tier: pseudonym.Cut(v.SubjectTier), mixed: mixed, hideOwners: v.HideOwners}
	if !mixed {
		one.team, one.user, one.fields, one.document, one.cost = pseudonym.Cut(v.Team), pseudonym.Cut(v.User), v.RootFields, pseudonym.Cut(v.Document), max(0, v.Cost)
		one.units = v.Units
		one.parts, one.carried, one.cut = d.parts, d.carried, d.cut
	}
	return one
}

// kindOf returns a hash of everything that a record says but how many.
func (c *counter) kindOf(v *event.Verdict, d detail) uint64 {
	var h maphash.Hash
	h.SetSeed(c.seed)
	for _, text := range [...]string{v.Tenant, v.Team, v.User, v.SubjectTier, v.Document} {
		_, _ = h.WriteString(pseudonym.Cut(text))
		_ = h.WriteByte(0)
	}
	for _, field := range v.RootFields {
		_, _ = h.WriteString(field)
		_ = h.WriteByte(0)
	}
	number := func(n int64) {
		for shift := 0; shift < 64; shift += 8 {
			_ = h.WriteByte(byte(n >> shift))
		}
	}
	number(v.Cost)
	for i := range v.Units {
		if v.Units[i].Unit != "" {
			_, _ = h.WriteString(v.Units[i].Unit)
			_ = h.WriteByte(0)
			number(v.Units[i].N)
		}
	}
	for _, part := range d.parts {
		number(part.Calls)
	}
	for _, one := range d.carried {
		_, _ = h.WriteString(one.Value)
		_ = h.WriteByte(0)
	}
	return h.Sum64()
}

func (r *recording) reset() {
	clear(r.kinds)
	*r = recording{kinds: r.kinds, spilled: everybody}
}
