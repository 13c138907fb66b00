package bucket

// terms are how a debt comes back: those of the policy that charged it.
type terms struct {
	kind WindowKind
	// p and r are those of a token bucket, see rule, and length is that of a window in milliseconds, by
	// which windows of the calendar are told from those of a clock that was set back.
	p, r, length int64
}

// storedLimit is one limit as it is stored, in the terms of the policy that charged it last. The scripts keep the
// same, packed: state.lua has the rules.
type storedLimit struct {
	id uint16
	terms
	// date is that of the debt of a token bucket, in Unix milliseconds.
	date int64
	// debt of a token bucket is in units of 1/p token, of a window what was used in it.
	debt int64
	// previous and end are as in spent.
	previous, end int64
}

// unit is in what the debt is counted: units of 1/p token, or tokens.
func (e *storedLimit) unit() int64 {
	if e.kind == TokenBucket {
		return e.p
	}
	return 1
}

// gone returns when the entry counts nothing any more.
func (e *storedLimit) gone() int64 {
	switch {
	case e.kind == TokenBucket:
		return e.date + ceilDiv(e.debt, e.r)
	case e.kind == SlidingWindow && e.debt > 0:
		return e.end + e.length
	default:
		return e.end
	}
}

// farAhead reports whether the entry lies so far in the future that the clock must have been set back, and then
// returns it dated anew: otherwise it would not come back until the clock has caught up.
func (e *storedLimit) farAhead(now int64) (anew storedLimit, ahead bool) {
	anew = *e
	switch {
	case e.kind == TokenBucket && e.date-now > maxAhead:
		anew.date = now
	case e.kind.Calendar() && e.end-now > 2*e.length+maxAhead,
		e.kind != TokenBucket && !e.kind.Calendar() && e.end-now > e.length+maxAhead:
		anew.end = now + e.length
	default:
		return anew, false
	}
	return anew, true
}

// at returns the entry as it is at the time: its debt decayed, or its window moved on.
func (e *storedLimit) at(now int64) storedLimit {
	is := *e
	switch {
	case e.kind == TokenBucket:
		if elapsed := now - e.date; elapsed > 0 {
			// Divided first because r × elapsed may overflow.
			if is.date, is.debt = now, 0; elapsed < ceilDiv(e.debt, e.r) {
				is.debt = e.debt - e.r*elapsed
			}
		}
	case e.end > now:
	case e.kind == SlidingWindow && e.debt > 0 && e.end+e.length > now:
		is.previous, is.debt, is.end = e.debt, 0, e.end+e.length
	default:
		is.previous, is.debt, is.end = 0, 0, 0
	}
	return is
}

// overlap is the time of a sliding window for which the window before it still counts.
func (e *storedLimit) overlap(now int64) int64 {
	if e.kind != SlidingWindow {
		return 0
	}
	return max(0, min(e.end-now, e.length))
}

// tokens returns what the entry, which is as it is now, counts, rounded up.
func (e *storedLimit) tokens(now int64) int64 {
	switch e.kind {
	case TokenBucket:
		return ceilDiv(e.debt, e.p)
	case SlidingWindow:
		return e.debt + ceilDiv(e.previous*e.overlap(now), e.length)
	default:
		return e.debt
	}
}

// mostSliding is how many tokens can be counted in a sliding window of so many milliseconds: as many may have been in
// the one before.
func mostSliding(length int64) int64 {
	return maxExact / 2 / length
}

// fits returns how many tokens more can be counted.
func (e *storedLimit) fits() int64 {
	if e.kind == SlidingWindow {
		return mostSliding(e.length) - e.debt
	}
	return (maxExact - 1 - e.debt) / e.unit()
}

// grant returns the entry after tokens were given back, whatever they were taken for. A token bucket keeps its date:
// whoever looks then finds as much more as was given back.
func (e *storedLimit) grant(tokens, now int64) storedLimit {
	is := e.at(now)
	given := is.debt
	if tokens < ceilDiv(is.debt, is.unit()) {
		given = tokens * is.unit()
	}
	if e.kind == TokenBucket {
		is = *e
		is.debt -= given
		return is
	}
	is.debt -= given
	overlap := is.overlap(now)
	if rest := min(tokens-given, is.previous); rest > 0 && overlap > 0 {
		is.previous -= min(is.previous, rest*is.length/overlap)
	}
	return is
}

