package bucket

import (
	"fmt"
	"math/bits"
	"time"
	"unicode/utf8"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// mistakesOf returns what is wrong with one limit, whose defaults are filled in.
func mistakesOf(limit Limit) []string {
	reasons := append(nameMistakes("name", limit.Name), nameMistakes("unit", string(limit.Unit))...)
	if limit.Mode > Off {
		reasons = append(reasons, fmt.Sprintf("%v is unknown; enforce, warn, shadow or off fits", limit.Mode))
	}
	if limit.Strictest > Off {
		reasons = append(reasons, fmt.Sprintf("the strictest mode is %v, which is unknown; enforce, warn, shadow or off fits", limit.Strictest))
	}
	if limit.FailMode > FailOpen {
		reasons = append(reasons, fmt.Sprintf("%v is unknown; bounded, closed, local or open fits", limit.FailMode))
	}
	reasons = append(reasons, windowMistakes(limit)...)
	numbers := numberMistakes(limit)
	if len(numbers) == 0 {
		numbers = productMistakes(limit)
	}
	return append(reasons, numbers...)
}

// windowMistakes returns what does not go with the kind of window.
func windowMistakes(limit Limit) []string {
	var reasons []string
	w := limit.Window
	if w.Kind > YearWindow {
		return []string{fmt.Sprintf("%v is unknown; one of the kinds of WindowKind fits", w.Kind)}
	}
	switch {
	case w.Kind != MonthWindow && w.Kind != YearWindow && w.AnchorDay != 0:
		reasons = append(reasons, fmt.Sprintf("the anchor day is %d; only the window of a month or a year has one", w.AnchorDay))
	case w.AnchorDay < 0 || w.AnchorDay > 31:
		reasons = append(reasons, fmt.Sprintf("the anchor day is %d; 1 to 31 fit", w.AnchorDay))
	}
	switch {
	case w.Kind != YearWindow && w.AnchorMonth != 0:
		reasons = append(reasons, fmt.Sprintf("the anchor month is %d; only the window of a year has one", w.AnchorMonth))
	case w.AnchorMonth < 0 || w.AnchorMonth > 12:
		reasons = append(reasons, fmt.Sprintf("the anchor month is %d; 1 to 12 fit", w.AnchorMonth))
	}
	if w.Kind.Calendar() {
		if _, err := newCalendar(w); err != nil {
			reasons = append(reasons, err.Error()+"; an IANA name such as Europe/Berlin fits, if the system or the program has the time zone database")
		}
	} else if w.Zone != "" {
		reasons = append(reasons, fmt.Sprintf("the zone is %q; only windows of the calendar have one", w.Zone))
	}
	if w.Kind != TokenBucket && limit.Refill != limit.Capacity {
		reasons = append(reasons, fmt.Sprintf("the refill is %d; a window gives back its capacity, so leave it out", limit.Refill))
	}
	return reasons
}

func nameMistakes(what, name string) []string {
	switch {
	case name == "":
		return []string{"the " + what + " is empty; give it one, such as minute"}
	case len(name) > maxNameLength:
		return []string{fmt.Sprintf("the %s is %d bytes long; at most %d fit", what, len(name), maxNameLength)}
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
	case limit.Refill >= state.MaxExact:
		reasons = append(reasons, fmt.Sprintf("the refill is %d; at most %d fits", limit.Refill, int64(state.MaxExact-1)))
	}
	switch {
	case limit.Window.Kind.Calendar():
		if limit.Period != 0 {
			reasons = append(reasons, fmt.Sprintf("the period is %v; the calendar gives it, so leave it out", limit.Period))
		}
	case limit.Period < time.Millisecond:
		reasons = append(reasons, fmt.Sprintf("the period is %v; at least 1ms fits", limit.Period))
	case limit.Period > maxPeriod:
		reasons = append(reasons, fmt.Sprintf("the period is %v; at most %v (ten years) fits", limit.Period, maxPeriod))
	case limit.Period%time.Millisecond != 0:
		reasons = append(reasons, fmt.Sprintf("the period is %v; whole milliseconds fit, such as %v",
			limit.Period, limit.Period.Truncate(time.Millisecond)))
	}
	return reasons
}

// productMistakes expects numbers that are in range each for itself.
func productMistakes(limit Limit) []string {
	if limit.Window.Kind != TokenBucket {
		return windowProductMistakes(limit)
	}
	r, p := lowestTerms(&limit)
	if hi, lo := bits.Mul64(uint64(limit.Capacity), uint64(p)); hi != 0 || lo > state.MaxDebt {
		return []string{fmt.Sprintf(
			"a capacity of %d with a refill of %d each %v cannot be counted exactly; a capacity of at most %d fits, or a refill and a period with a larger common divisor",
			limit.Capacity, limit.Refill, limit.Period, state.MaxDebt/p)}
	}
	longest := maxPeriod.Milliseconds()
	if state.CeilDiv(limit.Capacity*p, r) <= longest {
		return nil
	}
	// The capacity that fills in time is longest × r / p, formed in 128 bits.
	hi, lo := bits.Mul64(uint64(longest), uint64(r))
	most, _ := bits.Div64(hi, lo, uint64(p))
	return []string{fmt.Sprintf(
		"a capacity of %d takes more than ten years to fill at %d each %v; a capacity of at most %d fits",
		limit.Capacity, limit.Refill, limit.Period, most)}
}

// windowProductMistakes is productMistakes of a window. A sliding one counts two windows, each of up to
// twice the capacity.
func windowProductMistakes(limit Limit) []string {
	most := int64(state.MaxDebt)
	if limit.Window.Kind == SlidingWindow {
		most = state.MaxDebt / 2 / limit.Period.Milliseconds()
	}
	if limit.Capacity <= most {
		return nil
	}
	return []string{fmt.Sprintf("a capacity of %d in the window cannot be counted exactly; a capacity of at most %d fits",
		limit.Capacity, most)}
}
