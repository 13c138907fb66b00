package show

import (
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
)

// headline is the limit that stands at the top of the extension: the tightest of those that clients pace themselves by,
// of the unit if one is given, nil if there is none. Its numbers are those of the store (LimitState.show of package bucket).
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
