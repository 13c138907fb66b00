package decision

import (
	"time"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// Refusal says why an operation, or a charge inside it, was refused, or would have been. Package ratelimit documents the
// fields that its RefusedError has too.
type Refusal struct {
	// ID is empty until somebody is told of the refusal, and if nobody is.
	ID      string
	Outcome Outcome
	// RetryAfter is exact: where a window ends for many clients at once, they are told a later time.
	RetryAfter time.Duration

	Limit *bucket.Limit
	Owner bucket.Owner
	// Needed is how much of the limit was asked for, Remaining what was left, and WindowEnd when its window ends.
	Needed, Remaining, WindowEnd int64

	Cost, MaxCost int64
	Shape         *cost.ShapeError
	// BlockedBy is the override record that blocks the operation, nil if none does.
	BlockedBy *bucket.Override
	// Dearest is the call that adds most to a price that refused or warns, nil if it is not known.
	Dearest *Dearest

	Mode        bucket.Mode
	EnforceFrom time.Time
	// ShedShare is the share of operations of the tier that is shed, where that is the reason.
	ShedShare float64

	// Detail says what is wrong where the other fields do not.
	Detail string
	// Cause is what has failed in the server, which its client is not told.
	Cause error
	// Presented is the error as the server's own code wants the client to see it. It is nil for all others.
	Presented *gqlerror.Error
}

// Dearest is the most expensive call of an operation. All its names are those of the schema.
type Dearest struct {
	// Coordinate is the field, and Percent its share of the cost, without what is below it.
	Coordinate string
	Percent    int
	// Calls is how often it happens, and ListSize how many elements it returns each time, zero if it returns no list.
	Calls, ListSize float64
	// Argument is the slicing argument that sized the list, empty if none did.
	Argument string
}

// DearestOf returns the most expensive call of a breakdown, nil if no call costs anything.
func DearestOf(b *cost.Breakdown) *Dearest {
	var most *cost.Entry
	total := b.OmittedType + b.OmittedField + b.Cost.Base
	for i := range b.Entries {
		entry := &b.Entries[i]
		own := entry.Type + entry.Field
		total += own
		if own > 0 && len(entry.Path) > 0 && (most == nil || own > most.Type+most.Field) {
			most = entry
		}
	}
	if most == nil {
		return nil
	}
	dearest := &Dearest{Coordinate: most.Coordinate, Calls: most.Calls}
	// Costs beyond any number have no shares.
	if share := (most.Type + most.Field) / total; share >= 0 && share <= 1 {
		dearest.Percent = int(100 * share)
	}
	if most.List != nil {
		dearest.ListSize, dearest.Argument = most.List.Size, most.List.Argument
	}
	return dearest
}

// AdmittedAs returns the outcome of an operation that runs although this would have refused it.
func (r *Refusal) AdmittedAs() Outcome {
	if r.Mode == bucket.Warn {
		return Warned
	}
	return Shadowed
}

// Refuse decides that the operation does not run.
func (d *Decision) Refuse(r *Refusal) {
	d.Outcome, d.Refusal = r.Outcome, r
}

// Note keeps what would have refused, if anything. Warn beats shadow; among warnings the earliest day of enforcement
// wins; ties keep the first.
func (d *Decision) Note(would *Refusal) {
	was := d.WouldRefuse
	if would != nil &&
		(was == nil || would.Mode < was.Mode || would.Mode == was.Mode && sooner(would.EnforceFrom, was.EnforceFrom)) {
		d.WouldRefuse = would
	}
}

// Admit decides that the operation runs.
func (d *Decision) Admit() {
	switch {
	case d.Subject.Exempt:
		d.Outcome = Exempt
	case d.WouldRefuse != nil:
		d.Outcome = d.WouldRefuse.AdmittedAs()
	default:
		d.Outcome = Admitted
	}
}

// RefusedBy returns the refusal by limits that do not have what was asked of them, nil if all have it.
func RefusedBy(limits []bucket.LimitState) *Refusal {
	return refusedBy(limits, func(l *bucket.LimitState) bool { return RefusesIn(bucket.Enforce, l) })
}

// WouldRefuseBy returns what the limits that refuse nothing would have refused, nil if there is nothing: first what
// clients are warned of, and of that what is enforced first.
func (d *Decision) WouldRefuseBy(limits []bucket.LimitState) *Refusal {
	if day, found := d.firstDay(limits); found {
		r := refusedBy(limits, func(l *bucket.LimitState) bool {
			return RefusesIn(bucket.Warn, l) && d.EnforcedFrom(l).Equal(day)
		})
		r.Mode, r.EnforceFrom = bucket.Warn, day
		return r
	}
	r := refusedBy(limits, func(l *bucket.LimitState) bool { return RefusesIn(bucket.Shadow, l) })
	if r != nil {
		r.Mode = bucket.Shadow
	}
	return r
}

// firstDay returns the earliest day on which a limit that clients are warned of is enforced, zero if nobody
// knows one of any. It returns false if there is no such limit.
func (d *Decision) firstDay(limits []bucket.LimitState) (day time.Time, found bool) {
	for i := range limits {
		l := &limits[i]
		if !RefusesIn(bucket.Warn, l) {
			continue
		}
		if from := d.EnforcedFrom(l); !found || sooner(from, day) {
			day, found = from, true
		}
	}
	return day, found
}

// sooner reports whether enforcement begins earlier on day a than on day b, where zero is a day that nobody
// knows: it comes last.
func sooner(a, b time.Time) bool {
	return !a.IsZero() && (b.IsZero() || a.Before(b))
}

// refusedBy names the limit that stands most in the way: one that can never pass before one that can, and of these the
// one with the longest wait. It returns nil if none is chosen.
func refusedBy(limits []bucket.LimitState, chosen func(*bucket.LimitState) bool) *Refusal {
	var worst *bucket.LimitState
	for i := range limits {
		l := &limits[i]
		if !chosen(l) {
			continue
		}
		if worst == nil || (l.Never && !worst.Never) || (l.Never == worst.Never && l.RetryAfter > worst.RetryAfter) {
			worst = l
		}
	}
	if worst == nil {
		return nil
	}
	r := &Refusal{
		Outcome: Limited, RetryAfter: worst.RetryAfter,
		Limit: worst.Limit, Owner: worst.Owner,
		Needed: worst.Asked, Remaining: worst.Remaining, WindowEnd: worst.WindowEnd,
	}
	if worst.Never {
		r.Outcome, r.RetryAfter = TooExpensive, 0
	}
	return r
}
