package bucket

// The versions and sizes of the state of an owner, see state.lua.
const (
	versionUsual = 3
	versionMixed = 4
	// The sizes of what stands in the state of a usual owner: usualIDSize is that of an id with its p and r.
	usualPSize    = 4
	usualRSize    = 2
	usualIDSize   = idSize + usualPSize + usualRSize
	usualDebtSize = 5
	usualSize     = 1 + dateSize + usualLimits*(usualIDSize+usualDebtSize)
	// The sizes of what stands in an entry.
	tagSize    = 1
	idSize     = 2
	lengthSize = 5
)

// The tags of entries, see state.lua. Zero stands for no entry.
const (
	tagNone = iota
	tagToken
	tagFixed
	tagSliding
	tagHour
	tagDay
	tagMonth
	tagYear
)

// tagOf returns the tag of the entries of a kind of limit.
func tagOf(kind WindowKind) byte {
	switch kind {
	case FixedWindow:
		return tagFixed
	case SlidingWindow:
		return tagSliding
	case HourWindow:
		return tagHour
	case DayWindow:
		return tagDay
	case MonthWindow:
		return tagMonth
	case YearWindow:
		return tagYear
	default:
		return tagToken
	}
}

// kindOf returns the kind of limit that entries of a tag are of, false if there is none.
func kindOf(tag byte) (WindowKind, bool) {
	for kind := TokenBucket; kind <= YearWindow; kind++ {
		if tagOf(kind) == tag {
			return kind, true
		}
	}
	return 0, false
}

// readState reads what the limits of an owner have spent by now and returns the rest of the reply.
func (l *Limits) readState(text string, spends []spent, now int64) (rest string, err error) {
	switch {
	case len(text) >= usualSize && text[0] == versionUsual && l.usual:
		return l.readUsual(text, spends)
	case text != "" && text[0] == versionMixed:
		return l.readMixed(text[1:], spends, now)
	default:
		return "", errReply
	}
}

// readUsual reads the state of a usual owner, which is one of these limits.
func (l *Limits) readUsual(text string, spends []spent) (rest string, err error) {
	packed, _ := l.packed.(string)
	const ids = 1 + dateSize
	const debts = ids + usualLimits*usualIDSize
	if text[ids:debts] != packed[:usualLimits*usualIDSize] {
		return "", errReply
	}
	for i := range l.rules {
		spends[i] = spent{debt: readUint(text[debts+i*usualDebtSize:], usualDebtSize)}
	}
	return text[usualSize:], nil
}

// readMixed reads an entry, or none, for each limit.
func (l *Limits) readMixed(text string, spends []spent, now int64) (rest string, err error) {
	for i := range l.rules {
		spends[i] = spent{}
		if text == "" {
			return "", errReply
		}
		if text[0] == tagNone {
			text = text[tagSize:]
			continue
		}
		e, size := readEntry(text)
		if size == 0 || e.id != l.rules[i].id {
			return "", errReply
		}
		spends[i], text = l.rules[i].read(&e, now), text[size:]
	}
	return text, nil
}

// readEntry reads an entry and returns its size, zero if it is none.
func readEntry(text string) (e storedLimit, size int) {
	kind, known := kindOf(text[0])
	size = tagSize + idSize + dateSize + lengthSize + debtSize
	if kind == TokenBucket || kind == SlidingWindow {
		size += debtSize
	}
	if !known || len(text) < size {
		return storedLimit{}, 0
	}
	e.id, e.kind = uint16(readUint(text[tagSize:], idSize)), kind
	text = text[tagSize+idSize:]
	date, text := readUint(text, dateSize), text[dateSize:]
	// A denominator and a length take as much room.
	length, text := readUint(text, lengthSize), text[lengthSize:]
	switch kind {
	case TokenBucket:
		e.date, e.p, e.r, e.debt = date, length, readUint(text, debtSize), readUint(text[debtSize:], debtSize)
		if e.r == 0 || e.r > maxExact || e.debt > maxExact {
			return storedLimit{}, 0
		}
	default:
		e.end, e.length, e.debt = date, length, readUint(text, debtSize)
		most := int64(maxExact)
		if kind == SlidingWindow {
			e.previous = readUint(text[debtSize:], debtSize)
			most /= max(1, length)
		}
		if e.debt > most || e.previous > most-e.debt {
			return storedLimit{}, 0
		}
	}
	if length == 0 {
		return storedLimit{}, 0
	}
	return e, size
}
