package bucket

import (
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// maxShares is how many shares are remembered. Policies that were replaced must not add up.
const maxShares = 1024

// shares remembers what was worked out. The zero value lacks its map. It is safe for concurrent use.
type shares struct {
	mu   sync.Mutex
	made map[shareKey]*share
}

type shareKey struct {
	limits    *Limits
	instances int
}

// share is what one instance judges an owner by.
type share struct {
	// limits are the shares of those that fail local or bounded, and of the places of these among the rules of the whole.
	limits *Limits
	of     []int
	// none are limits that refuse and whose share is nothing.
	none []*Limit
}

// share returns the share of one of so many instances.
func (l *local) share(limits *Limits, instances int) *share {
	l.shares.mu.Lock()
	defer l.shares.mu.Unlock()
	key := shareKey{limits, instances}
	if made := l.shares.made[key]; made != nil {
		return made
	}
	if len(l.shares.made) >= maxShares {
		clear(l.shares.made)
	}
	made := l.newShare(limits, int64(instances))
	l.shares.made[key] = made
	return made
}

// newShare works out the share of one of so many instances, of which nobody knows how many there are if that is zero:
// then nothing is a safe share of a limit that fails local, and of one that fails bounded each instance has the whole.
func (l *local) newShare(whole *Limits, instances int64) *share {
	s := &share{}
	var parts []Limit
	for j := range whole.rules {
		limit := whole.rules[j].limit
		var part Limit
		var ok bool
		switch {
		case limit.FailMode == FailBounded && instances == 0:
			part, ok = *limit, true
		case limit.FailMode == FailBounded:
			part, ok = multipleOf(*limit, int64(l.config.OpenMultiple), instances)
		case limit.FailMode == FailLocal && instances > 0:
			part, ok = shareOf(*limit, int64(l.config.Percent), 100*instances)
		case limit.FailMode != FailLocal:
			continue
		}
		if ok {
			parts, s.of = append(parts, part), append(s.of, j)
		} else if limit.Mode == Enforce && !limit.Soft {
			s.none = append(s.none, limit)
		}
	}
	limits, err := Compile(parts...)
	if err != nil {
		// Each part fits by itself, and their names were found to differ when the whole was compiled.
		limits, s.of, s.none = &Limits{}, nil, limitsOf(whole)
	}
	s.limits = limits
	return s
}

func limitsOf(whole *Limits) []*Limit {
	all := make([]*Limit, len(whole.rules))
	for j := range whole.rules {
		all[j] = whole.rules[j].limit
	}
	return all
}

// multipleOf returns the share of one of so many instances in a multiple of a limit. Where the multiple is larger than a
// limit can be it is the limit itself, which is less.
func multipleOf(limit Limit, multiple, instances int64) (Limit, bool) {
	part, ok := shareOf(limit, multiple, instances)
	if ok && len(mistakesOf(part)) == 0 {
		return part, true
	}
	return limit, multiple >= instances
}

// shareOf returns a part of a limit, of which the capacity is rounded down. The refill is exact where it can
// be counted exactly, and rounded down otherwise. It returns false if nothing is left.
func shareOf(limit Limit, part, of int64) (Limit, bool) {
	refill, period := limit.Refill, limit.Period
	limit.Capacity = portion(limit.Capacity, part, of)
	if limit.Window.Kind != TokenBucket {
		limit.Refill = limit.Capacity
		return limit, limit.Capacity > 0
	}
	// Both products fit: a refill is below 2^53, and a period below 2^39 ms.
	r, p := refill*part, period.Milliseconds()*of
	g := gcd(r, p)
	limit.Refill = r / g
	if p /= g; p <= maxPeriod.Milliseconds() {
		limit.Period = time.Duration(p) * time.Millisecond
		if len(mistakesOf(limit)) == 0 {
			return limit, true
		}
	}
	limit.Refill, limit.Period = portion(refill, part, of), period
	return limit, limit.Capacity > 0 && limit.Refill > 0 && len(mistakesOf(limit)) == 0
}

// portion returns n × part / of, rounded down, for an n of at most 2^53 and a part of at most 1000.
func portion(n, part, of int64) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(part))
	quotient, _ := bits.Div64(hi, lo, uint64(of))
	return int64(quotient)
}

// lacks reports whether a take with the amounts asks the bucket for something of which the share is nothing.
func (s *share) lacks(b *Bucket, amounts Amounts) bool {
	for _, limit := range s.none {
		if b.asked(amounts, limit.Unit) > 0 {
			return true
		}
	}
	return false
}

// believes says whether what was known of a limit so long before the store went away still counts.
func (l *local) believes(limit *Limit, instances int, age int64) bool {
	switch known := l.config.KnownFor; {
	case instances == 1:
		return true
	case known < 0:
		return false
	case known > 0:
		return milliseconds(age) <= known
	default:
		return milliseconds(age) <= min(max(knownLeast, limit.Length()/knownShare), knownMost)
	}
}

// begin makes the share what the owner is judged by in the take.
//
// A limit that was not judged here before starts with its share of what is known to be left, or full if it fails bounded.
// One that was goes on from there, under whatever policy.
func (o *localOwner) begin(j *localTake, s *share) {
	switch {
	case o.share == nil:
		o.dropLocal()
	case j.instances != 1 && o.absence != j.absence:
		o.resume(j, s)
	}
	o.share, o.absence = s, j.absence
	rules, fresh := s.limits.rules, uint64(0)
	var spends spentArray
	for i := range rules {
		if o.hasBegun(rules[i].ID) {
			continue
		}
		bounded := rules[i].limit.FailMode == FailBounded
		if bounded {
			spends[i] = o.startBounded(j, &rules[i])
		} else {
			spends[i] = o.start(j, i)
		}
		fresh, o.begun = fresh|1<<i, append(o.begun, begunLimit{rules[i].ID, bounded})
	}
	if fresh != 0 {
		o.ledger.Store(s.limits.compiled, spends[:len(rules)], fresh, j.now)
	}
}

