package bucket

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/bits"
	"strconv"
	"time"
	"unicode/utf8"
)

// Bounds of what [Compile] accepts.
const (
	// MaxPeriod is the longest period of a limit, and the longest time it may take to fill: any ten
	// calendar years.
	MaxPeriod = 10 * 366 * 24 * time.Hour
	// MaxLimits is how many limits one owner may have, and how many one call may touch in all.
	MaxLimits = 64
	// MaxNameLength is the length in bytes of the longest name of a limit or a unit.
	MaxNameLength = 64
)

const (
	// maxExact is the end of the integers that a Lua double holds exactly.
	maxExact = 1 << 53
	// maxDebt bounds capacity × p, so that twice as much, the deepest overdraft, is still exact.
	maxDebt = 1 << 52
)

// Limits are the limits of one owner in the form in which the arithmetic runs. They are made by
// [Compile], never change, and may be shared by any number of buckets and goroutines.
type Limits struct {
	all   []Limit
	rules []rule
	// packed is what a script is told of the rules. It is boxed once, here, because it is an argument
	// of every call.
	packed any
}

// rule is a limit in lowest terms: debt is counted in units of 1/p token and decays by r units each
// millisecond.
type rule struct {
	limit    *Limit
	capacity int64
	r, p     int64
	// full is capacity × p, the debt of an empty bucket.
	full int64
	// id addresses the limit in the stored state.
	id uint16
}

// LimitError is one mistake in the limits given to [Compile].
type LimitError struct {
	// Limit is the name of the limit that is wrong. It may be empty, since that is a mistake too.
	Limit string
	// Reason says what is wrong and what would fit.
	Reason string
}

// Error names the limit and says what would fit.
func (e *LimitError) Error() string {
	return "bucket: limit " + strconv.Quote(e.Limit) + ": " + e.Reason
}

// Compile checks the limits of one owner and turns them into the form in which the arithmetic runs.
// Limits whose mode is [Off] are checked and kept, but neither judged nor charged. No limits at all
// are fine: such an owner is never refused.
//
// Every mistake is reported at once, each as a [*LimitError], joined as [errors.Join] does.
func Compile(limits ...Limit) (*Limits, error) {
	l := &Limits{all: make([]Limit, len(limits)), rules: make([]rule, 0, len(limits))}
	var mistakes []error
	if len(limits) > MaxLimits {
		mistakes = append(mistakes, &LimitError{
			Limit:  limits[MaxLimits].Name,
			Reason: fmt.Sprintf("one of %d limits of an owner; at most %d fit", len(limits), MaxLimits),
		})
	}
	names := make(map[string]bool, len(limits))
	ids := make(map[uint16]string, len(limits))
	for i, limit := range limits {
		if limit.Unit == "" {
			limit.Unit = Points
		}
		if limit.Refill == 0 {
			limit.Refill = limit.Capacity
		}
		l.all[i] = limit
		id := stateID(limit.Unit, limit.Name)
		reasons := mistakesOf(limit)
		if other, taken := ids[id]; names[limit.Name] {
			reasons = append(reasons, "the name is used twice; each limit of an owner needs its own")
		} else if taken {
			reasons = append(reasons, fmt.Sprintf("its stored form collides with that of limit %q; another name fits", other))
		}
		names[limit.Name], ids[id] = true, limit.Name
		for _, reason := range reasons {
			mistakes = append(mistakes, &LimitError{Limit: limit.Name, Reason: reason})
		}
		if len(reasons) == 0 && limit.Mode != Off {
			l.rules = append(l.rules, newRule(&l.all[i], id))
		}
	}
	if len(mistakes) > 0 {
		return nil, errors.Join(mistakes...)
	}
	l.packed = packRules(l.rules)
	return l, nil
}

// All returns the limits as they were given, with the defaults filled in, those that are [Off]
// included. The slice is the caller's own.
func (l *Limits) All() []Limit {
	if l == nil {
		return nil
	}
	return append([]Limit(nil), l.all...)
}

// Len returns how many limits a store judges: those that are not [Off].
func (l *Limits) Len() int {
	if l == nil {
		return 0
	}
	return len(l.rules)
}

// newRule expects a limit without mistakes.
func newRule(limit *Limit, id uint16) rule {
	r, p := lowestTerms(limit)
	return rule{limit: limit, capacity: limit.Capacity, r: r, p: p, full: limit.Capacity * p, id: id}
}

