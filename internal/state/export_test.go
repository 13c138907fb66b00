package state

// Quotient divides as the arithmetic does.
func Quotient(a, by int64) (quotient, rest int64) {
	d := newDivisor(by)
	return d.quotient(a)
}

// PackFast packs entries of the rules as a state of one date.
func PackFast(o *Owner, l *Rules, date int64) []byte {
	var debts [FastLimits]int64
	for i := range l.All {
		if e := o.Find(l.All[i].ID, i); e != nil {
			debts[i] = e.Debt
		}
	}
	return appendFast(nil, l, date, debts)
}

// PackMixed packs entries in their order.
func PackMixed(o *Owner) []byte {
	b := []byte{mixedVersion}
	for i := range o.Entries {
		b = o.Entries[i].append(b)
	}
	return b
}

// Pack packs a record.
func (r *Record) Pack() []byte { return r.pack() }

// FitsFast reports whether fast.lua takes the state of such limits.
func FitsFast(l *Rules, text []byte, now int64) bool {
	var debts [FastLimits]int64
	return l.Fast && l.ReadTokens(text, debts[:], now)
}
