package state

import (
	"bytes"
	"fmt"
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
	// CountHour and CountMinute are as long in milliseconds, and countLife is how long a count lives after its hour.
	CountHour   = 3600 * 1000
	CountMinute = 60 * 1000
	countLife   = 48 * CountHour
	minutes     = CountHour / CountMinute

	// A number of a count, and the two of a minute.
	countNumber = 7
	countSize   = 2 * countNumber
	countRoom   = 92
	countRows   = MarkSize + countRoom
	countBack   = countRows + minutes*countSize
	countNames  = countBack + minutes*countSize
	// MaxCount is how many bytes one count takes at most: what no name finds room for is not counted apart.
	MaxCount = 16 << 10
	// MarkSize is the size of what tells a count from every other one under its key.
	MarkSize = 8
	// CountVersion is the first byte of a mark.
	CountVersion = 2
	// MaxCountName is how long a name is at most.
	MaxCountName = 256
	countArg     = 4 * DoubleSize
	countHead    = countArg + nameSize + MarkSize + DateSize
	countedHead  = countArg/2 + DateSize
	nameSize     = 2
	nameHead     = 1 + nameSize
)

// What a name in a count is of.
const (
	CountTenant = 0
	CountUnit   = 1
	CountField  = 2
)

// countPlaces are the places of the minutes, and of what comes after the last, of three digits each.
func countPlaces() string {
	var b strings.Builder
	for i := range minutes + 1 {
		b.WriteString(strconv.Itoa(countRows + i*countSize))
	}
	return b.String()
}

// CountNumbers are what is charged and given back under a key: of the tenant points and requests, of a unit its amount, of a root
// field points and calls.
type CountNumbers struct{ Charged, Back [2]int64 }

// Join adds what others have counted.
func (n *CountNumbers) Join(other *CountNumbers) {
	for i := range n.Charged {
		n.Charged[i], n.Back[i] = Exact(n.Charged[i]+other.Charged[i]), Exact(n.Back[i]+other.Back[i])
	}
}

// NewCount is what is stored of a count that was just made.
func NewCount(mark [MarkSize]byte) []byte {
	b := make([]byte, countBack)
	copy(b, mark[:])
	return b
}

// IsCount reports whether there is room for the count of a minute in what is stored: if not, nothing is, or what nobody wrote.
func IsCount(stored []byte, hour, date int64) bool {
	return len(stored) >= minuteAt(hour, date)+countSize
}

// minuteAt is the place of the minute of a date in its hour.
func minuteAt(hour, date int64) int { return countRows + int((date-hour)/CountMinute)*countSize }

// Add adds to what is stored of a count in the minute of a date in its hour. It changes the stored bytes in place, or returns others where
// these are too few.
func (n *CountNumbers) Add(stored []byte, hour, date int64) []byte {
	at := minuteAt(hour, date)
	stored = addCounts(stored, at, n.Charged)
	return addCounts(stored, at+countBack-countRows, n.Back)
}

