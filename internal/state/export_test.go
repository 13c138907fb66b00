package state

import "slices"

// Quotient divides as the arithmetic does.
func Quotient(a, by int64) (quotient, rest int64) {
	d := newDivisor(by)
	return d.quotient(a)
}

// SetDeadline sets what a state that is packed says of the expiry of its key: of one date by the code, of a mixed one by
// the date.
func (o *Owner) SetDeadline(code byte, until int64) { o.was.code, o.was.until = code, until }

// NextDeadline returns the code of the deadline after a time at which all is full.
func NextDeadline(gone, date int64) byte {
	d := next(gone, date)
	return d.code
}

// PackFast packs entries of the rules as a state of one date.
func PackFast(o *Owner, l *Rules, date int64) []byte {
	var debts [FastLimits]int64
	for i := range l.All {
		if e := o.Find(l.All[i].ID, i); e != nil {
			debts[i] = e.Debt
		}
	}
	return appendFast(nil, l, o.was.code, date, debts)
}

// PackMixed packs entries in their order.
func PackMixed(o *Owner) []byte {
	b := AppendUint([]byte{mixedVersion}, DateSize, o.was.until)
	for i := range o.Entries {
		b = o.Entries[i].append(b)
	}
	return b
}

// PackInOrder packs an entry or none for each rule, and then the others.
func PackInOrder(o *Owner, l *Rules) []byte {
	b := AppendUint([]byte{mixedVersion}, DateSize, o.was.until)
	for i := range l.All {
		if e := o.Find(l.All[i].ID, i); e != nil {
			b = e.append(b)
		} else {
			b = append(b, byte(tagNone))
		}
	}
	for i := range o.Entries {
		if e := &o.Entries[i]; !slices.ContainsFunc(l.All, func(r Rule) bool { return r.ID == e.ID }) {
			b = e.append(b)
		}
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

// LeaseForgotten is after how long what is held is nobody's.
const LeaseForgotten = leaseForgotten

// LeaseScale is how many units of its leased bucket one of the limit is.
func (r *Rule) LeaseScale() int64 { return r.scale() }
