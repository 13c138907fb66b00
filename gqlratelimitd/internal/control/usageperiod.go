package control

import (
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

// maxZone is how many bytes the name of a time zone has.
const maxZone = 64

// usageWindow says of a window how many periods are told at once, and how many there are where nobody says from when on. Coarser is what would do
// instead.
type usageWindow struct {
	most, usual int
	coarser     usage.Window
}

// usageWindows has the windows. Minutes are those of 48 hours.
var usageWindows = map[usage.Window]usageWindow{
	usage.Minute: {48*60 + 1, 60, usage.Hour},
	usage.Hour:   {90 * 24, 24, usage.Day},
	usage.Day:    {3*366 + 1, 30, usage.Month},
	usage.Month:  {3*12 + 1, 12, ""},
}

// usagePeriod is a period, up to and without its end.
type usagePeriod struct{ begin, end time.Time }

// zoneOf returns the time zone of a name, which is in the database of the machine. Empty is UTC.
func zoneOf(name string) (*time.Location, error) {
	if name == "" || name == "UTC" {
		return time.UTC, nil
	}
	if err := checkText("zone", name, maxZone); err != nil {
		return nil, err
	}
	// Local would be that of the machine, which nobody has meant who asks from another one.
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, invalid("zone", "there is no time zone %q: write UTC, or a name such as Europe/Berlin", name)
	}
	return zone, nil
}

// beginOfDay returns the first moment of a day of a zone. Where clocks are put forward at midnight that is not midnight, and where they are put
// back it is the first of two.
func beginOfDay(year int, month time.Month, day int, zone *time.Location) time.Time {
	t := time.Date(year, month, day, 0, 0, 0, 0, zone)
	wanted := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	y, m, d := t.Date()
	if time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Before(wanted) {
		_, changed := t.ZoneBounds()
		return changed
	}
	changed, _ := t.ZoneBounds()
	if changed.IsZero() {
		return t
	}
	_, after := t.Zone()
	_, before := changed.Add(-time.Second).Zone()
	if first := t.Add(time.Duration(after-before) * time.Second); before > after && first.Before(changed) {
		return first
	}
	return t
}

// beginOf returns when the period of a window began that a time is in.
func beginOf(w usage.Window, t time.Time, zone *time.Location) time.Time {
	t = t.In(zone)
	switch w {
	case usage.Minute:
		return t.Truncate(time.Minute)
	case usage.Hour:
		return t.Truncate(time.Hour)
	case usage.Month:
		return beginOfDay(t.Year(), t.Month(), 1, zone)
	case usage.Day:
	}
	return beginOfDay(t.Year(), t.Month(), t.Day(), zone)
}

// step returns when the period begins that is n after the one that begins at a time.
func step(w usage.Window, begin time.Time, n int, zone *time.Location) time.Time {
	begin = begin.In(zone)
	switch w {
	case usage.Minute:
		return begin.Add(time.Duration(n) * time.Minute)
	case usage.Hour:
		return begin.Add(time.Duration(n) * time.Hour)
	case usage.Month:
		return beginOfDay(begin.Year(), begin.Month()+time.Month(n), 1, zone)
	case usage.Day:
	}
	return beginOfDay(begin.Year(), begin.Month(), begin.Day()+n, zone)
}

// periodsOf returns those of a window that a range touches, in their order.
func periodsOf(w usage.Window, from, to time.Time, zone *time.Location) ([]usagePeriod, error) {
	most := usageWindows[w].most
	var found []usagePeriod
	for begin := beginOf(w, from, zone); begin.Before(to); {
		end := step(w, begin, 1, zone)
		// A day that a zone has left out has no length.
		for n := 2; !end.After(begin); n++ {
			end = step(w, begin, n, zone)
		}
		if len(found) == most {
			return nil, tooMany(w)
		}
		found = append(found, usagePeriod{begin.UTC(), end.UTC()})
		begin = end
	}
	return found, nil
}

// tooMany says what to ask for in the place of too many periods.
func tooMany(w usage.Window) error {
	known := usageWindows[w]
	do := "ask for a shorter range"
	if known.coarser != "" {
		do += fmt.Sprintf(", or for the window %s", known.coarser)
	}
	return invalid("from", "it has more than %d %ss: %s", known.most, w, do)
}
