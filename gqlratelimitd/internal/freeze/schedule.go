package freeze

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Every is how long billing periods are.
type Every string

// The lengths. Days and months are those of UTC, as statements have them.
const (
	Off     Every = "off"
	Daily   Every = "daily"
	Monthly Every = "monthly"
)

// Bounds of Schedule.Delay.
const (
	// MinDelay is how long settlements of a period come: before, it cannot be frozen.
	MinDelay = 48 * time.Hour
	// MaxDelay is less than days are kept for.
	MaxDelay = 60 * 24 * time.Hour
)

// Schedule says which periods are frozen, and when. The zero value freezes nothing.
type Schedule struct {
	// Every is how long the periods are. Empty means [Off].
	Every Every
	// Delay is how long after its end a period is frozen. Zero means [MinDelay].
	Delay time.Duration
}

// Complete fills in defaults. The error has everything that is wrong.
func (s *Schedule) Complete() error {
	s.Every, s.Delay = cmp.Or(s.Every, Off), cmp.Or(s.Delay, MinDelay)
	var mistakes []error
	if s.Every != Off && s.Every != Daily && s.Every != Monthly {
		mistakes = append(mistakes, fmt.Errorf("periods are %q: write %s, %s or %s", string(s.Every), Monthly, Daily, Off))
	}
	if s.Delay < MinDelay || s.Delay > MaxDelay {
		mistakes = append(mistakes, fmt.Errorf("a period is frozen %v after its end: write %v, for so long settlements of it come, to %v", s.Delay, MinDelay, MaxDelay))
	}
	return errors.Join(mistakes...)
}

// On reports whether anything is frozen.
func (s Schedule) On() bool { return s.Every == Daily || s.Every == Monthly }

// Period is a billing period: from a midnight of UTC on, and before another one.
type Period struct{ From, To time.Time }

// Period returns the period that begins on a day. It ends with the day or the month that the day is in, so that after a change of the schedule the
// next period is a shorter one, and no day is in two or in none.
func (s Schedule) Period(from time.Time) Period {
	begin := s.begin(from)
	if s.Every == Monthly {
		return Period{from, begin.AddDate(0, 1, 0)}
	}
	return Period{from, begin.AddDate(0, 0, 1)}
}

// Due is when a period is to be frozen.
func (s Schedule) Due(p Period) time.Time { return p.To.Add(s.Delay) }

// First is where freezing begins that is switched on at a time: with the first period that is not due before. If counts were collected later, it
// begins with the first one that has some.
func (s Schedule) First(now, collected time.Time) time.Time {
	first := s.begin(now.Add(-s.Delay))
	if some := s.begin(collected); some.After(first) {
		return some
	}
	return first
}

// begin is when the day or the month began that a time is in.
func (s Schedule) begin(t time.Time) time.Time {
	t = t.UTC()
	if s.Every == Monthly {
		return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
	}
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
}
