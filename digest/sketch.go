package digest

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
)

// SketchSize is how many hashes a [Sketch] has at most. With as many it is about a tenth off, up or down, in two thirds of all cases.
const SketchSize = 128

// Sketch says how many different names it was given, in 1 KiB: it keeps the smallest of their hashes (Bar-Yossef and others:
// Counting Distinct Elements in a Data Stream, 2002). Up to [SketchSize] names it is exact. Sketches of several instances, or of
// several times, are merged without counting anybody twice. The zero value has none. It is not safe for concurrent use.
type Sketch struct {
	// smallest are in order.
	smallest []uint64
}

// Add adds a name by its hash, of 64 bits that are like random ones.
func (s *Sketch) Add(hash uint64) {
	full := len(s.smallest) == SketchSize
	if full && hash >= s.smallest[SketchSize-1] {
		return
	}
	at, found := slices.BinarySearch(s.smallest, hash)
	if found {
		return
	}
	if full {
		s.smallest = s.smallest[:SketchSize-1]
	}
	s.smallest = slices.Insert(s.smallest, at, hash)
}

// Merge adds the names of another sketch.
func (s *Sketch) Merge(o *Sketch) {
	for _, hash := range o.smallest {
		s.Add(hash)
	}
}

// Count is how many names there were, about.
func (s *Sketch) Count() float64 {
	n := len(s.smallest)
	if n < SketchSize {
		return float64(n)
	}
	const all = 1 << 64
	return (SketchSize - 1) * (all / (float64(s.smallest[n-1]) + 1))
}

// IsZero says that there was no name.
func (s Sketch) IsZero() bool { return len(s.smallest) == 0 }

// reset forgets all names, and keeps the room.
func (s *Sketch) reset() { s.smallest = s.smallest[:0] }

// MarshalText returns the hashes in base64.
func (s Sketch) MarshalText() ([]byte, error) {
	raw := make([]byte, 0, 8*len(s.smallest))
	for _, hash := range s.smallest {
		raw = binary.BigEndian.AppendUint64(raw, hash)
	}
	return base64.RawStdEncoding.AppendEncode(nil, raw), nil
}

// UnmarshalText reads what [Sketch.MarshalText] has written, in any order. The error says that it is something else.
func (s *Sketch) UnmarshalText(text []byte) error {
	s.smallest = nil
	if len(text) > base64.RawStdEncoding.EncodedLen(8*SketchSize) {
		return fmt.Errorf("digest: a sketch of %d bytes", len(text))
	}
	raw, err := base64.RawStdEncoding.AppendDecode(nil, text)
	if err != nil || len(raw)%8 != 0 {
		return fmt.Errorf("digest: %d bytes are no sketch", len(text))
	}
	for ; len(raw) > 0; raw = raw[8:] {
		s.Add(binary.BigEndian.Uint64(raw))
	}
	return nil
}
