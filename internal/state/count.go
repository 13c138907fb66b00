package state

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Counted times the number of keys that usage is counted under is added to the extra number of a take or a settlement, which is below: a
// date at most. So there are at most MaxCounted keys.
const (
	Counted    = 1 << 48
	MaxCounted = MaxExact/Counted - 1
)

// The sizes and places of what is counted, see count.lua.
const (
	// CountHour and countMinute are as long in milliseconds, and countLife is how long a count lives after its hour.
	CountHour   = 3600 * 1000
	countMinute = 60 * 1000
	countLife   = 48 * CountHour
	minutes     = CountHour / countMinute

	doubles    = 2 * DoubleSize
	countBack  = MarkSize
	countRoom  = 32
	countRows  = countBack + minutes*doubles + countRoom
	countNames = countRows + minutes*doubles
	// MaxCount is how many bytes one count takes at most: what no name finds room for is not counted apart.
	MaxCount = 16 << 10
	// MarkSize is the size of what tells a count from every other one under its key.
	MarkSize = 8
	// MaxCountName is how long a name is at most.
	MaxCountName = 256
	countArg     = 2 * doubles
	countHead    = countArg + DateSize + MarkSize
	nameHead     = 1 + 2
)

// What a name in a count is of.
const (
	CountTenant = 0
	CountUnit   = 1
	CountField  = 2
)

// countPlaces are the places of the minutes, and of what comes after the last, of four digits each.
func countPlaces() string {
	var b strings.Builder
	for i := range minutes + 1 {
		b.WriteString(strconv.Itoa(countRows + i*doubles))
	}
	return b.String()
}

// CountNumbers are what is charged and given back under a key: of the tenant points and requests, of a unit its amount, of a root
// field points and calls.
type CountNumbers struct{ Charged, Back [2]int64 }

// Add adds to what is stored of a count, nil if it was just made and has nothing, in the minute of a date in its hour. It changes the stored
// bytes in place, or returns others where these are too few.
func (n *CountNumbers) Add(stored []byte, hour, date int64) []byte {
	minute := int((date - hour) / countMinute)
	stored = addCounts(stored, countRows+minute*doubles, n.Charged)
	return addCounts(stored, countBack+minute*doubles, n.Back)
}

func addCounts(stored []byte, place int, n [2]int64) []byte {
	if n[0]+n[1] == 0 {
		return stored
	}
	stored = extended(stored, place+doubles)
	for i := range n {
		at := stored[place+i*DoubleSize:]
		binary.BigEndian.PutUint64(at, math.Float64bits(float64(min(readCount(at)+n[i], MaxExact))))
	}
	return stored
}

// readCount reads a number of a count, and what is none as nothing.
func readCount(b []byte) int64 {
	f := math.Float64frombits(binary.BigEndian.Uint64(b))
	if !(f >= 0 && f <= MaxExact) {
		return 0
	}
	return int64(f)
}

// extended returns bytes of which there are at least so many.
func extended(b []byte, size int) []byte {
	if len(b) >= size {
		return b
	}
	return append(b, make([]byte, size-len(b))...)
}

// CountName returns a name as it is stored. Nothing stays nothing.
func CountName(kind byte, name string) string {
	if name == "" {
		return ""
	}
	name = name[:min(len(name), MaxCountName)]
	return string([]byte{kind, byte(len(name) >> 8), byte(len(name))}) + name
}

// ListName adds a name to the first count of an hour. It returns false where there is no room for it.
func ListName(first []byte, name string) ([]byte, bool) {
	size := max(countNames, len(first))
	if size+len(name) > MaxCount {
		return first, false
	}
	return append(extended(first, size), name...), true
}

// CountExpiry is when a count is gone that is made now.
func CountExpiry(hour, now int64) int64 { return max(hour+CountHour, now) + countLife }

// AppendCount appends the argument for a key: of the first one with a date, the mark and the name of the tenant, of another one with its
// name, both as [CountName] returns them. The date is the beginning of the hour in a take, and in a settlement any in the minute that it is
// about.
func AppendCount(b []byte, n *CountNumbers, date int64, mark [MarkSize]byte, name string, first bool) []byte {
	for _, pair := range [...]*[2]int64{&n.Charged, &n.Back} {
		b = AppendDouble(AppendDouble(b, pair[0]), pair[1])
	}
	if first {
		b = append(AppendUint(b, DateSize, date), mark[:]...)
	}
	return append(b, name...)
}

// counts are the keys that a call counts under.
type counts struct {
	// values are what stands under them, and key is the place of the first among the KEYS.
	values [][]byte
	key    int
	hour   int64
}

// takeCounts does what count.lua does first.
func (c *Call) takeCounts() error {
	n := int(c.extra / Counted)
	c.extra %= Counted
	if n == 0 {
		return nil
	}
	if n > len(c.Values) {
		return fmt.Errorf("%w: a call that counts under %d of %d keys", errMalformed, n, len(c.Values))
	}
	first := len(c.Values) - n
	c.counted = &counts{values: c.Values[first:], key: first}
	c.Values = c.Values[:first]
	return nil
}

// countedFrom reads the date from the first argument, which stands in a place.
func (c *Call) countedFrom(at int) (date int64, err error) {
	of := c.counted
	if len(c.Args) < at+len(of.values) || len(c.Args[at]) < countHead {
		return 0, fmt.Errorf("%w: counts", errMalformed)
	}
	for _, arg := range c.Args[at : at+len(of.values)] {
		if len(arg) < countArg {
			return 0, fmt.Errorf("%w: counts", errMalformed)
		}
	}
	return ReadUint(c.Args[at][countArg:], DateSize), nil
}

// count counts under all keys what the arguments from a place on say, in the minute of a date.
func (c *Call) count(r *Reply, at int, date int64) {
	of, head := c.counted, c.Args[at]
	writes := make([]Write, len(of.values))
	for i := range of.values {
		arg, w := c.Args[at+i], &writes[i]
		n, name := readNumbers(arg), arg[countArg:]
		if i == 0 {
			name = arg[countHead:]
		}
		w.Key, w.Value = of.key+i, bytes.Clone(of.values[i])
		if len(w.Value) == 0 {
			mark := []byte(head[countArg+DateSize : countHead])
			if i == 0 {
				w.Value = mark
			}
			if name != "" {
				var listed bool
				if writes[0].Value, listed = ListName(writes[0].Value, name); !listed {
					continue
				}
			}
			if i > 0 {
				w.Value = mark
			}
			w.Expiry = CountExpiry(of.hour, c.Now)
		}
		w.Value = n.Add(w.Value, of.hour, date)
	}
	for i := range writes {
		if writes[i].Value != nil {
			r.Writes = append(r.Writes, writes[i])
		}
	}
}

func readNumbers(arg string) (n CountNumbers) {
	for i := range 2 {
		n.Charged[i], n.Back[i] = readDouble(arg, i*DoubleSize), readDouble(arg, doubles+i*DoubleSize)
	}
	return n
}
