package state

import "sort"

// Windows finds the windows of a limit of the calendar.
type Windows interface {
	// Around returns the window that holds the time. All windows together hold each time once.
	Around(now int64) Span
}

// Span is a window of time in Unix milliseconds: from its start, included, to its end.
type Span struct {
	From, To int64
}

// Around implements [Windows] for the one window that a caller has sent.
func (s Span) Around(int64) Span { return s }

// Rule is a limit in lowest terms: debt is counted in units of 1/P token and decays by R units each
// millisecond. In a window of fixed length R is that length in milliseconds, and so is P if it slides;
// otherwise P is 1 and a unit is a token. It is completed by [NewRule].
type Rule struct {
	// ID addresses the limit in the stored state.
	ID  uint16
	Tag Tag
	// Lenient limits refuse nothing and are left uncharged, soft ones refuse nothing and are charged.
	Lenient, Soft bool
	R, P          int64
	// Full is the debt of an empty bucket, Capacity × P.
	Capacity, Full int64
	// Windows are those of a limit that has the calendar's, and nil otherwise.
	Windows Windows

	// longest is the time in which the deepest debt of a token bucket decays, twice full.
	longest  int64
	byR, byP divisor
	// held is what instances hold of the limit, if the rule is that of what is left of it.
	held *Leased
}

// NewRule fills in what is derived from capacity, P and R.
func NewRule(r Rule) Rule {
	r.Full = r.Capacity * r.P
	r.byR, r.byP = newDivisor(max(r.R, 1)), newDivisor(r.P)
	r.longest = r.byR.ceil(2 * r.Full)
	return r
}

// Spent is what one limit has to be paid back.
type Spent struct {
	// Debt of a token bucket is in units of 1/p token, of a window what was used in it.
	Debt int64
	// Previous is what was used in the sliding window before, and End when the window ends in Unix
	// milliseconds, or 0 if none is open.
	Previous, End int64
	// Other is the entry that is stored, if it is in other terms than those of the limit. The fields above are then
	// what it counts, as if it had been charged in the terms of the limit. It does not change.
	Other *Entry
	// Held says that instances hold something of the token bucket, which counts as spent.
	Held bool
}

// Decay returns the debt of a token bucket after the elapsed milliseconds. A negative time, of a clock that was set
// back, refills nothing.
func (r *Rule) Decay(debt, elapsed int64) int64 {
	if elapsed <= 0 {
		return debt
	}
	// Checked first because r × elapsed may overflow. A deeper debt than twice full is of a policy that has a larger
	// capacity.
	if elapsed >= r.longest && (debt <= 2*r.Full || elapsed > debt/r.R) {
		return 0
	}
	return max(0, debt-r.R*elapsed)
}

// Level returns what counts as spent at the time, in units of 1/p token.
func (r *Rule) Level(s Spent, now int64) int64 {
	if r.Tag == SlidingWindow {
		return s.Debt*r.P + s.Previous*r.overlap(s, now)
	}
	return s.Debt
}

// overlap is the time of a sliding window for which the window before it still counts.
func (r *Rule) overlap(s Spent, now int64) int64 {
	return max(0, min(s.End-now, r.R))
}

// Over returns by how much the level is too high for the amount: admissible when at most 0. The
// amount is at most the capacity.
func (r *Rule) Over(level, amount int64) int64 {
	return level - (r.Full - amount*r.P)
}

// Remaining returns the whole tokens that could be taken.
func (r *Rule) Remaining(level int64) int64 {
	if level >= r.Full {
		return 0
	}
	return r.byP.floor(r.Full - level)
}

// Overdraft returns the tokens by which the level exceeds the capacity, rounded up.
func (r *Rule) Overdraft(level int64) int64 {
	if level <= r.Full {
		return 0
	}
	return r.byP.ceil(level - r.Full)
}

// Wait returns the milliseconds in which the units of debt of a token bucket decay, rounded up.
func (r *Rule) Wait(units int64) int64 {
	return r.byR.ceil(units)
}

