package show

import (
	"math"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
)

// outlook is what the limits of a decision come to for its client.
type outlook struct {
	// mode is the strictest one of the limits: clients pace themselves by those that refuse, since for any other they would
	// wait for nothing, and only where none does by what is to come.
	mode bucket.Mode
	// top is the limit that stands at the top of the extension, and wherever a client is told of one: the one that refused, or
	// else the tightest that counts points, so that the price of an operation can be compared with what remains, and of any unit
	// where none does. It is nil if there is none. Its numbers are those of the store (LimitState.show of package bucket).
	top *bucket.LimitState
	// tightest is that of any unit.
	tightest *bucket.LimitState
}

// look finds the outlook.
func look(d *decision.Decision) outlook {
	o := outlook{mode: bucket.Off}
	for i := range d.Limits {
		if l := d.Limits[i].Limit; !l.Soft {
			o.mode = min(o.mode, l.Mode)
		}
	}
	least, leastInPoints := math.Inf(1), math.Inf(1)
	for i := range d.Limits {
		l := &d.Limits[i]
		if !o.paces(l) || spared(d, l) {
			continue
		}
		share := shareLeft(d, l)
		if share < least {
			least, o.tightest = share, l
		}
		if share < leastInPoints && l.Limit.Unit == bucket.Points {
			leastInPoints, o.top = share, l
		}
	}
	if o.top == nil {
		o.top = o.tightest
	}
	if refused := refusing(d); refused != nil {
		o.top = refused
	}
	return o
}

// refusing is the limit that refused the operation, nil if none did, or if it is none that the client is told of.
func refusing(d *decision.Decision) *bucket.LimitState {
	if d.Refusal == nil || d.Refusal.Limit == nil {
		return nil
	}
	for i := range d.Limits {
		l := &d.Limits[i]
		if l.Owner == d.Refusal.Owner && l.Limit.Name == d.Refusal.Limit.Name {
			return l
		}
	}
	return nil
}

// spared reports whether the operation pays nothing to a limit, because a rule stands in its place.
func spared(d *decision.Decision, l *bucket.LimitState) bool {
	return d.Rules != nil && d.Rules.Spares(l.Owner, l.Limit.Unit)
}

// paces reports whether clients pace themselves by the limit.
func (o *outlook) paces(l *bucket.LimitState) bool { return !l.Limit.Soft && l.Limit.Mode == o.mode }

// shareLeft is what makes a limit the tightest, as far as the client can know: where capacities are hidden what remains
// itself, and where that is hidden nothing, so that the first one counts as the tightest.
func shareLeft(d *decision.Decision, l *bucket.LimitState) float64 {
	switch {
	case d.Hide.Remaining:
		return 0
	case d.Hide.Limits:
		return float64(l.Remaining)
	default:
		return float64(l.Remaining) / float64(l.Limit.Capacity)
	}
}

// tellsAll says that the client is told of every limit: it or the server asks for that, something refuses or warns, or
// the client paces itself by another limit than the one that will refuse it. Numbers that are hidden from it are not looked
// at, because the form of an answer would tell of them.
func (o *outlook) tellsAll(d *decision.Decision) bool {
	if d.Full || d.RefusedInside || d.Because() != nil {
		return true
	}
	for i := range d.Limits {
		if l := &d.Limits[i]; o.paces(l) && (l.Exceeded || l != o.top && refusesNext(d, l)) {
			return true
		}
	}
	return o.top != nil && o.tightest.Limit.Unit != o.top.Limit.Unit && overHalf(d, o.tightest)
}

// names says that headers name the limit: the one at the top of the extension, those that will refuse or have, and for
// whoever asks for everything all.
func (o *outlook) names(d *decision.Decision, l *bucket.LimitState) bool {
	return o.paces(l) && (d.Full || l == o.top || l.Exceeded || overHalf(d, l) || refusesNext(d, l))
}

// overHalf says that more than half of a limit is used, as far as the client can know.
func overHalf(d *decision.Decision, l *bucket.LimitState) bool {
	return !d.Hide.Limits && !d.Hide.Remaining && l.Remaining < l.Limit.Capacity-l.Remaining
}

// refusesNext says that a limit does not have what the operation has asked for once more, as far as the client can know.
func refusesNext(d *decision.Decision, l *bucket.LimitState) bool {
	needed := l.Asked
	switch {
	case spared(d, l):
		needed = 0
	case l.Limit.Unit == bucket.Points:
		needed = d.Points
	}
	return !d.Hide.Cost && !d.Hide.Remaining && l.Remaining < needed
}
