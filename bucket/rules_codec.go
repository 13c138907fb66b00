package bucket

import (
	"encoding/binary"
	"math"
)

// The flags of a limit for the scripts, see state.lua.
const (
	flagLenient = 1
	flagSoft    = 2
	// flagTag times the tag of its entries is added to the flags of a limit.
	flagTag = 4
	// usualOwner is added to the number of limits.
	usualOwner = 128
)

// usualLimits is how many limits an owner of the usual kind has at most. Its rules and its state have
// places for as many.
const usualLimits = 4

// What the state of a usual owner has room for.
const (
	maxUsualP    = 1<<32 - 1
	maxUsualR    = 1<<16 - 1
	maxUsualDebt = 1<<40 - 1
)

// prepare fills in what is derived from the rules.
func (l *Limits) prepare() {
	l.usual = len(l.rules) <= usualLimits
	for i := range l.rules {
		rule := &l.rules[i]
		l.sum = mix(l.sum, uint32(rule.id)+1)
		l.usual = l.usual && rule.kind == TokenBucket && !rule.soft &&
			rule.p <= maxUsualP && rule.r <= maxUsualR && 2*rule.full <= maxUsualDebt
		l.local = l.local || rule.limit.FailMode == FailLocal
		if rule.limit.Mode == Enforce {
			l.failMode = l.failMode.Strictest(rule.limit.FailMode)
		}
		if rule.calendar != nil {
			l.calendars = append(l.calendars, rule.calendar)
		}
	}
	l.columns = len(l.rules)
	if l.usual {
		l.columns = usualLimits
	}
	l.packed = string(l.pack())
}

// mix takes a number into a hash, in its order: a step of FNV-1a, on words.
func mix(hash, n uint32) uint32 {
	return (hash ^ n) * 16777619
}

// sumOf is a hash of which limits the buckets have, in their order.
func sumOf(buckets []Bucket) uint32 {
	sum := uint32(2166136261)
	for i := range buckets {
		sum = mix(sum, buckets[i].Limits.sum)
	}
	return sum
}

// ids are the ids and rates of the limits in the form of the first column.
func (l *Limits) ids() []byte {
	b := make([]byte, 0, l.columns*usualIDSize)
	for i := range l.columns {
		var id, p, r uint64
		if i < len(l.rules) {
			id = uint64(l.rules[i].id)
			if l.usual {
				p, r = uint64(l.rules[i].p), uint64(l.rules[i].r)
			}
		}
		b = appendUint(appendUint(appendUint(b, idSize, id), usualPSize, p), usualRSize, r)
	}
	return b
}

func (l *Limits) pack() []byte {
	b := l.ids()
	for i := range l.columns {
		// An unused place is a limit that nothing exceeds.
		p, r, full := int64(1), int64(1), int64(maxDebt)
		if i < len(l.rules) {
			p, r, full = l.rules[i].p, l.rules[i].r, l.rules[i].full
		}
		b = appendDouble(appendDouble(appendDouble(b, p), r), full)
	}
	for i := range l.columns {
		var flags byte
		if i < len(l.rules) {
			flags = l.rules[i].flags()
		}
		b = append(b, flags)
	}
	n := byte(len(l.rules))
	if l.usual {
		n += usualOwner
	}
	return append(b, n)
}

func (r *rule) flags() byte {
	var flags byte
	if r.lenient {
		flags |= flagLenient
	}
	if r.soft {
		flags |= flagSoft
	}
	return flags + flagTag*tagOf(r.kind)
}

// appendDouble appends an integer as a little endian double, exactly.
func appendDouble(b []byte, n int64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(n)))
}

func putDouble(b []byte, n int64) {
	binary.LittleEndian.PutUint64(b, math.Float64bits(float64(n)))
}

// appendUint appends the low size bytes of v, big endian.
func appendUint(b []byte, size int, v uint64) []byte {
	for i := size - 1; i >= 0; i-- {
		b = append(b, byte(v>>(8*i)))
	}
	return b
}
