package bucket

import (
	"math/bits"
	"slices"
	"sync"
	"time"
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
func (l *Local) share(limits *Limits, instances int) *share {
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
	if p /= g; p <= MaxPeriod.Milliseconds() {
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

// lacks reports whether the take asks for something of which the share is nothing.
func (s *share) lacks(amounts Amounts) bool {
	for _, limit := range s.none {
		if amounts.Of(limit.Unit) > 0 {
			return true
		}
	}
	return false
}

// believes says whether what was known of a limit so long before the store went away still counts.
func (l *Local) believes(limit *Limit, instances int, age int64) bool {
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
func (o *localOwner) begin(l *Local, s *share, instances int, since, absence, now int64) {
	switch {
	case o.share == nil:
		o.ledger, o.begun = ledger{}, nil
	case instances != 1 && o.absence != absence:
		o.resume(l, s, instances, since, now)
	}
	o.share, o.absence = s, absence
	rules, fresh := s.limits.rules, uint64(0)
	var spends spentArray
	for j := range rules {
		if !slices.Contains(o.begun, rules[j].id) {
			spends[j] = o.start(l, j, instances, since, now)
			fresh, o.begun = fresh|1<<j, append(o.begun, rules[j].id)
		}
	}
	if fresh != 0 {
		o.ledger.store(s.limits, spends[:len(rules)], fresh, now)
	}
}

// start returns what a limit of the share has spent that is judged here for the first time.
func (o *localOwner) start(l *Local, j, instances int, since, now int64) spent {
	rule := &o.share.limits.rules[j]
	known := o.find(rule.id)
	if known == nil || !l.believes(rule.limit, instances, since-o.at) {
		return rule.from(rule.empty(since), since, now)
	}
	whole := o.limits.rules[o.share.of[j]].capacity
	percent, of := int64(l.config.Percent), 100*int64(instances)
	tokens := rule.capacity - portion(max(0, whole-known.spent), percent, of)
	if known.spent > whole {
		// Under a larger policy that is not beyond the capacity.
		tokens += portion(known.spent-whole, percent, of) + 1
	}
	if rule.kind == TokenBucket && known.end > 0 {
		// Nobody knows its terms: as a window it does not come back too early.
		return rule.read(&storedLimit{id: rule.id, terms: terms{kind: FixedWindow, length: known.end - o.at}, debt: tokens, end: known.end}, now)
	}
	return rule.from(spent{debt: product(tokens, rule.unit()), end: known.end}, o.at, now)
}

// resume goes on with what was spent here when the store has answered others in between: nobody knows what of this
// owner's budget it has given them, so that what came back meanwhile does not count. Limits that the share
// lacks start with nothing if they are judged again.
func (o *localOwner) resume(l *Local, s *share, instances int, since, now int64) {
	rules, begun := s.limits.rules, uint64(0)
	var spends spentArray
	o.ledger.load(rules, spends[:len(rules)], o.used)
	for j := range rules {
		rule := &rules[j]
		if !slices.Contains(o.begun, rule.id) {
			continue
		}
		if other := spends[j].other; other != nil {
			is := other.at(o.used)
			spends[j].other = &is
		}
		if !l.believes(rule.limit, instances, since-o.used) {
			spends[j] = rule.empty(since)
		}
		spends[j] = rule.from(spends[j], since, now)
		begun |= 1 << j
	}
	o.ledger, o.begun, o.known = ledger{}, o.begun[:0], o.known[:0]
	for j := range rules {
		if begun>>j&1 == 1 {
			o.begun = append(o.begun, rules[j].id)
		}
	}
	o.ledger.store(s.limits, spends[:len(rules)], begun, now)
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
func (r *rule) from(s spent, date, now int64) spent {
	if s.other != nil {
		e := *s.other
		if e.kind == TokenBucket {
			e.date = date
		}
		return r.read(&e, now)
	}
	if r.kind == TokenBucket {
		return spent{debt: r.decay(s.debt, now-date)}
	}
	if s.debt+s.previous > 0 && s.end == 0 {
		// The store knows of no open window and yet has less than all: it has said so of another limit.
		s.end = r.empty(now).end
	}
	return s
}

// empty is a budget of which nothing was left at the time.
func (r *rule) empty(at int64) spent {
	switch {
	case r.kind == TokenBucket:
		return spent{debt: r.full}
	case r.kind == SlidingWindow:
		return spent{previous: r.capacity, end: at + r.r}
	case r.calendar != nil:
		return spent{debt: r.capacity, end: r.calendar.around(at).to}
	default:
		return spent{debt: r.capacity, end: at + r.r}
	}
}
