package state

import (
	"errors"
	"slices"
)

// errMalformed says that something else is stored, or was sent, than the layout says: another program or a later
// version wrote it.
var errMalformed = errors.New("malformed state")

// ReadStates reads what the limits have spent by now from the state of their owner in a reply, and returns what
// follows it.
func (l *Rules) ReadStates(text string, spends []Spent, now int64) (rest string, ok bool) {
	switch {
	case len(text) >= fastSize && text[0] == fastVersion && l.Fast:
		if text[fastIDs:fastDebts] != l.Packed[:FastLimits*fastIDSize] {
			return "", false
		}
		for i := range l.All {
			spends[i] = Spent{Debt: ReadUint(text[fastDebts+i*fastDebtSize:], fastDebtSize)}
		}
		return text[fastSize:], true
	case len(text) >= mixedHead && text[0] == mixedVersion:
		return l.readMixed(text[mixedHead:], spends, now)
	default:
		return "", false
	}
}

// readMixed reads an entry, or none, for each limit.
func (l *Rules) readMixed(text string, spends []Spent, now int64) (rest string, ok bool) {
	for i := range l.All {
		spends[i] = Spent{}
		if text == "" {
			return "", false
		}
		if Tag(text[0]) == tagNone {
			text = text[tagSize:]
			continue
		}
		e, size := readEntry(text)
		if size == 0 || e.ID != l.All[i].ID {
			return "", false
		}
		spends[i], text = l.All[i].Read(&e, now), text[size:]
	}
	return text, true
}

// ReadOwner reads the state of an owner as it is stored, nil for none.
func ReadOwner(text []byte) (o Owner, err error) {
	if text != nil {
		// No entry is smaller.
		o.Entries = make([]Entry, 0, max(FastLimits, len(text)/smallestEntry))
	}
	return o, o.read(text)
}

// read makes it the owner whose state that is, in the room that its entries have.
func (o *Owner) read(s []byte) error {
	*o = Owner{Entries: o.Entries[:0]}
	o.was.exists = s != nil
	ok := true
	switch {
	case s == nil:
	case len(s) == fastSize && s[0] == fastVersion:
		o.was = readDeadline(s[1], ReadUint(s[2:], DateSize))
		ok = o.readFast(s[2:])
	case len(s) >= mixedHead && s[0] == mixedVersion:
		o.was.until = ReadUint(s[1:], DateSize)
		ok = o.readMixed(s[mixedHead:])
	default:
		ok = false
	}
	if !ok {
		o.Entries = o.Entries[:0]
		return errMalformed
	}
	return nil
}

// readFast reads a state of one date, from that on.
func (o *Owner) readFast(s []byte) (ok bool) {
	date, ids, debts := ReadUint(s, DateSize), s[DateSize:], s[fastDebts-fastIDs+DateSize:]
	for i := range FastLimits {
		id := ids[i*fastIDSize:]
		e := Entry{Date: date, ID: uint16(ReadUint(id, idSize)), Terms: Terms{
			Tag: TokenBucket, P: ReadUint(id[idSize:], fastPSize), R: ReadUint(id[idSize+fastPSize:], fastRSize),
		}}
		// An unused place owes nothing.
		if e.Debt = ReadUint(debts[i*fastDebtSize:], fastDebtSize); e.Debt == 0 {
			continue
		}
		if e.P == 0 || e.R == 0 {
			return false
		}
		o.Entries = append(o.Entries, e)
	}
	return true
}

// readMixed reads the entries of a mixed state.
func (o *Owner) readMixed(s []byte) (ok bool) {
	for len(s) > 0 {
		if Tag(s[0]) == tagNone {
			s = s[tagSize:]
			continue
		}
		e, size := readEntry(s)
		if size == 0 {
			return false
		}
		o.Entries, s = append(o.Entries, e), s[size:]
	}
	return true
}

