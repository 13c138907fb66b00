package tiers

import (
	"errors"
	"math"
	"time"
)

// Period is the time in which the refill of a limit comes back, or the length of its windows. In a
// document it is a duration such as 1s, 90s or 24h, or one of the words second, minute, hour, day, month
// and year.
type Period time.Duration

// The periods that have a word in the document.
const (
	Second = Period(time.Second)
	Minute = Period(time.Minute)
	Hour   = Period(time.Hour)
	// Day is 24 hours, and in calendar windows a day of the calendar.
	Day = Period(24 * time.Hour)
	// Month and Year are those of the calendar, for calendar windows only. They are no durations.
	Month = Period(math.MinInt64)
	Year  = Period(math.MinInt64 + 1)
)

// errPeriod says what would fit.
var errPeriod = errors.New("not a period; second, minute, hour, day, month, year or a duration such as 90s fits")

// words are the periods that have one.
var words = map[Period]string{
	Second: "second", Minute: "minute", Hour: "hour", Day: "day", Month: "month", Year: "year",
}

// String returns the word of the period if it has one, else its duration.
func (p Period) String() string {
	if word, found := words[p]; found {
		return word
	}
	return time.Duration(p).String()
}

// MarshalText writes the period as [Period.String] does.
func (p Period) MarshalText() ([]byte, error) {
	return []byte(p.String()), nil
}

// UnmarshalText reads a word or a duration.
func (p *Period) UnmarshalText(text []byte) error {
	for period, word := range words {
		if word == string(text) {
			*p = period
			return nil
		}
	}
	d, err := time.ParseDuration(string(text))
	if err != nil || Period(d) <= Year {
		// The error of package time echoes the text, which may be long.
		return errPeriod
	}
	*p = Period(d)
	return nil
}
