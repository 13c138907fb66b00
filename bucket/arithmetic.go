package bucket

import "sort"

// maxAhead is how far, in milliseconds, the state of an owner may lie in the future of a clock that
// was set back before the state is dated anew.
const maxAhead = 5000

// spent is what one limit has to be paid back.
type spent struct {
	// debt of a token bucket is in units of 1/p token, of a window what was used in it.
	debt int64
	// previous is what was used in the sliding window before, and end when the window ends in Unix
	// milliseconds, or 0 if none is open.
	previous, end int64
	// other is the entry that is stored, if it is in other terms than those of the limit. The fields above are then
	// what it counts, as if it had been charged in the terms of the limit. It does not change.
	other *storedLimit
}

// decay returns the debt of a token bucket after the elapsed milliseconds. A negative time, of a clock that was set
// back, refills nothing.
func (r *rule) decay(debt, elapsed int64) int64 {
	if elapsed <= 0 {
		return debt
	}
	// Checked first because r × elapsed may overflow. A deeper debt than twice full is of a policy that has a larger
	// capacity.
	if elapsed >= r.longest && (debt <= 2*r.full || elapsed > debt/r.r) {
		return 0
	}
	return max(0, debt-r.r*elapsed)
}

// level returns what counts as spent at the time, in units of 1/p token.
func (r *rule) level(s spent, now int64) int64 {
	if r.kind == SlidingWindow {
		return s.debt*r.p + s.previous*r.overlap(s, now)
	}
	return s.debt
}

// overlap is the time of a sliding window for which the window before it still counts.
func (r *rule) overlap(s spent, now int64) int64 {
	return max(0, min(s.end-now, r.r))
}

// over returns by how much the level is too high for the amount: admissible when at most 0. The
// amount is at most the capacity.
func (r *rule) over(level, amount int64) int64 {
	return level - (r.full - amount*r.p)
}

// remaining returns the whole tokens that could be taken.
func (r *rule) remaining(level int64) int64 {
	if level >= r.full {
		return 0
	}
	return r.byP.floor(r.full - level)
}

// overdraft returns the tokens by which the level exceeds the capacity, rounded up.
func (r *rule) overdraft(level int64) int64 {
	if level <= r.full {
		return 0
	}
	return r.byP.ceil(level - r.full)
}

// wait returns the milliseconds in which the units of debt of a token bucket decay, rounded up.
func (r *rule) wait(units int64) int64 {
	return r.byR.ceil(units)
}

// reset returns the milliseconds until nothing counts as spent.
func (r *rule) reset(s spent, now int64) int64 {
	switch {
	case s.other != nil:
		gone := s.other.gone() - now
		if r.kind == TokenBucket && s.other.kind == TokenBucket && r.refills(s.other) {
			return min(gone, max(0, s.other.date-now)+r.wait(s.debt))
		}
		return gone
	case r.kind == TokenBucket:
		return r.wait(s.debt)
	case r.kind == SlidingWindow && s.debt > 0:
		return s.end + r.r - now
	case s.end > 0:
		return s.end - now
	default:
		return 0
	}
}

// retry returns the milliseconds until the limit has the amount, which is at most the capacity and
// which it does not have now.
func (r *rule) retry(s spent, amount, now int64) int64 {
	left := r.capacity - amount
	switch {
	case s.other != nil:
		return r.retryOther(s.other, amount, now)
	case r.kind == TokenBucket:
		return r.wait(max(0, r.over(s.debt, amount)))
	case r.kind == SlidingWindow && s.debt <= left && s.previous > 0:
		// What is left bears the window before it for so many milliseconds of overlap.
		return max(0, s.end-min(r.r, (left-s.debt)*r.r/s.previous)-now)
	case r.kind == SlidingWindow && s.debt > 0:
		return s.end + r.r - min(r.r, left*r.r/s.debt) - now
	default:
		return max(0, s.end-now)
	}
}

// retryOther is retry of an entry in other terms, which only ever counts less as time goes by.
func (r *rule) retryOther(e *storedLimit, amount, now int64) int64 {
	after := sort.Search(int(e.gone()-now), func(after int) bool {
		at := now + int64(after)
		return r.over(r.level(r.read(e, at), at), amount) <= 0
	})
	return int64(after)
}

// unit is in what spent.debt is counted: units of 1/p token, or tokens.
func (r *rule) unit() int64 {
	if r.kind == TokenBucket {
		return r.p
	}
	return 1
}

// take charges limit k of a take that was admitted, unless it was to be left uncharged, and notes if a soft one is
// charged less than was asked for. It reports whether anything was charged.
func (r *rule) take(s *spent, short *shortfall, k int, amounts Amounts, now int64) bool {
	amount := short.of(k, amounts.Of(r.limit.Unit))
	if amount == 0 {
		return false
	}
	after, charged := r.charge(*s, amount, now)
	if charged < amount {
		short.add(k, charged)
	}
	*s = after
	return charged > 0
}

