package tiers

import (
	"errors"
	"time"
)

// Period is the time in which the refill of a limit comes back. In a document it is a duration such
// as 1s, 90s or 24h, or one of the words second, minute, hour and day.
type Period time.Duration

// The periods that have a word in the document.
const (
	Second = Period(time.Second)
	Minute = Period(time.Minute)
	Hour   = Period(time.Hour)
	// Day is 24 hours, not a day of the calendar.
	Day = Period(24 * time.Hour)
)

// errPeriod says what would fit.
var errPeriod = errors.New("not a period; second, minute, hour, day or a duration such as 90s fits")

// String returns the word of the period if it has one, else its duration.
func (p Period) String() string {
	switch p {
	case Second:
		return "second"
	case Minute:
		return "minute"
	case Hour:
		return "hour"
	case Day:
		return "day"
	default:
		return time.Duration(p).String()
	}
}

// MarshalText writes the period as [Period.String] does.
func (p Period) MarshalText() ([]byte, error) {
	return []byte(p.String()), nil
}

// UnmarshalText reads a word or a duration.
func (p *Period) UnmarshalText(text []byte) error {
	switch string(text) {
	case "second":
		*p = Second
	case "minute":
		*p = Minute
	case "hour":
		*p = Hour
	case "day":
		*p = Day
	default:
		d, err := time.ParseDuration(string(text))
		if err != nil {
			// The error of package time echoes the text, which may be long.
			return errPeriod
		}
		*p = Period(d)
	}
	return nil
}