func lowestTerms(limit *Limit) (r, p int64) {
	period := limit.Period.Milliseconds()
	g := gcd(limit.Refill, period)
	return limit.Refill / g, period / g
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// mistakesOf returns what is wrong with one limit, whose defaults are filled in.
func mistakesOf(limit Limit) []string {
	reasons := append(nameMistakes("name", limit.Name), nameMistakes("unit", string(limit.Unit))...)
	if limit.Mode > Off {
		reasons = append(reasons, fmt.Sprintf("%v is unknown; enforce, shadow or off fits", limit.Mode))
	}
	if limit.FailMode > FailClosed {
		reasons = append(reasons, fmt.Sprintf("%v is unknown; open or closed fits", limit.FailMode))
	}
	numbers := numberMistakes(limit)
	if len(numbers) == 0 {
		numbers = productMistakes(limit)
	}
	return append(reasons, numbers...)
}

func nameMistakes(what, name string) []string {
	switch {
	case name == "":
		return []string{"the " + what + " is empty; give it one, such as minute"}
	case len(name) > MaxNameLength:
		return []string{fmt.Sprintf("the %s is %d bytes long; at most %d fit", what, len(name), MaxNameLength)}
	case !utf8.ValidString(name):
		return []string{"the " + what + " is not valid UTF-8"}
	}
	return nil
}

func numberMistakes(limit Limit) []string {
	var reasons []string
	if limit.Capacity < 1 {
		reasons = append(reasons, fmt.Sprintf("the capacity is %d; at least 1 fits", limit.Capacity))
	}
	switch {
	case limit.Refill < 0, limit.Refill == 0 && limit.Capacity > 0:
		reasons = append(reasons, fmt.Sprintf("the refill is %d; at least 1 fits", limit.Refill))
	case limit.Refill >= maxExact:
		reasons = append(reasons, fmt.Sprintf("the refill is %d; at most %d fits", limit.Refill, int64(maxExact-1)))
	}
	switch {
	case limit.Period < time.Millisecond:
		reasons = append(reasons, fmt.Sprintf("the period is %v; at least 1ms fits", limit.Period))
	case limit.Period > MaxPeriod:
		reasons = append(reasons, fmt.Sprintf("the period is %v; at most %v (ten years) fits", limit.Period, MaxPeriod))
	case limit.Period%time.Millisecond != 0:
		reasons = append(reasons, fmt.Sprintf("the period is %v; whole milliseconds fit, such as %v",
			limit.Period, limit.Period.Truncate(time.Millisecond)))
	}
	return reasons
}

// productMistakes expects numbers that are in range each for itself.
func productMistakes(limit Limit) []string {
	r, p := lowestTerms(&limit)
	if hi, lo := bits.Mul64(uint64(limit.Capacity), uint64(p)); hi != 0 || lo > maxDebt {
		return []string{fmt.Sprintf(
			"a capacity of %d with a refill of %d each %v cannot be counted exactly; a capacity of at most %d fits, or a refill and a period with a larger common divisor",
			limit.Capacity, limit.Refill, limit.Period, maxDebt/p)}
	}
	longest := MaxPeriod.Milliseconds()
	if ceilDiv(limit.Capacity*p, r) <= longest {
		return nil
	}
	// The capacity that fills in time is longest × r / p, formed in 128 bits.
	hi, lo := bits.Mul64(uint64(longest), uint64(r))
	most, _ := bits.Div64(hi, lo, uint64(p))
	return []string{fmt.Sprintf(
		"a capacity of %d takes more than ten years to fill at %d each %v; a capacity of at most %d fits",
		limit.Capacity, limit.Refill, limit.Period, most)}
}

// stateID addresses a limit in the stored state of its owner. It is a hash, so that a limit keeps
// its state whatever stands before it in a policy. Compile refuses two limits of one id.
func stateID(unit Unit, name string) uint16 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(unit))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(name))
	sum := h.Sum32()
	return uint16(sum>>16) ^ uint16(sum)
}

// ruleSize is the packed size of a rule: id 2, p 5, r 7, capacity 7, mode 1, big endian.
const ruleSize = 22

func packRules(rules []rule) string {
	b := make([]byte, 0, len(rules)*ruleSize)
	for i := range rules {
		rule := &rules[i]
		b = appendUint(b, 2, uint64(rule.id))
		b = appendUint(b, 5, uint64(rule.p))
		b = appendUint(b, 7, uint64(rule.r))
		b = appendUint(b, 7, uint64(rule.capacity))
		b = appendUint(b, 1, uint64(rule.limit.Mode))
	}
	return string(b)
}

// appendUint appends the low size bytes of v, big endian.
func appendUint(b []byte, size int, v uint64) []byte {
	for i := size - 1; i >= 0; i-- {
		b = append(b, byte(v>>(8*i)))
	}
	return b
}
