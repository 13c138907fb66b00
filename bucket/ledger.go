package bucket

// ledger is the state of one owner in memory: the debt of each limit at a date. It holds what the
// packed state in Redis holds and changes as that does.
type ledger struct {
	// last is the date of the debts of known limits, in Unix milliseconds.
	last  int64
	known []debtEntry
	// foreign are limits that the last writer did not know: those of another policy. They are carried
	// unchanged, so that a rolling deploy neither refills nor wipes.
	foreign []foreignEntry
}

type debtEntry struct {
	id   uint16
	p    int64
	debt int64
}

type foreignEntry struct {
	debtEntry
	// last is the date of the debt, and dropAt that at which it is forgotten.
	last, dropAt int64
}

// load sets the debts of the rules as they are now. It changes nothing.
func (l *ledger) load(rules []rule, debts []int64, now int64) {
	elapsed := now - l.last
	for i := range rules {
		rule := &rules[i]
		// The order is that of the last writer, who usually had the same limits.
		if i < len(l.known) && l.known[i].id == rule.id {
			debts[i] = rule.decay(rule.convert(l.known[i].debt, l.known[i].p), elapsed)
		} else {
			debts[i] = l.search(rule, now)
		}
	}
}

func (l *ledger) search(rule *rule, now int64) int64 {
	for i := range l.known {
		if l.known[i].id == rule.id {
			return rule.decay(rule.convert(l.known[i].debt, l.known[i].p), now-l.last)
		}
	}
	for i := range l.foreign {
		f := &l.foreign[i]
		if f.id == rule.id && f.dropAt > now {
			return rule.decay(rule.convert(f.debt, f.p), now-f.last)
		}
	}
	return 0
}

// store replaces the debts of the rules and returns when the ledger is full again, so that it can be
// forgotten. What the rules do not know is carried as foreign; expires is when the ledger would have
// been forgotten until now.
func (l *ledger) store(rules []rule, debts []int64, at, now, expires int64) int64 {
	if !l.matches(rules) || len(l.foreign) > 0 {
		l.carry(rules, now, expires)
	}
	l.last = at
	until := at
	for i := range rules {
		l.known[i].debt = debts[i]
		until = max(until, at+rules[i].wait(debts[i]))
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
		if l.known[i].id != rules[i].id || l.known[i].p != rules[i].p {
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
	var foreign []foreignEntry
	for _, e := range l.known {
		if !knows(e.id) && expires > now {
			foreign = append(foreign, foreignEntry{debtEntry: e, last: l.last, dropAt: expires})
		}
	}
	for _, f := range l.foreign {
		if !knows(f.id) && f.dropAt > now {
			foreign = append(foreign, f)
		}
	}
	l.foreign = foreign
	l.known = make([]debtEntry, len(rules))
	for i := range rules {
		l.known[i] = debtEntry{id: rules[i].id, p: rules[i].p}
	}
}
