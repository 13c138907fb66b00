package state

import "slices"

// Owner is the state of one owner: what each limit has spent.
type Owner struct {
	// Entries has one for each limit that has spent anything, also for those of other policies, and of a state of one
	// date in memory one for each limit.
	Entries []Entry

	// was is what the state that was read says of the expiry of its key, and is what the one says that is written.
	was, is deadline
}

// Find returns the entry of a limit, nil if it has none. The order is usually that of the last writer, who usually
// had the same limits: i is tried first.
func (o *Owner) Find(id uint16, i int) *Entry {
	if i < len(o.Entries) && o.Entries[i].ID == id {
		return &o.Entries[i]
	}
	for i := range o.Entries {
		if o.Entries[i].ID == id {
			return &o.Entries[i]
		}
	}
	return nil
}

// Load sets what the rules have spent by now. It changes nothing. ahead says that an entry lies so far in the
// future that even a call that changes nothing else has to write it.
func (o *Owner) Load(rules []Rule, spends []Spent, now int64) (ahead bool) {
	for i := range o.Entries {
		// An entry of no debt needs no new date.
		if _, far := o.Entries[i].farAhead(now); far && (o.Entries[i].Debt+o.Entries[i].Previous > 0 || o.Entries[i].Held != nil) {
			ahead = true
		}
	}
	for i := range rules {
		spends[i] = Spent{}
		if e := o.Find(rules[i].ID, i); e != nil {
			anew, _ := e.farAhead(now)
			spends[i] = rules[i].Read(&anew, now)
		}
	}
	return ahead
}

// refresh drops what counts nothing any more, and dates anew what lies too far in the future.
func (o *Owner) refresh(now int64) {
	left := o.Entries[:0]
	for i := range o.Entries {
		if anew, _ := o.Entries[i].farAhead(now); anew.counts(now) {
			left = append(left, anew)
		}
	}
	o.Entries = left
}

// Store replaces what those of the rules have spent that have a bit in changed, and returns when nothing counts
// any more, so that the owner can be forgotten. All else it leaves as it is, but for the date of a state of one date.
func (o *Owner) Store(l *Rules, spends []Spent, changed uint64, now int64) int64 {
	o.refresh(now)
	for i := range l.All {
		if changed>>i&1 == 1 {
			o.set(&l.All[i], i, &spends[i], now)
		}
	}
	o.oneDate(l, now)
	until := int64(0)
	for i := range o.Entries {
		until = max(until, o.Entries[i].Gone())
	}
	return until
}

// set replaces the entry of a rule. The others keep their order.
func (o *Owner) set(r *Rule, i int, s *Spent, now int64) {
	e := o.Find(r.ID, i)
	fresh := r.Entry(s, e, now)
	switch {
	case (fresh.Debt+fresh.Previous > 0 || fresh.Held != nil) && e != nil:
		*e = fresh
	case fresh.Debt+fresh.Previous > 0 || fresh.Held != nil:
		o.Entries = append(o.Entries, fresh)
	case e != nil:
		o.Entries = slices.DeleteFunc(o.Entries, func(e Entry) bool { return e.ID == r.ID })
	}
}

// fast returns the debts in the order of the rules, and their one date, if they fit the state of a fast owner. It is
// the date of the call, or of an entry that lies ahead after the clock was set back, and each debt what it is at the
// time of the call. others says that there are entries that no rule knows.
func (o *Owner) fast(l *Rules, now int64) (date int64, debts [FastLimits]int64, others, ok bool) {
	if !l.Fast {
		return 0, debts, false, false
	}
	date = now
	found := 0
	for i := range l.All {
		e := o.Find(l.All[i].ID, i)
		if e == nil {
			continue
		}
		found++
		if !e.counts(now) {
			continue
		}
		if debts[i] = e.At(now).Debt; !l.All[i].continues(e, now) || debts[i] > maxFastDebt {
			return 0, debts, false, false
		}
		date = max(date, e.Date)
	}
	return date, debts, found < len(o.Entries), true
}

// oneDate gives all entries one date, and the order of the rules, if they are those of a fast owner.
func (o *Owner) oneDate(l *Rules, now int64) {
	date, debts, others, ok := o.fast(l, now)
	if !ok || others {
		return
	}
	o.Entries = o.Entries[:0]
	for i := range l.All {
		o.Entries = append(o.Entries, Entry{ID: l.All[i].ID, Terms: l.All[i].Terms(now), Date: date, Debt: debts[i]})
	}
}