func (o *localOwner) hasBegun(id uint16) bool {
	return slices.ContainsFunc(o.begun, func(b begunLimit) bool { return b.id == id })
}

// hasSpent reports whether anything of a limit that fails bounded is still spent here.
func (o *localOwner) hasSpent(now int64) bool {
	return slices.ContainsFunc(o.begun, func(b begunLimit) bool {
		e := o.ledger.Find(b.id, 0)
		return b.bounded && e != nil && e.Gone() > now
	})
}

// isShare reports whether anything of a limit that fails local was judged here in the absence that lasts.
func (o *localOwner) isShare(l *local) bool {
	return o.share != nil && l.away.Load() != 0 && o.absence == l.absence.Load() &&
		slices.ContainsFunc(o.begun, func(b begunLimit) bool { return !b.bounded })
}

// dropLocal forgets what was spent here of limits that fail local: it starts anew from what the store has said.
func (o *localOwner) dropLocal() {
	kept := o.begun[:0]
	for _, b := range o.begun {
		if b.bounded {
			kept = append(kept, b)
			continue
		}
		o.ledger.Entries = slices.DeleteFunc(o.ledger.Entries, func(e state.Entry) bool { return e.ID == b.id })
	}
	o.begun = kept
}

// startBounded returns what a limit that fails bounded has spent that is judged here for the first time: nothing, unless it
// may have been forgotten.
func (o *localOwner) startBounded(j *localTake, r *rule) state.Spent {
	if forgotten := o.group.forgotten; forgotten > 0 {
		return r.from(r.empty(forgotten), forgotten, j.now)
	}
	return state.Spent{}
}

// start returns what a limit of the share has spent that is judged here for the first time.
func (o *localOwner) start(j *localTake, i int) state.Spent {
	rule := &o.share.limits.rules[i]
	since := max(j.since, o.group.forgotten)
	known := o.find(rule.ID)
	if known == nil || !j.local.believes(rule.limit, j.instances, since-o.at) {
		return rule.from(rule.empty(since), since, j.now)
	}
	whole := o.limits.rules[o.share.of[i]].Capacity
	percent, of := int64(j.local.config.Percent), 100*int64(j.instances)
	tokens := rule.Capacity - portion(max(0, whole-known.spent), percent, of)
	if known.spent > whole {
		// Under a larger policy that is not beyond the capacity.
		tokens += portion(known.spent-whole, percent, of) + 1
	}
	if rule.Tag == state.TokenBucket && known.end > 0 {
		// Nobody knows its terms: as a window it does not come back too early.
		return rule.Read(&state.Entry{ID: rule.ID, Terms: state.Terms{Tag: state.FixedWindow, Length: known.end - o.at}, Debt: tokens, End: known.end}, j.now)
	}
	return rule.from(state.Spent{Debt: state.Product(tokens, rule.Unit()), End: known.end}, o.at, j.now)
}

// resume goes on with what was spent here of limits that fail local when the store has answered others in between:
// nobody knows what of this owner's budget it has given them, so that what came back meanwhile does not count. Limits
// that the share lacks start with nothing if they are judged again.
func (o *localOwner) resume(j *localTake, s *share) {
	rules, begun := s.limits.rules, uint64(0)
	since := max(j.since, o.group.forgotten)
	var spends spentArray
	o.ledger.Load(s.limits.compiled.All, spends[:len(rules)], o.used)
	for i := range rules {
		rule := &rules[i]
		if !slices.Contains(o.begun, begunLimit{id: rule.ID}) {
			continue
		}
		if other := spends[i].Other; other != nil {
			is := other.At(o.used)
			spends[i].Other = &is
		}
		if !j.local.believes(rule.limit, j.instances, since-o.used) {
			spends[i] = rule.empty(since)
		}
		spends[i] = rule.from(spends[i], since, j.now)
		begun |= 1 << i
	}
	o.dropLocal()
	o.known = o.known[:0]
	for i := range rules {
		if begun>>i&1 == 1 {
			o.begun = append(o.begun, begunLimit{id: rules[i].ID})
		}
	}
	o.ledger.Store(s.limits.compiled, spends[:len(rules)], begun, j.now)
}

// find returns what the store has said of a limit, nil if it has said nothing.
func (o *localOwner) find(id uint16) *knownLimit {
	for i := range o.known {
		if o.known[i].id == id {
			return &o.known[i]
		}
	}
	return nil
}

// from returns what is left by now of something that was spent, whose debt is taken for that of a date.
func (r *rule) from(s state.Spent, date, now int64) state.Spent {
	if s.Other != nil {
		e := *s.Other
		if e.Tag == state.TokenBucket {
			e.Date = date
		}
		return r.Read(&e, now)
	}
	if r.Tag == state.TokenBucket {
		return state.Spent{Debt: r.Decay(s.Debt, now-date)}
	}
	if s.Debt+s.Previous > 0 && s.End == 0 {
		// The store knows of no open window and yet has less than all: it has said so of another limit.
		s.End = r.empty(now).End
	}
	return s
}

// empty is a budget of which nothing was left at the time.
func (r *rule) empty(at int64) state.Spent {
	switch {
	case r.Tag == state.TokenBucket:
		return state.Spent{Debt: r.Full}
	case r.Tag == state.SlidingWindow:
		return state.Spent{Previous: r.Capacity, End: at + r.R}
	case r.Windows != nil:
		return state.Spent{Debt: r.Capacity, End: r.Windows.Around(at).To}
	default:
		return state.Spent{Debt: r.Capacity, End: at + r.R}
	}
}
