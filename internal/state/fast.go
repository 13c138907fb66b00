package state

import (
	"encoding/binary"
	"slices"
)

// A stored state of token buckets alone can be read and written where it stands, without an [Owner].

// tokenSize is that of the entry of a token bucket, and the others are where its parts end.
const (
	tokenDateEnd = tagSize + idSize + DateSize
	tokenPEnd    = tokenDateEnd + lengthSize
	tokenREnd    = tokenPEnd + DebtSize
	tokenSize    = tokenREnd + DebtSize
)

// uintBefore reads the size bytes before the end, big endian, of which there are 8 at least.
func uintBefore(b []byte, end, size int) int64 {
	return int64(binary.BigEndian.Uint64(b[end-8:]) & (1<<(8*size) - 1))
}

// putBefore writes them.
func putBefore(b []byte, end, size int, n int64) {
	old := binary.BigEndian.Uint64(b[end-8:])
	binary.BigEndian.PutUint64(b[end-8:], old>>(8*size)<<(8*size)|uint64(n))
}

// ReadTokens sets what the limits owe by now from the state of their owner as it is stored, nil for none. It reports
// whether it could: only token buckets that are not soft can be read so, and only a state of theirs that nothing else stands
// in, and whose dates have come.
func (l *Rules) ReadTokens(stored []byte, debts []int64, now int64) bool {
	switch {
	case !l.Fast:
		return l.readEntries(stored, debts, now)
	case stored == nil:
		clear(debts)
		return true
	case len(stored) != fastSize || stored[0] != fastVersion || string(stored[fastIDs:fastDebts]) != l.Packed[:FastLimits*fastIDSize]:
		return false
	}
	elapsed := now - int64(binary.BigEndian.Uint64(stored)&(1<<(8*DateSize)-1))
	if elapsed < 0 {
		return false
	}
	for i := range l.All {
		debts[i] = l.All[i].Decay(uintBefore(stored, fastDebts+(i+1)*fastDebtSize, fastDebtSize), elapsed)
	}
	return true
}

// readEntries reads a state in which each limit has an entry or none, in the order of the rules.
func (l *Rules) readEntries(stored []byte, debts []int64, now int64) bool {
	if stored != nil && (len(stored) < mixedHead || stored[0] != mixedVersion) {
		return false
	}
	rest := stored[min(mixedHead, len(stored)):]
	for i := range l.All {
		r := &l.All[i]
		if r.Tag != TokenBucket || r.Soft {
			return false
		}
		if debts[i] = 0; stored == nil {
			continue
		}
		e, ok := nextToken(&rest)
		if !ok {
			return false
		}
		if e == nil {
			continue
		}
		date := uintBefore(e, tokenDateEnd, DateSize)
		if binary.BigEndian.Uint16(e[tagSize:]) != r.ID || uintBefore(e, tokenPEnd, lengthSize) != r.P ||
			uintBefore(e, tokenREnd, DebtSize) != r.R || date > now {
			return false
		}
		debts[i] = r.Decay(uintBefore(e, tokenSize, DebtSize), now-date)
	}
	return len(rest) == 0
}

// nextToken takes the entry of a token bucket off the front of the rest of a state, nil if the limit has none. It returns false
// if something else stands there.
func nextToken(rest *[]byte) (e []byte, ok bool) {
	b := *rest
	switch {
	case len(b) > 0 && Tag(b[0]) == tagNone:
		*rest = b[tagSize:]
		return nil, true
	case len(b) < tokenSize || Tag(b[0]) != TokenBucket:
		return nil, false
	}
	*rest = b[tokenSize:]
	return b[:tokenSize:tokenSize], true
}

// WriteTokens writes the debts as they are now over a state that [Rules.ReadTokens] has read, of which those have a bit in changed
// that are others. It returns false, and changes nothing, if they do not fit there: [Rules.AppendTokens] makes the state that they
// need.
func (l *Rules) WriteTokens(stored []byte, debts []int64, changed uint64, now int64) bool {
	if !l.fits(stored, debts) {
		return false
	}
	for i, debt := range debts {
		switch {
		case l.Fast:
			putBefore(stored, fastDebts+(i+1)*fastDebtSize, fastDebtSize, debt)
		case changed>>i&1 == 1:
			e := stored[mixedHead+i*tokenSize:]
			putBefore(e, tokenDateEnd, DateSize, now)
			putBefore(e, tokenSize, DebtSize, debt)
		}
	}
	if l.Fast {
		binary.BigEndian.PutUint64(stored, fastVersion<<56|uint64(now))
	}
	return true
}

// fits reports whether a state has room for the debts and for nothing else: of entries it has one for each.
func (l *Rules) fits(stored []byte, debts []int64) bool {
	return stored != nil && (l.Fast || len(stored) == mixedHead+tokenSize*len(l.All) && !slices.Contains(debts, 0))
}

// AppendTokens appends a state with the debts in the place of one that [Rules.ReadTokens] has read, nil for none. What is not
// changed keeps its entry.
func (l *Rules) AppendTokens(b, stored []byte, debts []int64, changed uint64, now int64) []byte {
	if l.Fast {
		var all [FastLimits]int64
		copy(all[:], debts)
		return appendFast(b, l, 0, now, all)
	}
	b = AppendUint(append(b, mixedVersion), DateSize, 0)
	rest := stored[min(mixedHead, len(stored)):]
	for i, debt := range debts {
		was, _ := nextToken(&rest)
		switch r := &l.All[i]; {
		case debt == 0:
			b = append(b, byte(tagNone))
		case changed>>i&1 == 0 && was != nil:
			b = append(b, was...)
		default:
			e := Entry{ID: r.ID, Terms: Terms{Tag: TokenBucket, P: r.P, R: r.R}, Date: now, Debt: debt}
			b = e.append(b)
		}
	}
	return b
}
