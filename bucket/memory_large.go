package bucket

import "math/bits"

// largeSizes are of as many sizes the values that no slab has room for: each twice as large as the one before, up to 32 GiB, and the last has all
// that is larger.
const (
	largeSizes = 24
	leastLarge = 12
)

// larges are the values of about one size that no slab has room for, without a gap between them.
type larges struct {
	all  []large
	used weight
}

// large is such a value, and the place of its entry.
type large struct {
	value []byte
	at    place
}

// largeSize returns among which larges a value of so many bytes is.
func largeSize(size int) int {
	return min(max(0, bits.Len(uint(size))-leastLarge), largeSizes-1)
}

// add returns which of them the value is.
func (l *larges) add(value []byte, at place) (number uint32) {
	l.all = append(l.all, large{value, at})
	return uint32(len(l.all) - 1)
}

// remove forgets a value, and returns the place of the entry whose value takes its place: its own if that was the last one.
func (l *larges) remove(number uint32) place {
	last := len(l.all) - 1
	moved := l.all[last]
	l.all[number], l.all[last] = moved, large{}
	l.all = l.all[:last]
	return moved.at
}