func addCounts(stored []byte, place int, n [2]int64) []byte {
	if n[0]+n[1] == 0 {
		return stored
	}
	if len(stored) < place+countSize {
		// A part of numbers is none.
		stored = extended(stored[:min(len(stored), place)], place+countSize)
	}
	for i := range n {
		at := place + i*countNumber
		sum := min(ReadUint(stored[at:], countNumber)+n[i], MaxExact)
		AppendUint(stored[:at], countNumber, sum)
	}
	return stored
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

// AppendCount appends what is counted under a key but the first, whose name is as [CountName] returns it.
func AppendCount(b []byte, n *CountNumbers, name string) []byte {
	return append(appendNumbers(appendNumbers(b, &n.Charged), &n.Back), name...)
}

func appendNumbers(b []byte, n *[2]int64) []byte {
	return AppendDouble(AppendDouble(b, n[0]), n[1])
}

// AppendFirstCount appends to the numbers of a call what is counted under the first key, and the name of the tenant as [CountName]
// returns it. The date is the beginning of the hour in a take, and in a settlement any in the minute that it is about.
func AppendFirstCount(b []byte, n *CountNumbers, date int64, mark [MarkSize]byte, name string) []byte {
	// The numbers of a call are doubles, of which there is a whole number.
	b = append(b, make([]byte, FirstCountSize(name)-countHead-len(name))...)
	b = appendNumbers(append(b, name...), &n.Back)
	b = append(AppendUint(b, nameSize, len(name)), mark[:]...)
	return AppendUint(appendNumbers(b, &n.Charged), DateSize, date)
}

// FirstCountSize is how many bytes [AppendFirstCount] appends.
func FirstCountSize(name string) int {
	return countHead + (len(name)+DoubleSize-1)/DoubleSize*DoubleSize
}

// counts are the keys that a call counts under.
type counts struct {
	// values are what stands under them, and key is the place of the first among the KEYS.
	values [][]byte
	key    int
	hour   int64
	// head is what is counted under the first key, tenant its name, and others what is under the other keys.
	head, tenant string
	others       []string
}

// takeCounts does what count.lua does first.
func (c *Call) takeCounts() error {
	if c.extra < Counted {
		return nil
	}
	n := int(c.extra / Counted)
	c.extra %= Counted
	if n > len(c.Values) {
		return fmt.Errorf("%w: a call that counts under %d of %d keys", errMalformed, n, len(c.Values))
	}
	first := len(c.Values) - n
	c.counted = &counts{values: c.Values[first:], key: first}
	c.Values = c.Values[:first]
	return nil
}

// countedFrom reads the date. The arguments of the other keys stand from a place on.
func (c *Call) countedFrom(at int) (date int64, err error) {
	of, numbers := c.counted, c.Args[0]
	others := len(of.values) - 1
	if len(numbers) < NumbersHead+countHead || len(c.Args) < at+others {
		return 0, fmt.Errorf("%w: counts", errMalformed)
	}
	for _, arg := range c.Args[at : at+others] {
		if len(arg) < countArg {
			return 0, fmt.Errorf("%w: counts", errMalformed)
		}
	}
	of.head = numbers[len(numbers)-countHead:]
	rest := numbers[:len(numbers)-countHead]
	size := int(ReadUint(of.head[countArg/2:], nameSize))
	if size > len(rest) {
		return 0, fmt.Errorf("%w: counts", errMalformed)
	}
	of.tenant, of.others = rest[len(rest)-size:], c.Args[at:at+others]
	return ReadUint(of.head[countHead-DateSize:], DateSize), nil
}

// count counts under all keys what the arguments say, in the minute of a date.
func (c *Call) count(r *Reply, date int64) {
	of := c.counted
	var mark [MarkSize]byte
	copy(mark[:], of.head[countArg/2+nameSize:])
	writes := make([]Write, len(of.values))
	for i := range of.values {
		name, w := of.tenant, &writes[i]
		n := CountNumbers{Charged: readNumbers(of.head, countHead-countedHead), Back: readNumbers(of.head, 0)}
		if i > 0 {
			arg := of.others[i-1]
			n = CountNumbers{Charged: readNumbers(arg, 0), Back: readNumbers(arg, countArg/2)}
			name = arg[countArg:]
		}
		w.Key, w.Value = of.key+i, bytes.Clone(of.values[i])
		if !IsCount(w.Value, of.hour, date) {
			w.Value = nil
			if i == 0 {
				w.Value = NewCount(mark)
			}
			if name != "" {
				var listed bool
				if writes[0].Value, listed = ListName(writes[0].Value, name); !listed {
					continue
				}
			}
			if i > 0 {
				w.Value = NewCount(mark)
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

func readNumbers(arg string, at int) [2]int64 {
	return [2]int64{readDouble(arg, at), readDouble(arg, at+DoubleSize)}
}
