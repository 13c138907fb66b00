package bucket

// maxAhead is how far, in milliseconds, the state of an owner may lie in the future of a clock that
// was set back before the state is dated anew.
const maxAhead = 5000

// decay returns the debt after the elapsed milliseconds. A negative time, of a clock that was set
// back, refills nothing.
func (r *rule) decay(debt, elapsed int64) int64 {
	if elapsed <= 0 {
		return debt
	}
	// The quotient comes first because r × elapsed may overflow.
	if elapsed > debt/r.r {
		return 0
	}
	return debt - r.r*elapsed
}

// over returns by how much the debt is too deep for the amount: admissible when at most 0. The
// amount is at most the capacity.
func (r *rule) over(debt, amount int64) int64 {
	return debt - (r.full - amount*r.p)
}

// remaining returns the whole tokens that could be taken.
func (r *rule) remaining(debt int64) int64 {
	if debt >= r.full {
		return 0
	}
	return (r.full - debt) / r.p
}

// wait returns the milliseconds in which the units of debt decay, rounded up.
func (r *rule) wait(units int64) int64 {
	return ceilDiv(units, r.r)
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

// settle returns the debt after a charge of some tokens turned out to be worth actual ones.
//
// Less gives back, but at most what is still owed of the charge after the elapsed milliseconds:
// what the refill has repaid was never lent, and giving it back would admit more than the limit
// allows. More is charged on, down to a debt of twice the capacity.
func (r *rule) settle(debt, charged, actual, elapsed int64) int64 {
	switch {
	case actual < charged:
		owed := r.decay(charged*r.p, elapsed)
		return debt - min((charged-actual)*r.p, owed, debt)
	case actual > charged:
		more := min(actual-charged, 2*r.capacity) * r.p
		return min(debt+more, 2*r.full)
	default:
		return debt
	}
}

// grant returns the debt after tokens were given back, whatever they were taken for.
func (r *rule) grant(debt, tokens int64) int64 {
	return debt - min(min(tokens, 2*r.capacity)*r.p, debt)
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

// ceilDiv expects a ≥ 0 and b ≥ 1.
func ceilDiv(a, b int64) int64 {
	q := a / b
	if q*b < a {
		q++
	}
	return q
}