// terms are those of the rule at the time.
func (r *rule) terms(now int64) terms {
	t := terms{kind: r.kind}
	switch {
	case r.kind == TokenBucket:
		t.p, t.r = r.p, r.r
	case r.calendar != nil:
		window := r.calendar.around(now)
		t.length = window.to - window.from
	default:
		t.length = r.r
	}
	return t
}

// continues reports whether the entry is in the terms of the rule, so that nothing has to be worked out.
func (r *rule) continues(e *storedLimit, now int64) bool {
	switch {
	case e.kind != r.kind:
		return false
	case r.kind == TokenBucket:
		return e.p == r.p && e.r == r.r
	case r.calendar != nil:
		return e.end == r.calendar.around(now).to
	default:
		return e.length == r.r
	}
}

// entry is what is stored of a limit that has spent so much, in the place of an entry, which may be nil.
func (r *rule) entry(s *spent, was *storedLimit, now int64) storedLimit {
	if s.other != nil {
		return *s.other
	}
	e := storedLimit{id: r.id, terms: r.terms(now), debt: s.debt, previous: s.previous, end: s.end}
	switch {
	case r.kind == TokenBucket:
		if e.date = now; was != nil {
			e.date = max(now, was.date)
		}
	case r.calendar != nil && was != nil && s.end == was.end:
		e.length = was.length
	}
	return e
}

// refills reports whether the refill of the rule, a token bucket, brings an entry of another one back: it is at least as
// fast, and the debt can be counted in units of the rule.
func (r *rule) refills(e *storedLimit) bool {
	return float64(r.r)/float64(r.p) >= float64(e.r)/float64(e.p) && r.convert(e.debt, e.p) < maxExact
}

// read returns what a limit has spent by now, from what is stored of it, which may be nothing.
//
// An entry in other terms counts what it is worth in tokens, rounded up. Between token buckets the faster of the two
// refills brings it back, that of the rule since the date of the entry.
func (r *rule) read(e *storedLimit, now int64) spent {
	if e.debt+e.previous == 0 || e.gone() <= now {
		return spent{}
	}
	is := e.at(now)
	if r.continues(e, now) {
		return spent{debt: is.debt, previous: is.previous, end: is.end}
	}
	other := *e
	s := spent{other: &other}
	if r.kind == TokenBucket && e.kind == TokenBucket {
		s.debt = r.counts(e, &is, now)
		return s
	}
	tokens := is.tokens(now)
	if r.kind == TokenBucket {
		s.debt = product(tokens, r.p)
		return s
	}
	// The bound is above twice the capacity, so that it changes no verdict, and keeps the level within what can be counted.
	s.debt, s.end = min(tokens, maxExact/r.p), now+r.r
	if r.calendar != nil {
		s.end = r.calendar.around(now).to
		if e.kind == r.kind {
			// A window of the same kind that ends later: of another zone, or of a clock that was set back.
			s.end = max(s.end, is.end)
		}
	}
	return s
}

// counts returns what a token bucket in other terms counts, in units of 1/p token of the rule, from the entry as it is
// stored, and as it is now.
func (r *rule) counts(e, is *storedLimit, now int64) int64 {
	if r.refills(e) {
		return r.decay(r.convert(e.debt, e.p), now-e.date)
	}
	return r.convert(is.debt, e.p)
}

// convert returns a debt counted in units of 1/p token in the units of the rule, rounded up, and at
// most 2^53: a changed policy keeps what was spent.
func (r *rule) convert(debt, p int64) int64 {
	if p == r.p {
		return debt
	}
	tokens := debt / p
	rest := debt - tokens*p
	converted := product(tokens, r.p)
	switch {
	case rest == 0:
	case p > (maxExact-1)/r.p:
		// rest × r.p may not be exact: a whole token is the upper bound.
		converted += r.p
	default:
		converted += ceilDiv(rest*r.p, p)
	}
	return min(converted, maxExact)
}

// product returns a × b, at most 2^53. It expects a ≥ 0 and b ≥ 1.
func product(a, b int64) int64 {
	if a > maxExact/b {
		return maxExact
	}
	return a * b
}
