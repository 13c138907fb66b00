package state

// Terms are how a debt comes back: those of the policy that charged it.
type Terms struct {
	Tag Tag
	// P and R are those of a token bucket, see [Rule], and Length is that of a window in milliseconds, by
	// which windows of the calendar are told from those of a clock that was set back.
	P, R, Length int64
}

// Entry is one limit as it is stored, in the terms of the policy that charged it last. The scripts keep the
// same, packed: state.lua has the rules.
type Entry struct {
	ID uint16
	Terms
	// Date is that of the debt of a token bucket, in Unix milliseconds.
	Date int64
	// Debt of a token bucket is in units of 1/P token, of a window what was used in it.
	Debt int64
	// Previous and End are as in [Spent].
	Previous, End int64
	// Held is what instances hold of a token bucket, nil for nothing. Then R is what decays of the rest. What it points to never changes.
	Held *Leased
}

// Unit is in what a debt is counted: units of 1/P token, or tokens.
func (t *Terms) Unit() int64 {
	if t.Tag == TokenBucket {
		return t.P
	}
	return 1
}

// Gone returns when the entry counts nothing any more.
func (e *Entry) Gone() int64 {
	switch {
	case e.Held != nil:
		// At the latest then nothing is held any more, and all of it comes back.
		return e.Held.Until + min(leaseForgotten+CeilDiv(e.Debt+e.Held.Capacity, e.Held.Base), leaseLife)
	case e.Tag == TokenBucket:
		return e.Date + CeilDiv(e.Debt, e.R)
	case e.Tag == SlidingWindow && e.Debt > 0:
		return e.End + e.Length
	default:
		return e.End
	}
}

// counts reports whether anything counts as spent at the time.
func (e *Entry) counts(now int64) bool {
	return (e.Debt+e.Previous > 0 || e.Held != nil) && e.Gone() > now
}

// farAhead reports whether the entry lies so far in the future that the clock must have been set back, and then
// returns it dated anew: otherwise it would not come back until the clock has caught up.
func (e *Entry) farAhead(now int64) (anew Entry, ahead bool) {
	anew = *e
	if h := e.Held; h != nil && h.Until-now > MaxLease+maxAhead {
		held := *h
		held.Until, anew.Held, ahead = now+MaxLease, &held, true
	}
	switch {
	case e.Tag == TokenBucket && e.Date-now > maxAhead:
		anew.Date = now
	case e.Tag.Calendar() && e.End-now > 2*e.Length+maxAhead,
		e.Tag != TokenBucket && !e.Tag.Calendar() && e.End-now > e.Length+maxAhead:
		anew.End = now + e.Length
	default:
		return anew, ahead
	}
	return anew, true
}

// At returns the entry as it is at the time: its debt decayed, or its window moved on.
func (e *Entry) At(now int64) Entry {
	is := *e
	switch {
	case e.Tag == TokenBucket:
		if elapsed := now - e.Date; elapsed > 0 {
			// Divided first because r × elapsed may overflow.
			if is.Date, is.Debt = now, 0; elapsed < CeilDiv(e.Debt, e.R) {
				is.Debt = e.Debt - e.R*elapsed
			}
		}
	case e.End > now:
	case e.Tag == SlidingWindow && e.Debt > 0 && e.End+e.Length > now:
		is.Previous, is.Debt, is.End = e.Debt, 0, e.End+e.Length
	default:
		is.Previous, is.Debt, is.End = 0, 0, 0
	}
	return is
}

// Overlap is the time of a sliding window for which the window before it still counts.
func (e *Entry) Overlap(now int64) int64 {
	if e.Tag != SlidingWindow {
		return 0
	}
	return max(0, min(e.End-now, e.Length))
}

// tokens returns what the entry, which is as it is now, counts, rounded up.
func (e *Entry) tokens(now int64) int64 {
	switch e.Tag {
	case TokenBucket:
		return CeilDiv(e.Debt, e.P)
	case SlidingWindow:
		return e.Debt + CeilDiv(e.Previous*e.Overlap(now), e.Length)
	default:
		return e.Debt
	}
}

// mostSliding is how many tokens can be counted in a sliding window of so many milliseconds: as many may have been in
// the one before.
func mostSliding(length int64) int64 {
	return MaxExact / 2 / length
}

// fits returns how many tokens more can be counted.
func (e *Entry) fits() int64 {
	if e.Tag == SlidingWindow {
		return mostSliding(e.Length) - e.Debt
	}
	return (MaxExact - 1 - e.Debt) / e.Unit()
}

