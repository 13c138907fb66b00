package tiers

import (
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// setting is what a part of a policy does to an operation that exceeds it, and while the store is
// away. The zero value enforces and fails bounded.
type setting struct {
	mode bucket.Mode
	// enforceFrom is when mode warn becomes enforce. It is zero if nobody knows, and for other modes.
	enforceFrom time.Time
	failMode    bucket.FailMode
}

// with returns what holds for a part that says this itself, where empty inherits.
func (s setting) with(mode, enforceFrom, failMode string) setting {
	if mode != "" {
		s.mode, _ = parseMode(mode)
		s.enforceFrom, _ = parseDay(enforceFrom)
	}
	if failMode != "" {
		s.failMode, _ = parseFailMode(failMode)
	}
	return s
}

// moment is what decides how strict a setting is.
type moment struct {
	// day is the one as of which modes hold.
	day time.Time
	// early has what is in mode shadow or warn enforced: for tenants in the share of their tier ([Enforcement]).
	early bool
	// strictest is the strictest mode.
	strictest bucket.Mode
}

// as returns the setting as it holds at a moment.
func (s setting) as(m moment) setting {
	comes := !s.enforceFrom.IsZero() && !s.enforceFrom.After(m.day)
	if comes || m.early && (s.mode == bucket.Warn || s.mode == bucket.Shadow) {
		s.mode, s.enforceFrom = bucket.Enforce, time.Time{}
	}
	if s.mode < m.strictest {
		// What an operator has eased begins on no day that clients could be told.
		s.mode, s.enforceFrom = m.strictest, time.Time{}
	}
	return s
}

// parseMode returns the mode of a word of the document. Empty is fine, and whoever inherits a mode
// does not ask.
func parseMode(word string) (bucket.Mode, bool) {
	switch word {
	case "", bucket.Enforce.String():
		return bucket.Enforce, true
	case bucket.Warn.String():
		return bucket.Warn, true
	case bucket.Shadow.String():
		return bucket.Shadow, true
	case bucket.Off.String():
		return bucket.Off, true
	default:
		return 0, false
	}
}

// parseFailMode returns the fail mode of a word of the document. Empty is fine, as it is for a mode.
func parseFailMode(word string) (bucket.FailMode, bool) {
	switch word {
	case "", bucket.FailBounded.String():
		return bucket.FailBounded, true
	case bucket.FailClosed.String():
		return bucket.FailClosed, true
	case bucket.FailLocal.String():
		return bucket.FailLocal, true
	case bucket.FailOpen.String():
		return bucket.FailOpen, true
	default:
		return 0, false
	}
}

// parseDay returns the start of a day in UTC, zero if the text is empty.
func parseDay(text string) (time.Time, bool) {
	if text == "" {
		return time.Time{}, true
	}
	day, err := time.Parse(time.DateOnly, text)
	return day, err == nil
}
