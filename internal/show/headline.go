package show

import (
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
)

// pace is the limit that stands at the top of the extension, and wherever a client is told of one: the tightest that counts
// points, so that the price of an operation can be compared with what remains, and of any unit where none does. It is nil
// if there is none.
func pace(d *decision.Decision) *bucket.LimitState {
	if l := headline(d, bucket.Points); l != nil {
		return l
	}
	return headline(d, "")
}

// headline is the tightest of the limits that clients pace themselves by, of the unit if one is given, nil if there is none. Its numbers are those of the store (LimitState.show of package bucket).
func headline(d *decision.Decision, unit bucket.Unit) *bucket.LimitState {
	mode := pacingMode(d)
	return d.Tightest(func(l *bucket.LimitState) bool { return paces(l, mode) && (unit == "" || unit == l.Limit.Unit) })
}

// pacingMode is the strictest mode of the limits: clients pace themselves by those that refuse, since for any
// other they would wait for nothing, and only where none does by what is to come.
func pacingMode(d *decision.Decision) bucket.Mode {
	mode := bucket.Off
	for i := range d.Limits {
		if l := d.Limits[i].Limit; !l.Soft {
			mode = min(mode, l.Mode)
		}
	}
	return mode
}

func paces(l *bucket.LimitState, mode bucket.Mode) bool {
	return !l.Limit.Soft && l.Limit.Mode == mode
}
