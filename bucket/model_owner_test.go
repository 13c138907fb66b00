package bucket_test

import (
	"math"
	"math/big"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// modelEntry is what is kept of one limit, under its name, in the terms of the policy that charged it last.
type modelEntry struct {
	kind bucket.WindowKind
	// rate and denominator are those of a token bucket, and length that of a window.
	rate        *big.Rat
	denominator *big.Int
	length      int64
	// date is that of what is owed.
	date                int64
	owed                *big.Rat
	used, previous, end int64
}

func (e *modelEntry) token() bool    { return e.kind == bucket.TokenBucket }
func (e *modelEntry) sliding() bool  { return e.kind == bucket.SlidingWindow }
func (e *modelEntry) calendar() bool { return e.kind.Calendar() }

// nothing says that the entry counts nothing.
func (e *modelEntry) nothing() bool { return e.owed.Sign() == 0 && e.used+e.previous == 0 }

// gone is when the entry counts nothing any more.
func (e *modelEntry) gone() int64 {
	switch {
	case e.token():
		return e.date + ceilRat(new(big.Rat).Quo(e.owed, e.rate))
	case e.sliding() && e.used > 0:
		return e.end + e.length
	default:
		return e.end
	}
}

// at is the entry as it is at the time.
func (e *modelEntry) at(now int64) *modelEntry {
	is := *e
	is.owed = new(big.Rat).Set(e.owed)
	switch {
	case e.token():
		if now > e.date {
			back := new(big.Rat).Mul(e.rate, new(big.Rat).SetInt64(now-e.date))
			if is.date = now; is.owed.Sub(is.owed, back).Sign() < 0 {
				is.owed.SetInt64(0)
			}
		}
	case e.end > now:
	case e.gone() <= now:
		is.used, is.previous, is.end = 0, 0, 0
	default:
		is.used, is.previous, is.end = 0, e.used, e.end+e.length
	}
	return &is
}

// level is what an entry counts that is as it is now.
func (e *modelEntry) level(now int64) *big.Rat {
	level := new(big.Rat).Add(e.owed, new(big.Rat).SetInt64(e.used))
	if e.sliding() {
		covered := max(0, min(e.end-now, e.length))
		level.Add(level, new(big.Rat).Mul(new(big.Rat).SetInt64(e.previous), big.NewRat(covered, e.length)))
	}
	return level
}

// room is how many tokens more can be counted.
func (e *modelEntry) room() int64 {
	const most = 1<<53 - 1
	switch {
	case e.token():
		denominator := new(big.Rat).SetInt(e.denominator)
		units := new(big.Rat).Mul(e.owed, denominator)
		return floorRat(units.Quo(units.Sub(new(big.Rat).SetInt64(most), units), denominator))
	case e.sliding():
		return (1<<53)/2/e.length - e.used
	default:
		return most - e.used
	}
}

// most is how many tokens a token bucket can count.
func (e *modelEntry) most() int64 {
	return new(big.Int).Div(big.NewInt(1<<53-1), e.denominator).Int64()
}

func (e *modelEntry) add(tokens *big.Rat) {
	if e.token() {
		e.owed.Add(e.owed, tokens)
	} else {
		e.used += floorRat(tokens)
	}
}

// grant is the entry after tokens were given back. A token bucket keeps its date.
func (e *modelEntry) grant(tokens, now int64) *modelEntry {
	is := e.at(now)
	if e.token() {
		given := smallestRat(new(big.Rat).SetInt64(tokens), is.owed)
		is.owed, is.date = new(big.Rat).Sub(e.owed, given), e.date
		return is
	}
	if rest := tokens - is.used; is.sliding() && rest > 0 && is.end > now {
		is.previous = lessPrevious(is.previous, rest, is.length, min(is.end-now, is.length))
	}
	is.used -= min(tokens, is.used)
	return is
}

// redated is the entry dated anew if it lies far in the future, and whether it does.
func (e *modelEntry) redated(now int64) (*modelEntry, bool) {
	anew := *e
	windows := int64(1)
	if e.calendar() {
		windows = 2
	}
	switch {
	case e.token() && e.date > now+5000:
		anew.date = now
	case !e.token() && e.end > now+windows*e.length+5000:
		anew.end = now + e.length
	default:
		return e, false
	}
	return &anew, true
}

// modelOwner is the state of one owner.
type modelOwner struct {
	limits []modelLimit
	// expires is when nothing is left to keep.
	expires int64
	stored  map[string]*modelEntry
}

func newModelOwner(limits *bucket.Limits) *modelOwner {
	m := &modelOwner{stored: map[string]*modelEntry{}}
	m.govern(limits)
	return m
}

// govern puts the owner under other limits.
func (m *modelOwner) govern(limits *bucket.Limits) {
	m.limits = nil
	for _, limit := range limits.All() {
		m.limits = append(m.limits, modelLimit{Limit: limit})
	}
}

func (m *modelOwner) forget() {
	m.expires, m.stored = 0, map[string]*modelEntry{}
}

// view is what the limits have spent by the time, and whether a call that changes nothing else has to
// write, after a clock was set back.
func (m *modelOwner) view(now int64) (all []modelSpent, stale bool) {
	for _, limit := range m.limits {
		s := nothingSpent()
		if e := m.stored[limit.Name]; e != nil {
			e, _ = e.redated(now)
			s = limit.read(e, now)
		}
		all = append(all, s)
	}
	for _, e := range m.stored {
		_, ahead := e.redated(now)
		stale = stale || ahead
	}
	return all, stale
}

// continues says whether the entry is in the terms of the limit.
func (l modelLimit) continues(e *modelEntry, now int64) bool {
	switch {
	case e.kind != l.Window.Kind:
		return false
	case l.token():
		return e.rate.Cmp(l.rate()) == 0
	case l.Window.Kind.Calendar():
		_, to := l.around(now)
		return e.end == to
	default:
		return e.length == l.length()
	}
}

// read is what an entry means to a limit.
func (l modelLimit) read(e *modelEntry, now int64) modelSpent {
	s := nothingSpent()
	if e.nothing() || e.gone() <= now {
		return s
	}
	is := e.at(now)
	if l.continues(e, now) {
		s.owed, s.used, s.previous, s.end = is.owed, is.used, is.previous, is.end
		return s
	}
	s.entry = e
	switch {
	case l.token() && e.token():
		s.owed = l.owing(e, now)
	case l.token():
		s.owed.SetInt64(ceilRat(is.level(now)))
		s.owed = l.counts(s.owed)
	default:
		s.used, s.end = ceilRat(l.counts(new(big.Rat).SetInt64(ceilRat(is.level(now))))), now+l.length()
		if l.Window.Kind.Calendar() {
			if _, s.end = l.around(now); e.kind == l.Window.Kind {
				s.end = max(s.end, is.end)
			}
		}
	}
	return s
}

// counts bounds what is told of tokens: at most 2^53 units.
func (l modelLimit) counts(tokens *big.Rat) *big.Rat {
	unit := new(big.Int).SetInt64(1)
	switch {
	case l.token():
		unit = l.denominator()
	case l.sliding():
		unit.SetInt64(l.length())
	}
	most := new(big.Rat).SetFrac(new(big.Int).Lsh(big.NewInt(1), 53), unit)
	if !l.token() {
		most.SetInt64(floorRat(most))
	}
	return smallestRat(tokens, most)
}

// owing is what a token bucket in other terms owes: less by the faster refill of the two, which is that of the limit
// only if its units can count the debt.
func (l modelLimit) owing(e *modelEntry, now int64) *big.Rat {
	owed := l.convert(e.owed, e.denominator)
	units := new(big.Rat).Mul(owed, new(big.Rat).SetInt(l.denominator()))
	if units.Cmp(new(big.Rat).SetInt64(1<<53)) < 0 && l.rate().Cmp(e.rate) >= 0 {
		return left(owed, l.rate(), e.date, now)
	}
	return l.convert(e.at(now).owed, e.denominator)
}

// convert is a debt in the units of the limit, rounded up.
func (l modelLimit) convert(owed *big.Rat, denominator *big.Int) *big.Rat {
	own := l.denominator()
	units := new(big.Rat).Mul(owed, new(big.Rat).SetInt(own))
	converted := new(big.Rat).SetFrac(ceilQuotient(units.Num(), units.Denom()), own)
	exact := new(big.Int).Mul(own, denominator)
	if !owed.IsInt() && own.Cmp(denominator) != 0 && exact.BitLen() > 53 {
		// The product could not be formed, so that a token is rounded up as a whole.
		whole := new(big.Int).Mul(own, new(big.Int).SetInt64(floorRat(owed)+1))
		converted = new(big.Rat).SetFrac(whole, own)
	}
	return l.counts(converted)
}

// write makes this what those limits have spent that have changed, and leaves the others as they are.
func (m *modelOwner) write(all []modelSpent, changed []bool, now int64) {
	for name, e := range m.stored {
		anew, _ := e.redated(now)
		if m.stored[name] = anew; anew.gone() <= now {
			delete(m.stored, name)
		}
	}
	for i, limit := range m.limits {
		if !changed[i] {
			continue
		}
		e := limit.entry(all[i], m.stored[limit.Name], now)
		if m.stored[limit.Name] = e; e.nothing() {
			delete(m.stored, limit.Name)
		}
	}
	m.join(now)
	m.expires = 0
	for _, e := range m.stored {
		m.expires = max(m.expires, e.gone())
	}
	if m.expires <= now {
		m.forget()
	}
}

// entry is what is kept of a limit that has spent so much.
func (l modelLimit) entry(s modelSpent, was *modelEntry, now int64) *modelEntry {
	if s.entry != nil {
		return s.entry
	}
	e := &modelEntry{kind: l.Window.Kind, owed: s.owed, used: s.used, previous: s.previous, end: s.end, length: l.length()}
	switch {
	case l.token():
		e.rate, e.denominator, e.date = l.rate(), l.denominator(), now
		if was != nil && was.token() {
			e.date = max(e.date, was.date)
		}
	case l.Window.Kind.Calendar():
		from, to := l.around(now)
		if e.length = to - from; was != nil && !was.token() && was.end == e.end {
			e.length = was.length
		}
	}
	return e
}

// join gives all entries one date where all of them are those of a fast owner: up to four token buckets with
// numbers that fit its state.
func (m *modelOwner) join(now int64) {
	fits := func(owed *big.Rat, denominator *big.Int) bool {
		units := new(big.Rat).Mul(owed, new(big.Rat).SetInt(denominator))
		return units.Cmp(new(big.Rat).SetInt64(1<<40-1)) <= 0
	}
	if len(m.limits) > 4 {
		return
	}
	date, known := now, 0
	for _, limit := range m.limits {
		if !limit.token() || limit.Soft || limit.denominator().Cmp(big.NewInt(math.MaxUint32)) > 0 ||
			limit.rate().Num().Cmp(big.NewInt(math.MaxUint16)) > 0 ||
			!fits(new(big.Rat).SetInt64(2*limit.Capacity), limit.denominator()) {
			return
		}
		if e := m.stored[limit.Name]; e != nil {
			if !limit.continues(e, now) || !fits(e.at(now).owed, e.denominator) {
				return
			}
			date = max(date, e.date)
			known++
		}
	}
	if known < len(m.stored) {
		return
	}
	for name, e := range m.stored {
		m.stored[name] = e.at(now)
		m.stored[name].date = date
	}
}