// Grant returns the entry after tokens were given back, whatever they were taken for. A token bucket keeps its Date:
// whoever looks then finds as much more as was given back.
func (e *Entry) Grant(tokens, now int64) Entry {
	is := e.At(now)
	given := is.Debt
	if tokens < CeilDiv(is.Debt, is.Unit()) {
		given = tokens * is.Unit()
	}
	if e.Tag == TokenBucket {
		is = *e
		is.Debt -= given
		return is
	}
	is.Debt -= given
	overlap := is.Overlap(now)
	if rest := min(tokens-given, is.Previous); rest > 0 && overlap > 0 {
		is.Previous -= min(is.Previous, rest*is.Length/overlap)
	}
	return is
}

// Terms are those of the rule at the time.
func (r *Rule) Terms(now int64) Terms {
	t := Terms{Tag: r.Tag}
	switch {
	case r.Tag == TokenBucket:
		t.P, t.R = r.P, r.R
	case r.Windows != nil:
		window := r.Windows.Around(now)
		t.Length = window.To - window.From
	default:
		t.Length = r.R
	}
	return t
}

// continues reports whether the entry is in the terms of the rule, so that nothing has to be worked out.
func (r *Rule) continues(e *Entry, now int64) bool {
	if r.Windows != nil {
		return e.Tag == r.Tag && e.End == r.Windows.Around(now).To
	}
	return e.Terms == r.Terms(now) && e.Held == nil
}

// Entry is what is stored of a limit that has spent so much, in the place of an entry, which may be nil.
func (r *Rule) Entry(s *Spent, was *Entry, now int64) Entry {
	if s.Other != nil {
		return *s.Other
	}
	e := Entry{ID: r.ID, Terms: r.Terms(now), Debt: s.Debt, Previous: s.Previous, End: s.End, Held: r.held}
	switch {
	case r.Tag == TokenBucket:
		if e.Date = now; was != nil {
			e.Date = max(now, was.Date)
		}
	case r.Windows != nil && was != nil && s.End == was.End && s.End > r.Windows.Around(now).To:
		// A window of the same kind that ends later.
		e.Length = was.Length
	}
	return e
}

// refills reports whether the refill of the rule, a token bucket, brings an entry of another one back: it is at least as
// fast, and the debt can be counted in units of the rule.
func (r *Rule) refills(e *Entry) bool {
	return float64(r.R)/float64(r.P) >= float64(e.R)/float64(e.P) && r.Convert(e.Debt, e.P) < MaxExact
}

// Read returns what a limit has spent by now, from what is stored of it, which may be nothing.
//
// An entry in other terms counts what it is worth in tokens, rounded up. Between token buckets the faster of the two
// refills brings it back, that of the rule since the date of the entry.
func (r *Rule) Read(e *Entry, now int64) Spent {
	if !e.counts(now) {
		return Spent{}
	}
	if e.Held != nil && r.Tag == TokenBucket {
		return Spent{Debt: r.leasedDebt(e, now), Held: r.held == nil}
	} else if e.Held != nil {
		other := e.whole(now)
		other.R = e.R
		e = &other
	}
	is := e.At(now)
	if r.continues(e, now) {
		return Spent{Debt: is.Debt, Previous: is.Previous, End: is.End}
	}
	other := *e
	s := Spent{Other: &other}
	if r.Tag == TokenBucket && e.Tag == TokenBucket {
		s.Debt = r.units(e, &is, now)
		return s
	}
	tokens := is.tokens(now)
	if r.Tag == TokenBucket {
		s.Debt = Product(tokens, r.P)
		return s
	}
	// The bound is above twice the capacity, so that it changes no verdict, and keeps the level within what can be counted.
	s.Debt, s.End = min(tokens, MaxExact/r.P), now+r.R
	if r.Windows != nil {
		s.End = r.Windows.Around(now).To
		if e.Tag == r.Tag {
			// A window of the same kind that ends later: of another zone, or of a clock that was set back.
			s.End = max(s.End, is.End)
		}
	}
	return s
}

// units returns what a token bucket in other terms counts, in units of 1/p token of the rule, from the entry as it is
// stored, and as it is now.
func (r *Rule) units(e, is *Entry, now int64) int64 {
	if r.refills(e) {
		return r.Decay(r.Convert(e.Debt, e.P), now-e.Date)
	}
	return r.Convert(is.Debt, e.P)
}

// Convert returns a debt counted in units of 1/p token in the units of the rule, rounded up, and at
// most 2^53: a changed policy keeps what was spent.
func (r *Rule) Convert(debt, p int64) int64 {
	return convertUp(debt, p, r.P)
}

// Product returns a × b, at most 2^53. It expects a ≥ 0 and b ≥ 1.
func Product(a, b int64) int64 {
	if a > MaxExact/b {
		return MaxExact
	}
	return a * b
}
