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
	// limits are the shares of those that fail local, and of the places of these among the rules of the whole.
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
	made := newShare(limits, int64(l.config.Percent), int64(instances))
	l.shares.made[key] = made
	return made
}

func newShare(whole *Limits, percent, instances int64) *share {
	s := &share{}
	var parts []Limit
	for j := range whole.rules {
		limit := whole.rules[j].limit
		if limit.FailMode != FailLocal {
			continue
		}
		part, ok := shareOf(*limit, percent, 100*instances)
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

// portion returns n × part / of, rounded down, for a part of at most the whole.
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

// begin makes the share what the owner is judged by. The store is away since a time.
//
// A limit that was not judged here before starts with its share of what is known to be left. One that was goes on
// from there, under whatever policy.
func (o *localOwner) begin(l *local, s *share, instances int, since, absence, now int64) {
	switch {
	case o.share == nil:
		o.ledger, o.begun = state.Owner{}, nil
	case instances != 1 && o.absence != absence:
		o.resume(l, s, instances, since, now)
	}
	o.share, o.absence = s, absence
	rules, fresh := s.limits.rules, uint64(0)
	var spends spentArray
	for j := range rules {
		if !slices.Contains(o.begun, rules[j].ID) {
			spends[j] = o.start(l, j, instances, since, now)
			fresh, o.begun = fresh|1<<j, append(o.begun, rules[j].ID)
		}
	}
	if fresh != 0 {
		o.ledger.Store(s.limits.compiled, spends[:len(rules)], fresh, now)
	}
}

// start returns what a limit of the share has spent that is judged here for the first time.
func (o *localOwner) start(l *local, j, instances int, since, now int64) state.Spent {
	rule := &o.share.limits.rules[j]
	known := o.find(rule.ID)
	if known == nil || !l.believes(rule.limit, instances, since-o.at) {
		return rule.from(rule.empty(since), since, now)
	}
	whole := o.limits.rules[o.share.of[j]].Capacity
	percent, of := int64(l.config.Percent), 100*int64(instances)
	tokens := rule.Capacity - portion(max(0, whole-known.spent), percent, of)
	if known.spent > whole {
		// Under a larger policy that is not beyond the capacity.
		tokens += portion(known.spent-whole, percent, of) + 1
	}
	if rule.Tag == state.TokenBucket && known.end > 0 {
		// Nobody knows its terms: as a window it does not come back too early.
		return rule.Read(&state.Entry{ID: rule.ID, Terms: state.Terms{Tag: state.FixedWindow, Length: known.end - o.at}, Debt: tokens, End: known.end}, now)
	}
	return rule.from(state.Spent{Debt: state.Product(tokens, rule.Unit()), End: known.end}, o.at, now)
}

// resume goes on with what was spent here when the store has answered others in between: nobody knows what of this
// owner's budget it has given them, so that what came back meanwhile does not count. Limits that the share
// lacks start with nothing if they are judged again.
func (o *localOwner) resume(l *local, s *share, instances int, since, now int64) {
	rules, begun := s.limits.rules, uint64(0)
	var spends spentArray
	o.ledger.Load(s.limits.compiled.All, spends[:len(rules)], o.used)
	for j := range rules {
		rule := &rules[j]
		if !slices.Contains(o.begun, rule.ID) {
			continue
		}
		if other := spends[j].Other; other != nil {
			is := other.At(o.used)
			spends[j].Other = &is
		}
		if !l.believes(rule.limit, instances, since-o.used) {
			spends[j] = rule.empty(since)
		}
		spends[j] = rule.from(spends[j], since, now)
		begun |= 1 << j
	}
	o.ledger, o.begun, o.known = state.Owner{}, o.begun[:0], o.known[:0]
	for j := range rules {
		if begun>>j&1 == 1 {
			o.begun = append(o.begun, rules[j].ID)
		}
	}
	o.ledger.Store(s.limits.compiled, spends[:len(rules)], begun, now)
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
