package bucket

import (
	"cmp"
	"slices"
	"sync"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// maxGoverned is how many compiled limits a set remembers.
const maxGoverned = 1024

// generation tells one state of a tenant's override records from every other. It is drawn at random for
// each change and not counted, so that neither a failover that loses a change nor clearing all records
// ever brings one back. The zero generation is that of no records.
type generation [state.GenerationSize]byte

// overrideSet are the override records of a tenant as of one change. Its records do not change; what is
// worked out from them is remembered. It is safe for concurrent use.
type overrideSet struct {
	generation generation
	// records are in the order of their changes.
	records []Override
	// size is what they take in their stored form.
	size int

	mu sync.Mutex
	// from and until are the time for which the fields below hold.
	from, until int64
	byOwner     map[Owner][]*Override
	governed    map[governedKey]governedLimits
}

// governedKey is an owner and its limits by the policy.
type governedKey struct {
	owner  Owner
	limits *Limits
}

// governedLimits are the limits that records make of those of an owner.
type governedLimits struct {
	limits *Limits
	// used are the records of single limits that change one of them.
	used []*Override
}

// governing is what override records make of a call, and for which time, from included.
type governing struct {
	buckets []Bucket
	// unused are the records of single limits of live owners that change nothing.
	unused []*Override
	// blocked is the record that blocks the call, nil if none does.
	blocked     *Override
	generation  generation
	from, until int64
}

// ungoverned is a call for a tenant without records.
func ungoverned(buckets []Bucket) governing {
	return governing{buckets: buckets, until: maxDate}
}

// bound leaves the limits of an owner as the policy has them if the records have switched some of them on
// and there are now more in all than a call may touch.
func bound(governed, asked []Bucket) {
	if countLimits(governed) <= MaxLimits {
		return
	}
	for i := range governed {
		if governed[i].Limits.Len() > asked[i].Limits.Len() {
			governed[i].Limits = asked[i].Limits
		}
	}
}

// govern returns what the records make of the buckets, of which the live ones come first, and of owners
// without a bucket. Buckets that a call may touch stay such: a record never makes a call invalid.
func (s *overrideSet) govern(buckets []Bucket, live int, owners []Owner, now int64) governing {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now < s.from || now >= s.until {
		s.index(now)
	}
	g := governing{buckets: buckets, generation: s.generation, from: s.from, until: s.until}
	// about are the records of single limits of live owners, and used those that change something.
	var about, used []*Override
	for _, owner := range owners {
		records := s.byOwner[owner]
		g.blocked = cmp.Or(g.blocked, blocking(records))
		about = append(about, aboutOne(records)...)
	}
	copied := false
	for i := range buckets {
		of, records := s.of(buckets[i].Owner)
		if len(records) == 0 {
			continue
		}
		if i < live {
			// A candidate decides nothing.
			g.blocked = cmp.Or(g.blocked, blocking(records))
		}
		if !copied {
			g.buckets, copied = append([]Bucket(nil), buckets...), true
		}
		made := s.limits(governedKey{of, buckets[i].Limits}, records)
		if g.buckets[i].Limits = made.limits; i < live {
			about, used = append(about, aboutOne(records)...), append(used, made.used...)
		}
	}
	for _, o := range about {
		if !slices.Contains(used, o) && !slices.Contains(g.unused, o) {
			g.unused = append(g.unused, o)
		}
	}
	bound(g.buckets[:live], buckets[:live])
	bound(g.buckets[live:], buckets[live:])
	return g
}

// index finds out which records hold at the time, and for how long these and no others do.
func (s *overrideSet) index(now int64) {
	s.from, s.until = 0, maxDate
	s.byOwner, s.governed = map[Owner][]*Override{}, map[governedKey]governedLimits{}
	for i := range s.records {
		o := &s.records[i]
		switch {
		case !o.holds(now):
			s.from = max(s.from, o.Expires.UnixMilli())
			continue
		case !o.Expires.IsZero():
			s.until = min(s.until, o.Expires.UnixMilli())
		}
		s.byOwner[o.Owner] = append(s.byOwner[o.Owner], o)
	}
}

// of returns the records that hold for an owner, and whose they are: those of the whole hold for each part of it, and
// those of the part beat them.
func (s *overrideSet) of(owner Owner) (Owner, []*Override) {
	records := s.byOwner[owner]
	if owner.Part == "" {
		return owner, records
	}
	if len(records) == 0 {
		// What is made of their limits is the same for all parts.
		owner = owner.whole()
		return owner, s.byOwner[owner]
	}
	return owner, slices.Concat(s.byOwner[owner.whole()], records)
}

// limits returns what records make of the limits of their owner.
func (s *overrideSet) limits(key governedKey, records []*Override) governedLimits {
	if made, found := s.governed[key]; found {
		return made
	}
	if len(s.governed) >= maxGoverned {
		// Policies that were replaced must not add up.
		clear(s.governed)
	}
	made := governedLimits{limits: key.limits.overridden(records)}
	for _, o := range aboutOne(records) {
		if slices.ContainsFunc(made.limits.all, func(l Limit) bool { return l.overrides != nil && slices.Contains(l.overrides.records, o) }) {
			made.used = append(made.used, o)
		}
	}
	s.governed[key] = made
	return made
}

// aboutOne returns the records of single limits.
func aboutOne(records []*Override) (single []*Override) {
	for _, o := range records {
		if o.Limit != "" {
			single = append(single, o)
		}
	}
	return single
}

// overridden returns the limits as the records make them. A limit that would have a mistake stays.
func (l *Limits) overridden(records []*Override) *Limits {
	all := l.All()
	touched := make(map[string]bool, len(all))
	for i := range all {
		if changed, by := overridden(all[i], records); len(by) > 0 && len(mistakesOf(changed)) == 0 {
			changed.overrides = &overrides{by}
			all[i], touched[all[i].Name] = changed, true
		}
	}
	if len(touched) == 0 {
		return l
	}
	limits, err := Compile(all...)
	if err != nil {
		return l
	}
	for i := range limits.rules {
		limits.rules[i].overridden = touched[limits.rules[i].limit.Name]
	}
	return limits
}

// blocking returns the record that blocks its owner, nil if none does.
func blocking(records []*Override) *Override {
	for _, o := range records {
		if o.Blocked {
			return o
		}
	}
	return nil
}

// find returns the record that holds, nil if there is none.
func (s *overrideSet) find(owner Owner, limit string, now int64) *Override {
	if s == nil {
		return nil
	}
	for i := range s.records {
		if o := &s.records[i]; o.Owner == owner && o.Limit == limit && o.holds(now) {
			found := o.clone()
			return &found
		}
	}
	return nil
}

// list returns the records that hold.
func (s *overrideSet) list(now int64) []Override {
	if s == nil {
		return nil
	}
	var all []Override
	for i := range s.records {
		if s.records[i].holds(now) {
			all = append(all, s.records[i].clone())
		}
	}
	return all
}
