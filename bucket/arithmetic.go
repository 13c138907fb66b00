package bucket

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
}

// decay returns the debt of a token bucket after the elapsed milliseconds. A negative time, of a clock that was set
// back, refills nothing.
func (r *rule) decay(debt, elapsed int64) int64 {
	if elapsed <= 0 {
		return debt
	}
	// Checked first because r × elapsed may overflow.
	if elapsed >= r.longest {
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

// expiry returns when what was spent means the same as nothing; at is the date of debts.
func (r *rule) expiry(s spent, at int64) int64 {
	if r.kind == TokenBucket {
		return at + r.wait(s.debt)
	}
	if r.kind == SlidingWindow && s.debt > 0 {
		return s.end + r.r
	}
	return s.end
}

// convert returns a debt counted in units of 1/p token in the units of the rule, rounded up, and at
// most twice the capacity: a changed policy keeps what was spent.
func (r *rule) convert(debt, p int64) int64 {
	most := 2 * r.full
	if p == r.p {
		return min(debt, most)
	}
	tokens := debt / p
	rest := debt - tokens*p
	if tokens >= 2*r.capacity {
		return most
	}
	converted := tokens * r.p
	switch {
	case rest == 0:
	case p > (maxExact-1)/r.p:
		// rest × r.p may not be exact: a whole token is the upper bound.
		converted += r.p
	default:
		converted += ceilDiv(rest*r.p, p)
	}
	return min(converted, most)
}

// unit is in what spent.debt is counted: units of 1/p token, or tokens.
func (r *rule) unit() int64 {
	if r.kind == TokenBucket {
		return r.p
	}
	return 1
}

// charge returns what is spent after the amount, which opens a window. Only a soft limit may be
// charged more than it has: up to twice the capacity.
func (r *rule) charge(s spent, amount, now int64) spent {
	most := 2 * r.capacity * r.unit()
	return r.spend(s, min(s.debt+min(amount, 2*r.capacity)*r.unit(), most), now)
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
// than the limit allows. More is charged on, down to a debt of twice the capacity.
func (r *rule) settle(s spent, charged, actual, takenAt, now int64) spent {
	most := 2 * r.capacity
	debt := s.debt
	switch {
	case actual < charged:
		owed := r.owed(s, min(charged, most), takenAt, now)
		debt -= min(min(charged-actual, most)*r.unit(), owed, debt)
	case actual > charged:
		debt = min(debt+min(actual-charged, most)*r.unit(), most*r.unit())
	}
	if debt == s.debt {
		return s
	}
	return r.spend(s, debt, now)
}

// owed returns how much of a charge of some tokens, taken at a time, is not yet paid back.
func (r *rule) owed(s spent, charged, takenAt, now int64) int64 {
	if r.kind == TokenBucket {
		return r.decay(charged*r.p, now-takenAt)
	}
	from := s.end - r.r
	if r.calendar != nil {
		window := r.calendar.around(now)
		if from = window.from; s.end > window.to {
			from = window.to
		}
	}
	if s.end == 0 || takenAt < from {
		return 0
	}
	return charged
}

// grant returns what is spent after tokens were given back, whatever they were taken for.
func (r *rule) grant(s spent, tokens, now int64) spent {
	tokens = min(tokens, 2*r.capacity)
	given := min(tokens*r.unit(), s.debt)
	if r.kind == SlidingWindow {
		if rest, overlap := tokens-given, r.overlap(s, now); rest > 0 && overlap > 0 {
			s.previous -= min(s.previous, ceilDiv(rest*r.r, overlap))
		}
	}
	return r.spend(s, s.debt-given, now)
}

// effective returns the date that a state of the given date has from now on, and whether the state
// lay so far in the future that it has to be dated anew even by a call that changes nothing else.
// Otherwise a clock that was set back would stop the refill until it has caught up.
func effective(last, now int64) (at int64, redated bool) {
	switch {
	case last <= now:
		return now, false
	case last-now > maxAhead:
		return now, true
	default:
		return last, false
	}
}

// reachable returns the date that a foreign debt of the given date is carried with.
func reachable(last, now int64) int64 {
	if last-now > maxAhead {
		return now
	}
	return last
}

// ceilDiv expects a ≥ 0 and b ≥ 1.
func ceilDiv(a, b int64) int64 {
	q := a / b
	if q*b < a {
		q++
	}
	return q
}
