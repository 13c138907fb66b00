package state

import (
	"encoding/binary"
	"math"
)

// Rules are the limits of one owner, and what the scripts are told of them. They are made by [NewRules] and
// never change.
type Rules struct {
	All []Rule
	// Fast says that a state of one date has room for the limits: two to four token buckets, none of them soft, whose
	// numbers fit. One by itself takes less as an entry.
	Fast bool
	// Soft says that one of the limits is, so that fast.lua does not know them.
	Soft bool
	// Columns are the places for limits in Packed.
	Columns int
	// Sum is a hash of the ids, in their order.
	Sum uint32
	// Calendars are the windows of those that have the calendar's.
	Calendars []Windows
	// Packed is the argument, see state.lua.
	Packed string
}

// NewRules keeps the rules, each made by [NewRule].
func NewRules(all []Rule) *Rules {
	l := &Rules{All: all, Fast: len(all) != 1 && len(all) <= FastLimits, Columns: len(all)}
	for i := range all {
		r := &all[i]
		l.Sum = mix(l.Sum, uint32(r.ID)+1)
		l.Soft = l.Soft || r.Soft
		l.Fast = l.Fast && r.Tag == TokenBucket && !r.Soft && r.P <= maxFastP && r.R <= maxFastR && 2*r.Full <= maxFastDebt
		if r.Windows != nil {
			l.Calendars = append(l.Calendars, r.Windows)
		}
	}
	if l.Fast {
		l.Columns = FastLimits
	}
	l.Packed = string(l.pack())
	return l
}

// mix takes a number into a hash, in its order: a step of FNV-1a, on words.
func mix(hash, n uint32) uint32 {
	return (hash ^ n) * 16777619
}

// EmptySum is the hash of no limits.
const EmptySum uint32 = 2166136261

// AddTo takes the limits into a hash of those of several owners, in their order.
func (l *Rules) AddTo(sum uint32) uint32 { return mix(sum, l.Sum) }

// ids are the ids and rates of the limits as they stand in a state of one date.
func (l *Rules) ids() []byte {
	b := make([]byte, 0, fastRulesSize)
	for i := range FastLimits {
		var id, p, r int64
		if i < len(l.All) {
			id, p, r = int64(l.All[i].ID), l.All[i].P, l.All[i].R
		}
		b = AppendUint(AppendUint(AppendUint(b, idSize, id), fastPSize, p), fastRSize, r)
	}
	return b
}

func (l *Rules) pack() []byte {
	if l.Fast {
		return l.packFast()
	}
	b := make([]byte, 0, ruleSize*len(l.All)+1)
	for i := range l.All {
		r := &l.All[i]
		b = AppendDouble(AppendDouble(AppendDouble(b, r.P), r.R), r.Full)
		b = append(binary.LittleEndian.AppendUint16(b, r.ID), r.flags())
	}
	return append(b, byte(len(l.All)))
}

func (l *Rules) packFast() []byte {
	b := l.ids()
	for i := range FastLimits {
		// An unused place is a limit that nothing exceeds.
		p, r, full := int64(1), int64(1), int64(MaxDebt)
		if i < len(l.All) {
			p, r, full = l.All[i].P, l.All[i].R, l.All[i].Full
		}
		b = AppendDouble(AppendDouble(AppendDouble(b, p), r), full)
	}
	for i := range FastLimits {
		var flags byte
		if i < len(l.All) {
			flags = l.All[i].flags()
		}
		b = append(b, flags)
	}
	return append(b, fastOwner+byte(len(l.All)))
}

func (r *Rule) flags() byte {
	flags := flagTag * byte(r.Tag)
	if r.Lenient {
		flags |= flagLenient
	}
	if r.Soft {
		flags |= flagSoft
	}
	return flags
}

// readRule reads one rule of those that [Rules.pack] has packed, false if that is none.
func readRule(packed string, fast bool, i int) (r Rule, ok bool) {
	var flags byte
	numbers := ruleSize * i
	if fast {
		numbers = FastLimits*fastIDSize + rulesNumbers*i
		r.ID, flags = uint16(ReadUint(packed[fastIDSize*i:], idSize)), packed[FastLimits*(fastIDSize+rulesNumbers)+i]
	} else {
		r.ID, flags = binary.LittleEndian.Uint16([]byte(packed[numbers+rulesNumbers:])), packed[numbers+ruleSize-1]
	}
	r.Tag, r.Lenient, r.Soft = Tag(flags/flagTag), flags&flagLenient != 0, flags&flagSoft != 0
	r.P, r.R = readDouble(packed, numbers), readDouble(packed, numbers+DoubleSize)
	r.Capacity = readDouble(packed, numbers+2*DoubleSize) / max(r.P, 1)
	return r, r.P > 0 && r.Tag != tagNone && r.Tag <= YearWindow && (r.R > 0 || r.Tag.Calendar())
}

// readDouble reads an integer that is a little endian double.
func readDouble(s string, at int) int64 {
	return int64(math.Float64frombits(binary.LittleEndian.Uint64([]byte(s[at : at+DoubleSize]))))
}

// AppendDouble appends an integer as a little endian double, exactly.
func AppendDouble(b []byte, n int64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(n)))
}

// PutDouble writes an integer as a little endian double over the first bytes.
func PutDouble(b []byte, n int64) {
	binary.LittleEndian.PutUint64(b, math.Float64bits(float64(n)))
}

// AppendUint appends the low size bytes of n, big endian.
func AppendUint[N int | int64 | uint64 | uint32](b []byte, size int, n N) []byte {
	for i := size - 1; i >= 0; i-- {
		b = append(b, byte(uint64(n)>>(8*i)))
	}
	return b
}

// ReadUint reads the first size bytes, big endian.
func ReadUint[T ~string | ~[]byte](s T, size int) int64 {
	var n int64
	for i := range size {
		n = n<<8 | int64(s[i])
	}
	return n
}