// charge returns what is spent after the amount, and how much of it was charged: all, unless the limit is soft.
//
// It makes the terms of the rule those of the debt. Where a soft limit would have to charge above its capacity
// in other terms it charges nothing: the terms may be so slow that it would be owed for years.
func (r *rule) charge(s spent, amount, now int64) (spent, int64) {
	if s.other != nil && r.level(s, now) > r.full {
		return s, 0
	}
	own := s
	own.other = nil
	if !r.soft {
		return r.spend(own, s.debt+amount*r.unit(), now), amount
	}
	if after, charged := r.overdraw(own, amount, now); charged > 0 {
		return after, charged
	}
	return s, 0
}

// before returns what was spent before a charge.
func (r *rule) before(s spent, charged, now int64) spent {
	switch {
	case charged == 0:
		return s
	case s.other == nil:
		s.debt -= min(charged*r.unit(), s.debt)
		return s
	default:
		e := s.other.at(now)
		e.debt -= min(product(charged, e.unit()), e.debt)
		return r.read(&e, now)
	}
}

// overdraw charges tokens that cannot be refused, at most down to twice the capacity and never more than can be
// counted, and returns how many these were.
//
// It makes the terms of the rule those of a token bucket that owes no more than the capacity, as a take does. A window
// stays one: it would end early.
func (r *rule) overdraw(s spent, tokens, now int64) (spent, int64) {
	if s.other == nil || s.other.kind == TokenBucket && r.level(s, now) <= r.full {
		room := (2*r.capacity*r.unit() - s.debt) / r.unit()
		if r.kind == SlidingWindow {
			room = min(room, mostSliding(r.r)-s.debt)
		}
		if tokens = max(0, min(tokens, room)); tokens == 0 {
			return s, 0
		}
		s.other = nil
		return r.spend(s, s.debt+tokens*r.unit(), now), tokens
	}
	e := s.other.at(now)
	counted := s.debt
	if r.kind == TokenBucket {
		counted = ceilDiv(s.debt, r.p)
	}
	if tokens = max(0, min(tokens, 2*r.capacity-counted, e.fits())); tokens == 0 {
		return s, 0
	}
	e.debt += tokens * e.unit()
	return r.read(&e, now), tokens
}

// spend sets the debt, which opens a window or closes it.
func (r *rule) spend(s spent, debt, now int64) spent {
	s.debt = debt
	switch {
	case r.kind == TokenBucket:
	case debt+s.previous == 0:
		s.end = 0
	case s.end == 0 && r.calendar != nil:
		s.end = r.calendar.around(now).to
	case s.end == 0:
		s.end = now + r.r
	}
	return s
}

// settle returns what is spent after a charge of some tokens, taken at a time, turned out to be worth
// actual ones.
//
// Less gives back, but at most what is still owed of the charge: what the refill has repaid was never
// lent, and what was charged in a window that has ended went with it; giving it back would admit more
// than the limit allows. It leaves the debt its terms. More is charged on, down to a debt of twice the capacity.
func (r *rule) settle(s spent, charged, actual, takenAt, now int64) spent {
	if actual > charged {
		s, _ = r.overdraw(s, actual-charged, now)
		return s
	}
	most := 2 * r.capacity
	back := min(min(charged-actual, most)*r.unit(), r.owed(s, min(charged, most), takenAt, now))
	if back = min(back, s.debt); back <= 0 {
		return s
	}
	if s.other == nil {
		return r.spend(s, s.debt-back, now)
	}
	e := s.other.grant(back/r.unit(), now)
	return r.read(&e, now)
}

// owed returns how much of a charge of some tokens, taken at a time, is not yet paid back.
func (r *rule) owed(s spent, charged, takenAt, now int64) int64 {
	switch e := s.other; {
	case e != nil && (r.kind != TokenBucket || e.kind != TokenBucket):
		// Nobody can tell the charge from what was charged in other terms.
		return 0
	case r.kind == TokenBucket:
		left := r.decay(charged*r.p, now-takenAt)
		if e == nil {
			return left
		}
		was := storedLimit{terms: e.terms, date: takenAt, debt: min(charged, (maxExact-1)/e.p) * e.p}
		return min(left, was.at(now).debt/e.p*r.p)
	}
	from := s.end - r.r
	if r.calendar != nil {
		from = r.calendar.around(now).from
	}
	if s.end == 0 || takenAt < from {
		return 0
	}
	return charged
}

// grant returns what is spent after tokens were given back, whatever they were taken for. The debt keeps its terms, and
// who gives back no more than counts as spent here gives nobody else more.
func (r *rule) grant(s spent, tokens, now int64) spent {
	if s.other != nil && s.other.kind == TokenBucket && r.kind == TokenBucket {
		tokens = min(tokens, ceilDiv(s.debt, r.p))
	}
	was := r.entry(&s, nil, now)
	e := was.grant(tokens, now)
	switch is := was.at(now); {
	case e == was || e == is:
		return s
	case s.other != nil:
		return r.read(&e, now)
	default:
		s.previous = e.previous
		return r.spend(s, e.debt, now)
	}
}

// ceilDiv expects a ≥ 0 and b ≥ 1.
func ceilDiv(a, b int64) int64 {
	q := a / b
	if q*b < a {
		q++
	}
	return q
}
