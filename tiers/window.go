package tiers

import (
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// The words for windows in the document.
const (
	fixedWindow    = "fixed"
	slidingWindow  = "sliding"
	calendarWindow = "calendar"
)

// maxZone is the length in bytes of the longest name of a time zone.
const maxZone = 64

// window returns the window of a limit and its period, which calendar windows do not have. It expects a
// limit without mistakes in this.
func (l *Limit) window() (bucket.Window, time.Duration) {
	period := time.Duration(l.Per)
	switch l.Window {
	case fixedWindow:
		return bucket.Window{Kind: bucket.FixedWindow}, period
	case slidingWindow:
		return bucket.Window{Kind: bucket.SlidingWindow}, period
	case calendarWindow:
		kind, _ := l.Per.calendar()
		return bucket.Window{Kind: kind, AnchorDay: int(l.AnchorDay), AnchorMonth: int(l.AnchorMonth), Zone: l.Zone}, 0
	default:
		return bucket.Window{}, period
	}
}

// calendar returns the kind of calendar windows of this length, false if there is none.
func (p Period) calendar() (bucket.WindowKind, bool) {
	switch p {
	case Hour:
		return bucket.HourWindow, true
	case Day:
		return bucket.DayWindow, true
	case Month:
		return bucket.MonthWindow, true
	case Year:
		return bucket.YearWindow, true
	default:
		return bucket.TokenBucket, false
	}
}

// window reports what is wrong with the window of a limit, and returns whether nothing is.
func (c *checker) window(at path, l *Limit) bool {
	found := len(c.findings)
	calendar := l.Window == calendarWindow
	switch l.Window {
	case "", fixedWindow, slidingWindow, calendarWindow:
	default:
		c.fail(at.to("window"), "window %s is unknown; fixed, sliding or calendar fits", echo(l.Window))
		return false
	}
	_, fits := l.Per.calendar()
	switch {
	case calendar && !fits && l.Per != 0:
		c.fail(at.to("per"), "calendar windows are an hour, day, month or year; one of these words fits")
	case !calendar && (l.Per == Month || l.Per == Year):
		c.fail(at.to("per"), "a month and a year are not always of one length; they fit beside window: calendar")
	}
	if l.Window != "" && l.Refill != 0 {
		c.fail(at.to("refill"), "a window gives back its capacity; leave the refill out")
	}
	c.anchor(at, l, calendar)
	c.zone(at.to("zone"), l.Zone, calendar)
	return len(c.findings) == found
}

// anchor reports what is wrong with when calendar windows begin.
func (c *checker) anchor(at path, l *Limit, calendar bool) {
	switch {
	case l.AnchorDay == 0:
	case !calendar || l.Per != Month && l.Per != Year:
		c.fail(at.to("anchorDay"), "only calendar windows of a month or a year have an anchor day")
	case l.AnchorDay < 0 || l.AnchorDay > 31:
		c.fail(at.to("anchorDay"), "the anchor day is %d; 1 to 31 fit", l.AnchorDay)
	}
	switch {
	case l.AnchorMonth == 0:
	case !calendar || l.Per != Year:
		c.fail(at.to("anchorMonth"), "only calendar windows of a year have an anchor month")
	case l.AnchorMonth < 0 || l.AnchorMonth > 12:
		c.fail(at.to("anchorMonth"), "the anchor month is %d; 1 to 12 fit", l.AnchorMonth)
	}
}

func (c *checker) zone(at path, zone string, calendar bool) {
	switch {
	case zone == "":
	case !calendar:
		c.fail(at, "only calendar windows have a time zone")
	case len(zone) > maxZone || zone == time.Local.String():
		c.fail(at, zoneProblem, echo(zone))
	default:
		if _, err := time.LoadLocation(zone); err != nil {
			c.fail(at, zoneProblem, echo(zone))
		}
	}
}

const zoneProblem = "time zone %s is unknown here; UTC or a name such as Europe/Berlin fits, if the system has the " +
	"time zone database or the program imports time/tzdata"
