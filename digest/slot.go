package digest

import (
	"hash/maphash"
	"strings"
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/number"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pseudonym"
)

// shards is how many parts count beside each other, each a part of the tenants.
const shards = 16

// shard counts some of the tenants. Its lock is held while one decision is counted, and while a slot takes the place of another.
type shard struct {
	mu  sync.Mutex
	now *slot
}

// slot is what was counted between two calls of Collect.
type slot struct {
	// trial is the number of the candidate that counts are about.
	trial    uint64
	all      Counts
	tenants  map[string]*tenant
	unlisted int64
	groups   Groups
	records  recording
	// uses are override records, by a hash of everything that makes two of them differ.
	uses map[uint64]*use
}

// tenant is what was counted of one, whose name is the key.
type tenant struct {
	Counts
	tier string
	// hash is HashTenant.
	hash uint64
	// kinds is how many records it has in a slot, and parts how many parts of the window have it.
	kinds, parts int
}

func newSlot() *slot {
	return &slot{tenants: make(map[string]*tenant), uses: make(map[uint64]*use), records: recording{kinds: make(map[uint64]*recorded), spilled: everybody}}
}

// count counts a decision. The user is a hash, 0 for none.
func (s *slot) count(c *Collector, v *event.Verdict, d detail, trial, user uint64) {
	tried := trial != 0 && trial >= s.trial
	if tried && trial > s.trial {
		s.forgetTrial(trial)
	}
	counts := Counts{Decisions: 1, Cost: max(0, v.Cost), Charged: max(0, v.Charged)}
	if v.Refused {
		counts.Refused = 1
	}
	if v.WouldRefuse {
		counts.WouldRefuse = 1
	}
	if tried {
		counts.Tried = 1
		if v.CandidateRefuses && !v.Refused {
			counts.NewlyRefused = 1
		}
	}
	s.all = s.all.Plus(counts)
	t := s.tenant(c, v)
	var hash uint64
	if t != nil {
		t.Counts, t.tier, hash = t.Plus(counts), v.Tier, t.hash
	} else {
		s.unlisted++
		hash = HashTenant(c.cfg.Key, v.Tenant)
	}
	s.groups.Tenants.add(hash, &counts)
	if user != 0 {
		s.groups.Users.add(user, &counts)
	}
	for i := range v.Overrides {
		s.use(c, v, &v.Overrides[i])
	}
	if c.cfg.Records > 0 && records(v.Outcome) && below(hash, c.below.Load()) {
		s.records.add(c, v, d, t, hash)
	}
}

// records says whether an operation of this outcome is offered to a policy: a replay runs nothing, and who is unknown or exempt has no
// limits.
func records(outcome string) bool {
	switch outcome {
	case "replayed", "exempt", "subject_unknown", "key_invalid", "key_reused", "in_flight", "answer_unavailable", "outcome_unknown",
		"cost_request_invalid", "cost_request_forbidden":
		return false
	default:
		return true
	}
}

func below(hash, bound uint64) bool { return hash < bound || bound == everybody }

// tenant returns the counts of the tenant, nil if there is no room for another.
func (s *slot) tenant(c *Collector, v *event.Verdict) *tenant {
	name := pseudonym.Cut(v.Tenant)
	t := s.tenants[name]
	if t == nil && len(s.tenants) < c.tenantsOfShard {
		t = &tenant{hash: HashTenant(c.cfg.Key, name)}
		s.tenants[strings.Clone(name)] = t
	}
	return t
}

// forgetTrial leaves out what was counted of another candidate.
func (s *slot) forgetTrial(trial uint64) {
	s.trial, s.all = trial, s.all.withoutCandidate()
	for _, t := range s.tenants {
		t.Counts = t.withoutCandidate()
	}
	s.groups.Tenants.NewlyRefused.reset()
	s.groups.Users.NewlyRefused.reset()
}

// reset makes the slot empty. Tenants that ask often keep their place, so that others cannot take it and counting them allocates nothing.
func (s *slot) reset(room int) {
	s.all, s.unlisted = Counts{}, 0
	s.groups.Tenants.reset()
	s.groups.Users.reset()
	s.records.reset()
	clear(s.uses)
	const often = 2
	for name, t := range s.tenants {
		if t.Decisions < often || len(s.tenants) > room/2 {
			delete(s.tenants, name)
			continue
		}
		t.Counts, t.kinds = Counts{}, 0
	}
}

// add adds one who has asked.
func (g *Group) add(hash uint64, counts *Counts) {
	g.Seen.Add(hash)
	if counts.Refused > 0 {
		g.Refused.Add(hash)
	}
	if counts.WouldRefuse > 0 {
		g.WouldRefuse.Add(hash)
	}
	if counts.NewlyRefused > 0 {
		g.NewlyRefused.Add(hash)
	}
}

func (g *Group) reset() {
	g.Seen.reset()
	g.Refused.reset()
	g.WouldRefuse.reset()
	g.NewlyRefused.reset()
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
func (r *recording) add(c *Collector, v *event.Verdict, d detail, t *tenant, hash uint64) {
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
		mixed := t != nil && t.kinds >= c.kindsOfTenant
		if mixed {
			kind = maphash.String(c.seed, pseudonym.Cut(v.Tenant)) ^ mixedKind
			one = r.kinds[kind]
		}
		switch {
		case one != nil:
		case t == nil || len(r.kinds) >= c.cfg.Records:
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
func (c *Collector) kindOf(v *event.Verdict, d detail) uint64 {
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
