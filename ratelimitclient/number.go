package ratelimitclient

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// errNotWhole is what an amount with a fraction is.
var errNotWhole = errors.New("ratelimitclient: amount is not a whole number")

// amount is an int64 that reads any whole JSON number and saturates.
type amount int64

// UnmarshalJSON implements json.Unmarshaler.
func (a *amount) UnmarshalJSON(data []byte) error {
	text := string(data)
	if text == "null" {
		return nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		*a = amount(n)
		return nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("ratelimitclient: amount: %w", err)
	}
	switch {
	// As a float64, math.MaxInt64 is 2^63, which an int64 does not hold.
	case f >= math.MaxInt64:
		*a = math.MaxInt64
	case f <= math.MinInt64:
		*a = math.MinInt64
	case f != math.Trunc(f):
		return fmt.Errorf("%w: %s", errNotWhole, text)
	default:
		*a = amount(f)
	}
	return nil
}

// looseAmount is an amount that is zero where it cannot be read, because the code of a refusal
// matters more than its numbers, and an error here would end the decoding before the code.
type looseAmount int64

// UnmarshalJSON implements json.Unmarshaler. It returns no error.
func (a *looseAmount) UnmarshalJSON(data []byte) error {
	var exact amount
	if exact.UnmarshalJSON(data) != nil {
		exact = 0
	}
	*a = looseAmount(exact)
	return nil
}

// Seconds is a duration as it stands in JSON: rounded up to whole milliseconds, so that a client that
// waits so long never comes early. Milliseconds are counted in integers, because a float64 does not
// hold every number of nanoseconds.
func Seconds(d time.Duration) float64 {
	millis := d / time.Millisecond
	if d%time.Millisecond > 0 {
		millis++
	}
	return float64(millis) / 1000
}

// fromSeconds rounds up to whole milliseconds as well, and is the inverse of [Seconds] for them. What
// is negative becomes zero, and what is too long becomes the longest duration.
func fromSeconds(s float64) time.Duration {
	// noise, in milliseconds, is more than seconds differ from the milliseconds they were made of,
	// however many.
	const noise = 0.005
	if s <= 0 || math.IsNaN(s) {
		return 0
	}
	millis := math.Ceil(s*1000 - noise)
	if millis > float64(math.MaxInt64/time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(millis) * time.Millisecond
}
