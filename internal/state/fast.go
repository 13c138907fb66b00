package state

import "encoding/binary"

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

// readEntries reads a state in which each limit has an entry, in the order of the rules.
func (l *Rules) readEntries(stored []byte, debts []int64, now int64) bool {
	if len(stored) != mixedHead+tokenSize*len(l.All) || stored[0] != mixedVersion {
		return false
	}
	for i := range l.All {
		r, e := &l.All[i], stored[mixedHead+i*tokenSize:]
		date := uintBefore(e, tokenDateEnd, DateSize)
		if Tag(e[0]) != TokenBucket || r.Tag != TokenBucket || r.Soft || binary.BigEndian.Uint16(e[tagSize:]) != r.ID ||
			uintBefore(e, tokenPEnd, lengthSize) != r.P || uintBefore(e, tokenREnd, DebtSize) != r.R || date > now {
			return false
		}
		debts[i] = r.Decay(uintBefore(e, tokenSize, DebtSize), now-date)
	}
	return true
}

// WriteTokens returns a state that [Rules.ReadTokens] could read with the debts as they are now, of which those have a bit
// in changed that are others. None is zero unless the limits are fast ones. It writes over the old state if there is one.
func (l *Rules) WriteTokens(stored []byte, debts []int64, changed uint64, now int64) []byte {
	if stored == nil {
		var all [FastLimits]int64
		copy(all[:], debts)
		return appendFast(make([]byte, 0, fastSize), l, 0, now, all)
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
	return stored
}
