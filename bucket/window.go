package bucket

import (
	"fmt"
	"math"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// WindowKind is when the budget of a limit comes back. The zero value is no window: a token bucket.
//
// A further kind of the calendar needs, besides its word, tag and Length in this file: where it begins (number and start
// in calendar.go), its number on the wire (internal/state/wire.go), the place of YearWindow wherever that is used as the
// last kind, and its names in policies (tiers/window.go, tiers/period.go, tiers/policy.schema.json).
type WindowKind uint8

const (
	// TokenBucket is no window: what was spent comes back continuously, Refill in each Period.
	TokenBucket WindowKind = iota
	// FixedWindow opens with the first charge, lasts Period, and gives everything back at its end: the
	// classic requests a second, minute, hour or day. Two windows may meet, so that a time shorter than
	// Period may see twice the capacity.
	FixedWindow
	// SlidingWindow counts what was charged in the current window of length Period, and of what was
	// charged in the one before it the share that a window ending now still covers, as if that had been
	// spent evenly, rounded up. The first window opens with the first charge. A time of length t sees
	// at most Capacity × (1 + t / Period), as with a token bucket, and a Period after which nothing
	// was charged restores everything.
	SlidingWindow
	// HourWindow is the hour of the clock in the zone. A change of the offset of the zone within an hour
	// ends the window.
	HourWindow
	// DayWindow is the day from midnight to midnight in the zone: of 23 to 25 hours where clocks are
	// changed.
	DayWindow
	// MonthWindow is the month in the zone, or with Window.AnchorDay the billing month.
	MonthWindow
	// YearWindow is the calendar year in the zone, or with Window.AnchorMonth the year of a contract.
	YearWindow
)

// String returns the word that telemetry writes.
func (k WindowKind) String() string { return wordOf("window", windowWords[:], k) }

var windowWords = [...]string{
	TokenBucket: "token bucket", FixedWindow: "fixed", SlidingWindow: "sliding",
	HourWindow: "hour", DayWindow: "day", MonthWindow: "month", YearWindow: "year",
}

// tags are what the stored state and the scripts have for the kinds.
var tags = [...]state.Tag{
	TokenBucket: state.TokenBucket, FixedWindow: state.FixedWindow, SlidingWindow: state.SlidingWindow,
	HourWindow: state.HourWindow, DayWindow: state.DayWindow, MonthWindow: state.MonthWindow, YearWindow: state.YearWindow,
}

// wordOf returns the word for a number, one that shows it if there is none.
func wordOf[N ~uint8](what string, words []string, n N) string {
	if int(n) < len(words) {
		return words[n]
	}
	return fmt.Sprintf("%s(%d)", what, n)
}

// Calendar reports whether windows of the kind follow the calendar, and not the first charge.
func (k WindowKind) Calendar() bool {
	return k >= HourWindow && k <= YearWindow
}

// Window says when the budget of a limit comes back. The zero value is a token bucket.
type Window struct {
	Kind WindowKind
	// AnchorDay is the day of the month, 1 to 31, on which a MonthWindow or a YearWindow begins: the last day of the
	// month where it is shorter. Zero means 1. Other kinds have none.
	AnchorDay int
	// AnchorMonth is the month, 1 to 12, in which a YearWindow begins. Zero means 1. Other kinds have none.
	AnchorMonth int
	// Zone is the IANA name of the time zone by which the windows of the calendar begin, such as
	// Europe/Berlin. Empty means UTC. [Compile] looks it up in the time zone database of the system, or
	// in that which the program embeds by importing time/tzdata. Other kinds have none.
	Zone string
}

// Length returns how long a window of the limit is: Period, or the longest that the calendar has, with an
// hour more for days, months and years that begin on another day than the first of January where clocks are changed, or were after 2010. Of a
// token bucket it is the time in which it fills when empty, rounded up to milliseconds.
func (l *Limit) Length() time.Duration {
	switch l.Window.Kind {
	case HourWindow:
		return time.Hour
	case DayWindow:
		return 24*time.Hour + l.Window.longer()
	case MonthWindow:
		return 31*24*time.Hour + l.Window.longer()
	case YearWindow:
		if l.Window.AnchorDay <= 1 && l.Window.AnchorMonth <= 1 {
			return 366 * 24 * time.Hour
		}
		return 366*24*time.Hour + l.Window.longer()
	case TokenBucket:
		if l.Refill > 0 && l.Period >= time.Millisecond && l.Capacity > 0 {
			r, p := lowestTerms(l)
			if fill := float64(l.Capacity) * float64(p) / float64(r); fill < float64(maxPeriod.Milliseconds()) {
				return milliseconds(state.CeilDiv(l.Capacity*p, r))
			}
			return maxPeriod
		}
	case FixedWindow, SlidingWindow:
	}
	return l.Period
}

// longer returns by how much the change of clocks can make a day longer. A zone that is not known counts as
// one that changes them.
func (w Window) longer() time.Duration {
	zone, err := location(w.Zone)
	if err == nil {
		_, change := time.Date(2011, time.January, 1, 0, 0, 0, 0, time.UTC).In(zone).ZoneBounds()
		if change.IsZero() {
			return 0
		}
	}
	return time.Hour
}

// milliseconds is a duration of so many, at most the longest that there is: 292 years.
func milliseconds(n int64) time.Duration {
	return time.Duration(min(n, int64(math.MaxInt64/time.Millisecond))) * time.Millisecond
}
