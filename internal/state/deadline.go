package state

// Setting the expiry of a key costs Redis more than the rest of a write. So it is set with some room to spare, the state
// says when it is, and while that is late enough, and not too late, a write leaves it alone. Whoever was charged once
// only has no room to spare: most owners who come once do not come again.

const (
	// The deadline of a state of one date is a code of one byte: a unit of 2^(codeShift + code/8) ms, and which of the
	// next codeSteps multiples of it after the date. A smaller code stands for none.
	codeShift = 12
	codeSteps = 8
	// unitShift is that of the smallest unit, 8.2 s.
	unitShift = codeShift + 1
	// unitsLeft is how many units it takes at most until all is full: the next deadline after that is within codeSteps.
	unitsLeft = codeSteps - 1
	// deadlineRoom is how much longer than twice the time until all is full a key may live, in milliseconds.
	deadlineRoom = 1 << unitShift
	// endOfDates is the end of the dates that a state can say.
	endOfDates = 1 << (8 * DateSize)
)

// deadline is what a state says of the expiry of its key.
type deadline struct {
	// exists says that there is a key.
	exists bool
	// until is when the key expires, in Unix milliseconds, or zero if the state does not say it.
	until int64
	// code is until as a state of one date says it, and date the date of that state.
	code byte
	date int64
}

// readDeadline reads that of a state of one date.
func readDeadline(code byte, date int64) deadline {
	d := deadline{exists: true, code: code, date: date}
	if code < codeSteps {
		return d
	}
	unit := int64(1) << (codeShift + code/codeSteps)
	d.until = date - date%(codeSteps*unit) + int64(code%codeSteps)*unit
	if d.until <= date {
		d.until += codeSteps * unit
	}
	return d
}

// holds reports whether the key lives long enough if all is full at a time, and not too long, judged by the date of the
// state that is written. fast says that this is one of one date.
func (d *deadline) holds(gone, date int64, fast bool) bool {
	return d.until >= gone && d.until-gone <= gone-date+deadlineRoom && (!fast || d.code >= codeSteps && date >= d.date)
}

// next is a deadline after a time at which all is full.
func next(gone, date int64) deadline {
	shift := unitShift
	for unitsLeft<<shift <= gone-date {
		shift++
	}
	d := deadline{exists: true, until: (gone>>shift + 1) << shift, date: date}
	d.code = byte((shift-codeShift)*codeSteps) + byte(d.until>>shift%codeSteps)
	return d
}

// expire sets what the state says of the expiry of its key, and returns the new one, or zero if that stays as it is.
func (o *Owner) expire(l *Rules, gone, now int64) int64 {
	date, _, others, fast := o.fast(l, now)
	if fast = fast && !others; !fast {
		date = now
	}
	expiry := int64(0)
	switch {
	case o.was.holds(gone, date, fast):
		o.is = o.was
	case o.was.exists:
		o.is = next(gone, date)
		expiry = o.is.until
	default:
		o.is, expiry = deadline{until: gone}, gone
	}
	if !fast {
		o.is.code = 0
	}
	if o.is.until >= endOfDates {
		o.is.until = 0
	}
	return expiry
}
