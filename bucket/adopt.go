package bucket

// storedLimit is one limit as it is stored: of a token bucket its debt in units of 1/p token, of a
// window, whose p is 0, what was used.
type storedLimit struct {
	id uint16
	p  int64
	// length is that of a sliding window in milliseconds, and 0 of any other limit.
	length int64
	spent
}

// storedP returns the p under which the limit is stored.
func (r *rule) storedP() int64 {
	if r.kind == TokenBucket {
		return r.p
	}
	return 0
}

// slides returns the length under which a sliding window is stored.
func (r *rule) slides() int64 {
	if r.kind == SlidingWindow {
		return r.r
	}
	return 0
}

// weigh returns what has been used in a sliding window of some length that is one no longer: what
// counts of the window before as well.
func weigh(s spent, length, now int64) spent {
	if s.end <= now {
		s = spent{previous: s.debt, end: s.end + length}
	}
	covered := max(0, min(s.end-now, length))
	return spent{debt: s.debt + ceilDiv(s.previous*covered, length), end: s.end}
}

// continues says whether what is stored was charged as a limit of the same kind.
func (r *rule) continues(e *storedLimit) bool {
	return (e.p > 0) == (r.kind == TokenBucket) && e.length == r.slides()
}

// adopt returns what a limit has spent by now, from what is stored of it, a debt as of a date. The
// stored limit may be of another policy, which keeps what was spent:
//
//   - a token bucket of another refill has the same tokens owed;
//   - what a token bucket owed counts in a window as spent at its date;
//   - what was used in a window that is still open is owed by a token bucket from now on;
//   - a sliding window that becomes anything else, also one of another length, has used what it weighs;
//   - a window that is open keeps what was used, and ends when the calendar says, or at the latest
//     a new Period from now.
//
// moved says that the end of a window was changed, also by a clock that was set back: even a call that
// changes nothing else has to write it.
func (r *rule) adopt(e *storedLimit, date, now int64) (s spent, moved bool) {
	s = e.spent
	if e.length > 0 && e.length != r.slides() {
		s = weigh(s, e.length, now)
	}
	if r.kind == TokenBucket {
		if e.p > 0 {
			return spent{debt: r.decay(r.convert(e.debt, e.p), now-date)}, false
		}
		if s.end > now {
			return spent{debt: min(s.debt, 2*r.capacity) * r.p}, false
		}
		return spent{}, false
	}
	var window span
	if r.calendar != nil {
		window = r.calendar.around(now)
	}
	if e.p > 0 {
		s = spent{debt: ceilDiv(e.debt, e.p), end: date + r.r}
		if r.calendar != nil {
			s.end = 0
			if date >= window.from {
				s.end = window.to
			}
		}
	}
	s.debt, s.previous = min(s.debt, 2*r.capacity), min(s.previous, 2*r.capacity)
	return r.roll(s, window, now)
}

// roll moves what was spent in a window to the window of the time.
func (r *rule) roll(s spent, window span, now int64) (_ spent, moved bool) {
	if r.calendar != nil {
		// A clock that was set back into an earlier window finds what a later one has used: ending that early
		// would admit its capacity again.
		if s.end > now && s.end != window.to && s.end != window.later[0] && s.end != window.later[1] {
			s.end, moved = window.to, true
		}
	} else if s.end-now > r.r+maxAhead {
		s.end, moved = now+r.r, true
	}
	if s.end <= now {
		if r.kind == SlidingWindow && s.end+r.r > now {
			s = spent{previous: s.debt, end: s.end + r.r}
		} else {
			s = spent{}
		}
	}
	if r.kind != SlidingWindow {
		s.previous = 0
	}
	if s.debt+s.previous == 0 {
		s.end = 0
	}
	return s, moved
}