// Reset returns the milliseconds until nothing counts as spent.
func (r *Rule) Reset(s Spent, now int64) int64 {
	switch {
	case s.Other != nil:
		gone := s.Other.Gone() - now
		if r.Tag == TokenBucket && s.Other.Tag == TokenBucket && r.refills(s.Other) {
			return min(gone, max(0, s.Other.Date-now)+r.Wait(s.Debt))
		}
		return gone
	case r.Tag == TokenBucket:
		return r.Wait(s.Debt)
	case r.Tag == SlidingWindow && s.Debt > 0:
		return s.End + r.R - now
	case s.End > 0:
		return s.End - now
	default:
		return 0
	}
}

// Retry returns the milliseconds until the limit has the amount, which is at most the capacity and
// which it does not have now.
func (r *Rule) Retry(s Spent, amount, now int64) int64 {
	left := r.Capacity - amount
	switch {
	case s.Other != nil:
		return r.retryOther(s.Other, amount, now)
	case r.Tag == TokenBucket:
		return r.Wait(max(0, r.Over(s.Debt, amount)))
	case r.Tag == SlidingWindow && s.Debt <= left && s.Previous > 0:
		// What is left bears the window before it for so many milliseconds of overlap.
		return max(0, s.End-min(r.R, (left-s.Debt)*r.R/s.Previous)-now)
	case r.Tag == SlidingWindow && s.Debt > 0:
		return s.End + r.R - min(r.R, left*r.R/s.Debt) - now
	default:
		return max(0, s.End-now)
	}
}

// retryOther is retry of an entry in other terms, which only ever counts less as time goes by.
func (r *Rule) retryOther(e *Entry, amount, now int64) int64 {
	after := sort.Search(int(e.Gone()-now), func(after int) bool {
		at := now + int64(after)
		return r.Over(r.Level(r.Read(e, at), at), amount) <= 0
	})
	return int64(after)
}

// Unit is in what Spent.Debt is counted: units of 1/p token, or tokens.
func (r *Rule) Unit() int64 {
	if r.Tag == TokenBucket {
		return r.P
	}
	return 1
}

// Take charges limit k of a take that was admitted, unless it was to be left uncharged, and notes if a soft one is
// charged less than was asked for. It reports whether anything was charged.
func (r *Rule) Take(s *Spent, short *Shortfall, k int, amount, now int64) bool {
	if amount = short.Of(k, amount); amount == 0 {
		return false
	}
	after, charged := r.charge(*s, amount, now)
	if charged < amount {
		short.Add(k, charged)
	}
	*s = after
	return charged > 0
}

// charge returns what is spent after the amount, and how much of it was charged: all, unless the limit is soft.
//
// It makes the terms of the rule those of the debt. Where a soft limit would have to charge above its capacity
// in other terms it charges nothing: the terms may be so slow that it would be owed for years.
func (r *Rule) charge(s Spent, amount, now int64) (Spent, int64) {
	if s.Other != nil && r.Level(s, now) > r.Full {
		return s, 0
	}
	own := s
	own.Other = nil
	if !r.Soft {
		return r.spend(own, s.Debt+amount*r.Unit(), now), amount
	}
	if after, charged := r.overdraw(own, amount, now); charged > 0 {
		return after, charged
	}
	return s, 0
}

// Before returns what was spent before a charge.
func (r *Rule) Before(s Spent, charged, now int64) Spent {
	switch {
	case charged == 0:
		return s
	case s.Other == nil:
		s.Debt -= min(charged*r.Unit(), s.Debt)
		return s
	default:
		e := s.Other.At(now)
		e.Debt -= min(Product(charged, e.Unit()), e.Debt)
		return r.Read(&e, now)
	}
}

