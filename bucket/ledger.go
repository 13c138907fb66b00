package bucket

// ledger is the state of one owner in memory: what each limit has spent. It holds what the packed
// state in Redis holds and changes as that does.
type ledger struct {
	// last is the date of the debts of known limits, in Unix milliseconds.
	last  int64
	known []storedLimit
	// foreign are limits that the last writer did not know: those of another policy. They are carried
	// unchanged, so that a rolling deploy neither refills nor wipes; only a date that a clock which was
	// set back has left too far in the future becomes the present one.
	foreign []foreignLimit
}

type foreignLimit struct {
	storedLimit
	// last is the date of the debt, and dropAt that at which it is forgotten.
	last, dropAt int64
}

// load sets what the rules have spent by now. It changes nothing. moved says that the end of a window
// was changed, or that a foreign limit lies too far in the future, so that even a call that changes nothing else has to write it. converted says
// that a limit was charged as another kind since, or that the end of its window was changed.
func (l *ledger) load(rules []rule, spends []spent, now int64) (moved, converted bool) {
	for i := range rules {
		rule := &rules[i]
		var adjusted, other bool
		// The order is that of the last writer, who usually had the same limits.
		if i < len(l.known) && l.known[i].id == rule.id {
			spends[i], adjusted = rule.adopt(&l.known[i], l.last, now)
			other = !rule.continues(&l.known[i])
		} else {
			spends[i], adjusted, other = l.search(rule, now)
		}
		moved, converted = moved || adjusted, converted || adjusted || other
	}
	for i := range l.foreign {
		f := &l.foreign[i]
		moved = moved || f.dropAt > now && reachable(f.last, now) != f.last
	}
	return moved, converted
}

func (l *ledger) search(rule *rule, now int64) (s spent, moved, other bool) {
	for i := range l.known {
		if l.known[i].id == rule.id {
			s, moved = rule.adopt(&l.known[i], l.last, now)
			return s, moved, !rule.continues(&l.known[i])
		}
	}
	for i := range l.foreign {
		f := &l.foreign[i]
		if f.id == rule.id && f.dropAt > now {
			s, moved = rule.adopt(&f.storedLimit, f.last, now)
			return s, moved, !rule.continues(&f.storedLimit)
		}
	}
	return spent{}, false, false
}

// store replaces what the rules have spent and returns when the ledger is full again, so that it can
// be forgotten. What the rules do not know is carried as foreign; expires is when the ledger would
// have been forgotten until now.
func (l *ledger) store(rules []rule, spends []spent, at, now, expires int64) int64 {
	if !l.matches(rules) || len(l.foreign) > 0 {
		l.carry(rules, now, expires)
	}
	l.last = at
	until := int64(0)
	for i := range rules {
		l.known[i].spent = spends[i]
		until = max(until, rules[i].expiry(spends[i], at))
	}
	for i := range l.foreign {
		until = max(until, l.foreign[i].dropAt)
	}
	return until
}

// matches reports whether the known limits are exactly the rules.
func (l *ledger) matches(rules []rule) bool {
	if len(l.known) != len(rules) {
		return false
	}
	for i := range rules {
		if l.known[i].id != rules[i].id || l.known[i].p != rules[i].storedP() || l.known[i].length != rules[i].slides() {
			return false
		}
	}
	return true
}

// carry makes the rules the known limits, and those that are not among them foreign.
func (l *ledger) carry(rules []rule, now, expires int64) {
	knows := func(id uint16) bool {
		for i := range rules {
			if rules[i].id == id {
				return true
			}
		}
		return false
	}
	var foreign []foreignLimit
	for _, e := range l.known {
		if !knows(e.id) && expires > now {
			foreign = append(foreign, foreignLimit{storedLimit: e, last: reachable(l.last, now), dropAt: expires})
		}
	}
	for _, f := range l.foreign {
		if !knows(f.id) && f.dropAt > now {
			f.last = reachable(f.last, now)
			foreign = append(foreign, f)
		}
	}
	l.foreign = foreign
	l.known = make([]storedLimit, len(rules))
	for i := range rules {
		l.known[i] = storedLimit{id: rules[i].id, p: rules[i].storedP(), length: rules[i].slides()}
	}
}
