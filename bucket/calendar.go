package bucket

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// calendar finds the windows of one limit. It remembers the last one, because most calls are in it.
type calendar struct {
	kind WindowKind
	// anchor and month are the day and, of years, the month on which windows begin.
	anchor int
	month  time.Month
	zone   *time.Location
	last   atomic.Pointer[state.Span]
}

// newCalendar returns an error if the zone is not known.
func newCalendar(w Window) (*calendar, error) {
	if w.Zone == "Local" {
		// What the machine is set to differs from machine to machine.
		return nil, fmt.Errorf("unknown time zone %s", w.Zone)
	}
	zone, err := location(w.Zone)
	if err != nil {
		return nil, fmt.Errorf("unknown time zone %s", w.Zone)
	}
	return &calendar{kind: w.Kind, anchor: max(w.AnchorDay, 1), month: time.Month(max(w.AnchorMonth, 1)), zone: zone}, nil
}

// zones has the time zones that were found, by name. Their number is that of the time zone database.
var zones sync.Map

// location looks a time zone up, once: package time reads it from a file each time, which takes longer
// than everything else about a limit.
func location(name string) (*time.Location, error) {
	if found, ok := zones.Load(name); ok {
		if zone, ok := found.(*time.Location); ok {
			return zone, nil
		}
	}
	zone, err := time.LoadLocation(name)
	if err == nil {
		zones.Store(name, zone)
	}
	return zone, err
}

// Around implements [state.Windows].
func (c *calendar) Around(now int64) state.Span {
	if last := c.last.Load(); last != nil && last.From <= now && now < last.To {
		return *last
	}
	s := c.find(now)
	c.last.Store(&s)
	return s
}

func (c *calendar) find(now int64) state.Span {
	t := time.UnixMilli(now).In(c.zone)
	if c.kind == HourWindow {
		return c.hour(t)
	}
	// The date of t gives the window, unless midnight comes twice: then times of the date before may
	// follow on the start, and times of the date itself precede it.
	n := c.number(t)
	s := state.Span{From: c.start(n), To: c.start(n + 1)}
	for range 3 {
		switch {
		case now < s.From:
			n--
		case now >= s.To:
			n++
		default:
			return s
		}
		s = state.Span{From: c.start(n), To: c.start(n + 1)}
	}
	return s
}

// hour returns the hour of the clock, cut where the offset of the zone changes.
func (c *calendar) hour(t time.Time) state.Span {
	_, offset := t.Zone()
	length, shift := time.Hour.Milliseconds(), int64(offset)*1000
	now := t.UnixMilli()
	into := (now + shift) % length
	if into < 0 {
		into += length
	}
	s := state.Span{From: now - into, To: now - into + length}
	from, to := t.ZoneBounds()
	if !from.IsZero() {
		s.From = max(s.From, from.UnixMilli())
	}
	if !to.IsZero() {
		s.To = min(s.To, to.UnixMilli())
	}
	return s
}

// number counts the windows: days since 1970, months or years since the year 0.
func (c *calendar) number(t time.Time) int {
	year, month, day := t.Date()
	switch c.kind {
	case DayWindow:
		return int(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / (24 * 60 * 60))
	case MonthWindow:
		n := 12*year + int(month) - 1
		if day < c.anchorIn(n) {
			n--
		}
		return n
	default:
		if month < c.month || month == c.month && day < c.anchorIn(12*year+int(month)-1) {
			year--
		}
		return year
	}
}

// start returns when the window of a number begins.
func (c *calendar) start(n int) int64 {
	switch c.kind {
	case DayWindow:
		return c.midnight(1970, time.January, 1+n)
	case MonthWindow:
		return c.midnight(n/12, time.Month(n%12+1), c.anchorIn(n))
	default:
		return c.midnight(n, c.month, c.anchorIn(12*n+int(c.month)-1))
	}
}

// midnight returns when the day begins, which is later than at midnight where that was left out.
func (c *calendar) midnight(year int, month time.Month, day int) int64 {
	t := time.Date(year, month, day, 0, 0, 0, 0, c.zone)
	from, to := t.ZoneBounds()
	switch {
	case t.Hour() == 0:
		return t.UnixMilli()
	case t.Hour() < 12:
		return from.UnixMilli()
	default:
		return to.UnixMilli()
	}
}

// anchorIn returns the day on which the window that begins in a month does.
func (c *calendar) anchorIn(month int) int {
	last := time.Date(month/12, time.Month(month%12+2), 0, 0, 0, 0, 0, time.UTC).Day()
	return min(c.anchor, last)
}