// readEntry reads an entry and returns its size, zero if it is none.
func readEntry[T ~string | ~[]byte](text T) (e Entry, size int) {
	e.Tag = Tag(text[0])
	if e.Tag == leasedBucket {
		return readLeased(text)
	}
	size = tagSize + idSize + DateSize + lengthSize + DebtSize
	if e.Tag == TokenBucket || e.Tag == SlidingWindow {
		size += DebtSize
	}
	if e.Tag == tagNone || e.Tag > YearWindow || len(text) < size {
		return Entry{}, 0
	}
	e.ID = uint16(ReadUint(text[tagSize:], idSize))
	text = text[tagSize+idSize:]
	date, text := ReadUint(text, DateSize), text[DateSize:]
	// A denominator and a length take as much room.
	length, text := ReadUint(text, lengthSize), text[lengthSize:]
	switch e.Tag {
	case TokenBucket:
		e.Date, e.P, e.R, e.Debt = date, length, ReadUint(text, DebtSize), ReadUint(text[DebtSize:], DebtSize)
		if e.R == 0 || e.R > MaxExact || e.Debt > MaxExact {
			return Entry{}, 0
		}
	default:
		e.End, e.Length, e.Debt = date, length, ReadUint(text, DebtSize)
		most := int64(MaxExact)
		if e.Tag == SlidingWindow {
			e.Previous = ReadUint(text[DebtSize:], DebtSize)
			most /= max(1, length)
		}
		if e.Debt > most || e.Previous > most-e.Debt {
			return Entry{}, 0
		}
	}
	if length == 0 {
		return Entry{}, 0
	}
	return e, size
}

// append appends the entry as it is stored.
func (e *Entry) append(b []byte) []byte {
	if e.Held != nil {
		return e.appendLeased(b)
	}
	b = AppendUint(append(b, byte(e.Tag)), idSize, int(e.ID))
	if e.Tag == TokenBucket {
		b = AppendUint(AppendUint(b, DateSize, e.Date), lengthSize, e.P)
		return AppendUint(AppendUint(b, DebtSize, e.R), DebtSize, e.Debt)
	}
	b = AppendUint(AppendUint(AppendUint(b, DateSize, e.End), lengthSize, e.Length), DebtSize, e.Debt)
	if e.Tag == SlidingWindow {
		b = AppendUint(b, DebtSize, e.Previous)
	}
	return b
}

// Append appends the state as a reply shows it to who knows the rules.
func (o *Owner) Append(b []byte, l *Rules, now int64) []byte {
	if date, debts, _, ok := o.fast(l, now); ok {
		return appendFast(b, l, o.is.code, date, debts)
	}
	b = AppendUint(append(b, mixedVersion), DateSize, o.is.until)
	for i := range l.All {
		if e := o.Find(l.All[i].ID, i); e != nil && e.counts(now) {
			b = e.append(b)
		} else {
			b = append(b, byte(tagNone))
		}
	}
	return b
}

// Spent sets what the rules have spent as who reads [Owner.Append] finds it.
func (o *Owner) Spent(l *Rules, spends []Spent, now int64) {
	if _, debts, _, ok := o.fast(l, now); ok {
		for i := range l.All {
			spends[i] = Spent{Debt: debts[i]}
		}
		return
	}
	for i := range l.All {
		spends[i] = Spent{}
		if e := o.Find(l.All[i].ID, i); e != nil && e.counts(now) {
			spends[i] = l.All[i].Read(e, now)
		}
	}
}

// appendFast appends a state of one date.
func appendFast(b []byte, l *Rules, code byte, date int64, debts [FastLimits]int64) []byte {
	b = AppendUint(append(b, fastVersion, code), DateSize, date)
	b = append(b, l.Packed[:FastLimits*fastIDSize]...)
	for _, debt := range debts {
		b = AppendUint(b, fastDebtSize, debt)
	}
	return b
}

// Pack returns the state as it is stored after a call of these rules: their entries come first.
func (o *Owner) Pack(l *Rules, now int64) []byte {
	return o.appendStored(make([]byte, 0, max(fastSize, mixedHead+max(len(l.All), len(o.Entries))*tokenSize)), l, now)
}

func (o *Owner) appendStored(b []byte, l *Rules, now int64) []byte {
	if date, debts, others, ok := o.fast(l, now); ok && !others {
		return appendFast(b, l, o.is.code, date, debts)
	}
	b = AppendUint(append(b, mixedVersion), DateSize, o.is.until)
	for i := range l.All {
		if e := o.Find(l.All[i].ID, i); e != nil && e.counts(now) {
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
