package bucket_test

import (
	"fmt"
	"math/big"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// modelEntry is what is kept of one limit, under its name, by the policy that charged it last.
type modelEntry struct {
	window bool
	// writer is the limit by the policy of the last writer.
	writer modelLimit
	// denominator is that of the debt.
	denominator *big.Int
	spent       modelSpent
	// foreign entries, which the last writer did not know, have a date of their own and an end.
	foreign      bool
	last, dropAt int64
}

// modelOwner is the state of one owner.
type modelOwner struct {
	limits []modelLimit
	// last is the date of all debts that are not foreign, and expires when nothing is left to keep.
	last, expires int64
	stored        map[string]*modelEntry
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
	m.last, m.expires, m.stored = 0, 0, map[string]*modelEntry{}
}

// view is what the limits have spent by the time, and whether a call that changes nothing else has to
// write: after a clock was set back, or if the end of a window is another one by now.
func (m *modelOwner) view(now int64) (all []modelSpent, stale bool) {
	stale = m.last-now > 5000
	for _, limit := range m.limits {
		s := nothingSpent()
		if e := m.stored[limit.Name]; e != nil && (!e.foreign || e.dropAt > now) {
			date := m.last
			if e.foreign {
				date = e.last
			}
			var moved bool
			s, moved = limit.adopt(e, date, now)
			stale = stale || moved
		}
		all = append(all, s)
	}
	for _, e := range m.stored {
		stale = stale || e.foreign && e.dropAt > now && e.last > now+5000
	}
	return all, stale
}

// converted says that what is stored of a limit was charged as another kind, or has to be moved.
func (m *modelOwner) converted(now int64) bool {
	for _, limit := range m.limits {
		e := m.stored[limit.Name]
		if e == nil || e.foreign && e.dropAt <= now {
			continue
		}
		date := m.last
		if e.foreign {
			date = e.last
		}
		kind := func(l modelLimit) string {
			if l.sliding() {
				return fmt.Sprint("slides ", l.length())
			}
			return fmt.Sprint("token bucket ", l.token())
		}
		if _, moved := limit.adopt(e, date, now); moved || kind(limit) != kind(e.writer) {
			return true
		}
	}
	return false
}

// adopt is what an entry means to a limit.
func (l modelLimit) adopt(e *modelEntry, date, now int64) (s modelSpent, moved bool) {
	s = e.spent.copy()
	if e.writer.sliding() && (!l.sliding() || l.length() != e.writer.length()) {
		s = e.writer.later(s, now)
		s.used, s.previous = ceilRat(e.writer.level(s, now)), 0
	}
	switch {
	case l.token() && e.window:
		used, open := s.used, s.end > now
		if s = nothingSpent(); open {
			s.owed.SetInt64(min(used, 2*l.Capacity))
		}
		return s, false
	case l.token():
		s.owed = l.convert(e)
		if now > date {
			back := new(big.Rat).Mul(l.rate(), new(big.Rat).SetInt64(now-date))
			s.owed.Sub(s.owed, back)
		}
		if s.owed.Sign() < 0 {
			s.owed.SetInt64(0)
		}
		return s, false
	case !e.window:
		s = nothingSpent()
		s.used, s.end = ceilRat(e.spent.owed), date+l.length()
		if l.Window.Kind.Calendar() {
			from, to := l.around(now)
			if s.end = to; date < from {
				return nothingSpent(), false
			}
		}
	}
	s.used, s.previous = min(s.used, 2*l.Capacity), min(s.previous, 2*l.Capacity)
	if !l.sliding() {
		s.previous = 0
	}
	return l.move(s, now)
}

// convert is a debt in the units of the limit, rounded up.
func (l modelLimit) convert(e *modelEntry) *big.Rat {
	most := new(big.Rat).SetInt64(2 * l.Capacity)
	if e.spent.owed.Cmp(most) >= 0 {
		return most
	}
	own := l.denominator()
	units := new(big.Rat).Mul(e.spent.owed, new(big.Rat).SetInt(own))
	owed := new(big.Rat).SetFrac(new(big.Int).SetInt64(ceilRat(units)), own)
	exact := new(big.Int).Mul(own, e.denominator)
	if !e.spent.owed.IsInt() && own.Cmp(e.denominator) != 0 && exact.BitLen() > 53 {
		// The product could not be formed, so that a token is rounded up as a whole.
		owed = new(big.Rat).SetInt64(ceilRat(e.spent.owed))
	}
	if owed.Cmp(most) > 0 {
		return most
	}
	return owed
}

// move lets a window end when its limit says.
func (l modelLimit) move(s modelSpent, now int64) (_ modelSpent, moved bool) {
	end := s.end
	if l.Window.Kind.Calendar() {
		if s.end > now && l.windowsUntil(s.end, now) > 2 {
			_, s.end = l.around(now)
		}
	} else if s.end > now+l.length()+5000 {
		s.end = now + l.length()
	}
	moved = s.end != end
	s = l.later(s, now)
	if s.used+s.previous == 0 {
		s = nothingSpent()
	}
	return s, moved
}

// windowsUntil is how many windows of the calendar lie between that of now and the one that has this end,
// at most 3, which are also those until a time at which no window ends.
func (l modelLimit) windowsUntil(end, now int64) int {
	_, to := l.around(now)
	for n := range 3 {
		if to == end {
			return n
		}
		_, to = l.around(to)
	}
	return 3
}

// write makes this what the limits have spent.
func (m *modelOwner) write(all []modelSpent, now int64) {
	for _, e := range m.stored {
		if !e.foreign {
			e.last = m.last
		}
		if e.last > now+5000 {
			e.last = now
		}
	}
	if now > m.last || m.last-now > 5000 {
		m.last = now
	}
	known := map[string]bool{}
	for _, limit := range m.limits {
		known[limit.Name] = true
	}
	expires := int64(0)
	for name, e := range m.stored {
		switch {
		case known[name]:
		case !e.foreign:
			e.foreign, e.dropAt = true, m.expires
		}
		if !known[name] && e.dropAt <= now {
			delete(m.stored, name)
		} else if !known[name] {
			expires = max(expires, e.dropAt)
		}
	}
	for i, limit := range m.limits {
		e := &modelEntry{window: !limit.token(), writer: limit, spent: all[i].copy()}
		if limit.token() {
			e.denominator = limit.denominator()
			expires = max(expires, m.last+limit.reset(e.spent, now).Milliseconds())
		} else if e.spent.end > 0 {
			expires = max(expires, now+limit.reset(e.spent, now).Milliseconds())
		}
		m.stored[limit.Name] = e
	}
	if m.expires = expires; expires <= now {
		m.forget()
	}
}
