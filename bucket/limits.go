package bucket

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// Bounds of what [Compile] accepts.
const (
	// maxPeriod is the longest period of a limit, and the longest time it may take to fill: any ten
	// calendar years.
	maxPeriod = 10 * 366 * 24 * time.Hour
	// MaxLimits is how many limits one owner may have, and how many one call may touch in all.
	MaxLimits = 64
	// maxNameLength is the length in bytes of the longest name of a limit or a unit.
	maxNameLength = 64
)

// Limits are the limits of one owner in the form in which the arithmetic runs. They are made by
// [Compile], never change, and may be shared by any number of buckets and goroutines.
type Limits struct {
	all   []Limit
	rules []rule
	// compiled are the rules as the arithmetic and the scripts know them, and packed is what a script is told of
	// them. It is boxed once, here, because it is an argument of every call.
	compiled *state.Rules
	packed   any
	// failMode is that of the limits that refuse. local says that any limit at all fails local, and shared that any
	// fails local or bounded, so that it is judged in this process while the store cannot answer.
	failMode      FailMode
	local, shared bool
	// mode is the strictest of those that are judged.
	mode Mode
}

// rule is a limit in the terms of the arithmetic.
type rule struct {
	*state.Rule
	limit *Limit
	// overridden says that an override record has changed the limit.
	overridden bool
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
	compiled := make([]state.Rule, 0, len(limits))
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
			compiled = append(compiled, newRule(&l.all[i], id))
			l.rules = append(l.rules, rule{Rule: &compiled[len(compiled)-1], limit: &l.all[i]})
		}
	}
	if len(mistakes) > 0 {
		return nil, errors.Join(mistakes...)
	}
	l.compiled = state.NewRules(compiled)
	l.packed = l.compiled.Packed
	l.failMode, l.mode = FailOpen, Off
	for i := range l.rules {
		limit := l.rules[i].limit
		l.mode = min(l.mode, limit.Mode)
		l.local = l.local || limit.FailMode == FailLocal
		l.shared = l.shared || limit.FailMode == FailLocal || limit.FailMode == FailBounded
		if limit.Mode == Enforce {
			l.failMode = l.failMode.Strictest(limit.FailMode)
		}
	}
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

// Counts reports whether one of the limits counts the unit, those that are [Off] included.
func (l *Limits) Counts(unit Unit) bool {
	if l == nil {
		return false
	}
	for i := range l.all {
		if l.all[i].Unit == unit {
			return true
		}
	}
	return false
}

// Len returns how many limits a store judges: those that are not [Off].
func (l *Limits) Len() int {
	if l == nil {
		return 0
	}
	return len(l.rules)
}

// FailMode returns what happens to an operation under the limits while the store cannot answer: the strictest
// fail mode of those that can refuse it. It is [FailOpen] without any.
func (l *Limits) FailMode() FailMode {
	if l == nil {
		return FailOpen
	}
	return l.failMode
}

// Mode returns the strictest mode of the limits, [Off] without any that is judged.
func (l *Limits) Mode() Mode {
	if l == nil {
		return Off
	}
	return l.mode
}

// newRule expects a limit without mistakes.
func newRule(limit *Limit, id uint16) state.Rule {
	rule := state.Rule{
		ID: id, Tag: tags[limit.Window.Kind], Capacity: limit.Capacity, P: 1,
		Soft: limit.Soft, Lenient: limit.Mode != Enforce && !limit.Soft,
	}
	switch {
	case rule.Tag == state.TokenBucket:
		rule.R, rule.P = lowestTerms(limit)
	case rule.Tag.Calendar():
		// The zone was found when it was checked.
		rule.Windows, _ = newCalendar(limit.Window)
	default:
		rule.R = limit.Period.Milliseconds()
		if rule.Tag == state.SlidingWindow {
			rule.P = rule.R
		}
	}
	return state.NewRule(rule)
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

func countLimits(buckets []Bucket) int {
	limits := 0
	for i := range buckets {
		limits += len(buckets[i].Limits.rules)
	}
	return limits
}

// sumOf is a hash of which limits the buckets have, in their order.
func sumOf(buckets []Bucket) uint32 {
	sum := state.EmptySum
	for i := range buckets {
		sum = buckets[i].Limits.compiled.AddTo(sum)
	}
	return sum
}