// overdraw charges tokens that cannot be refused, at most down to twice the capacity and never more than can be
// counted, and returns how many these were.
//
// It makes the terms of the rule those of a token bucket that owes no more than the capacity, as a take does. A window
// stays one: it would end early.
func (r *Rule) overdraw(s Spent, tokens, now int64) (Spent, int64) {
	if s.Other == nil || s.Other.Tag == TokenBucket && r.Level(s, now) <= r.Full {
		room := (2*r.Capacity*r.Unit() - s.Debt) / r.Unit()
		if r.Tag == SlidingWindow {
			room = min(room, mostSliding(r.R)-s.Debt)
		}
		if tokens = max(0, min(tokens, room)); tokens == 0 {
			return s, 0
		}
		s.Other = nil
		return r.spend(s, s.Debt+tokens*r.Unit(), now), tokens
	}
	e := s.Other.At(now)
	counted := s.Debt
	if r.Tag == TokenBucket {
		counted = CeilDiv(s.Debt, r.P)
	}
	if tokens = max(0, min(tokens, 2*r.Capacity-counted, e.fits())); tokens == 0 {
		return s, 0
	}
	e.Debt += tokens * e.Unit()
	return r.Read(&e, now), tokens
}

// spend sets the debt, which opens a window or closes it.
func (r *Rule) spend(s Spent, debt, now int64) Spent {
	s.Debt = debt
	switch {
	case r.Tag == TokenBucket:
	case debt+s.Previous == 0:
		s.End = 0
	case s.End == 0 && r.Windows != nil:
		s.End = r.Windows.Around(now).To
	case s.End == 0:
		s.End = now + r.R
	}
	return s
}

// Settle returns what is spent after a charge of some tokens, taken at a time, turned out to be worth
// actual ones.
//
// Less gives back, but at most what is still owed of the charge: what the refill has repaid was never
// lent, and what was charged in a window that has ended went with it; giving it back would admit more
// than the limit allows. It leaves the debt its terms. More is charged on, down to a debt of twice the capacity.
func (r *Rule) Settle(s Spent, charged, actual, takenAt, now int64) Spent {
	if actual > charged {
		s, _ = r.overdraw(s, actual-charged, now)
		return s
	}
	most := 2 * r.Capacity
	back := min(min(charged-actual, most)*r.Unit(), r.owed(s, min(charged, most), takenAt, now))
	if back = min(back, s.Debt); back <= 0 {
		return s
	}
	if s.Other == nil {
		return r.spend(s, s.Debt-back, now)
	}
	e := s.Other.Grant(back/r.Unit(), now)
	return r.Read(&e, now)
}

// owed returns how much of a charge of some tokens, taken at a time, is not yet paid back.
func (r *Rule) owed(s Spent, charged, takenAt, now int64) int64 {
	switch e := s.Other; {
	case e != nil && (r.Tag != TokenBucket || e.Tag != TokenBucket):
		// Nobody can tell the charge from what was charged in other terms.
		return 0
	case r.Tag == TokenBucket:
		left := r.repaid(charged*r.P, now-takenAt)
		if e == nil {
			return left
		}
		was := Entry{Terms: e.Terms, Date: takenAt, Debt: min(charged, (MaxExact-1)/e.P) * e.P}
		return min(left, was.At(now).Debt/e.P*r.P)
	}
	from := s.End - r.R
	if r.Windows != nil {
		from = r.Windows.Around(now).From
	}
	if s.End == 0 || takenAt < from {
		return 0
	}
	return charged
}

// Grant returns what is spent after tokens were given back, whatever they were taken for. The debt keeps its terms, and
// who gives back no more than counts as spent here gives nobody else more.
func (r *Rule) Grant(s Spent, tokens, now int64) Spent {
	if s.Other != nil && s.Other.Tag == TokenBucket && r.Tag == TokenBucket {
		tokens = min(tokens, CeilDiv(s.Debt, r.P))
	}
	was := r.Entry(&s, nil, now)
	e := was.Grant(tokens, now)
	switch is := was.At(now); {
	case e == was || e == is:
		return s
	case s.Other != nil:
		return r.Read(&e, now)
	default:
		s.Previous = e.Previous
		return r.spend(s, e.Debt, now)
	}
}

// CeilDiv expects a ≥ 0 and b ≥ 1.
func CeilDiv(a, b int64) int64 {
	q := a / b
	if q*b < a {
		q++
	}
	return q
}
