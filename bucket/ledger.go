package bucket

// ledger is the state of one owner in memory: what each limit has spent. It holds what the packed
// state in Redis holds and changes as that does.
type ledger struct {
	// entries has one for each limit that has spent anything, also for those of other policies.
	entries []storedLimit
}

// find returns the entry of a limit, nil if it has none. The order is usually that of the last writer, who usually
// had the same limits: i is tried first.
func (l *ledger) find(id uint16, i int) *storedLimit {
	if i < len(l.entries) && l.entries[i].id == id {
		return &l.entries[i]
	}
	for i := range l.entries {
		if l.entries[i].id == id {
			return &l.entries[i]
		}
	}
	return nil
}

// load sets what the rules have spent by now. It changes nothing. ahead says that an entry lies so far in the
// future that even a call that changes nothing else has to write it.
func (l *ledger) load(rules []rule, spends []spent, now int64) (ahead bool) {
	for i := range l.entries {
		// A usual owner has an entry for each limit, also of no debt: that one needs no new date.
		if _, far := l.entries[i].farAhead(now); far && l.entries[i].debt+l.entries[i].previous > 0 {
			ahead = true
		}
	}
	for i := range rules {
		spends[i] = spent{}
		if e := l.find(rules[i].id, i); e != nil {
			anew, _ := e.farAhead(now)
			spends[i] = rules[i].read(&anew, now)
		}
	}
	return ahead
}

// store replaces what those of the rules have spent that have a bit in changed, and returns when the ledger is full
// again, so that it can be forgotten. All else it leaves as it is.
func (l *ledger) store(limits *Limits, spends []spent, changed uint64, now int64) int64 {
	left := l.entries[:0]
	for i := range l.entries {
		if anew, _ := l.entries[i].farAhead(now); anew.debt+anew.previous > 0 && anew.gone() > now {
			left = append(left, anew)
		}
	}
	l.entries = left
	for i := range limits.rules {
		if changed>>i&1 == 1 {
			l.set(&limits.rules[i], i, &spends[i], now)
		}
	}
	l.oneDate(limits, now)
	until := int64(0)
	for i := range l.entries {
		until = max(until, l.entries[i].gone())
	}
	return until
}

// set replaces the entry of a rule.
func (l *ledger) set(rule *rule, i int, s *spent, now int64) {
	e := l.find(rule.id, i)
	fresh := rule.entry(s, e, now)
	switch {
	case fresh.debt+fresh.previous > 0 && e != nil:
		*e = fresh
	case fresh.debt+fresh.previous > 0:
		l.entries = append(l.entries, fresh)
	case e != nil:
		*e = l.entries[len(l.entries)-1]
		l.entries = l.entries[:len(l.entries)-1]
	}
}

// oneDate gives all entries one date, and the order of the rules, if they are those of a usual owner: such a state has
// one date in Redis. It is that of the call, or of an entry that lies ahead after the clock was set back, and each
// debt what it is at the time of the call.
func (l *ledger) oneDate(limits *Limits, now int64) {
	if !limits.usual {
		return
	}
	date := now
	var usual [usualLimits]storedLimit
	found := 0
	for i := range limits.rules {
		rule := &limits.rules[i]
		usual[i] = storedLimit{id: rule.id, terms: rule.terms(now)}
		e := l.find(rule.id, i)
		if e == nil {
			continue
		}
		if usual[i].debt = e.at(now).debt; !rule.continues(e, now) || usual[i].debt > maxUsualDebt {
			return
		}
		date = max(date, e.date)
		found++
	}
	if found < len(l.entries) {
		return
	}
	l.entries = append(l.entries[:0], usual[:len(limits.rules)]...)
	for i := range l.entries {
		l.entries[i].date = date
	}
}
