// Package decision is what was decided about one operation, as plain data: one value that the code which decides fills,
// and that everything which tells of it reads.
package decision

import (
	"math"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Decision is what was decided about an operation, or about a charge inside one. Package ratelimit documents the fields
// that it has there too.
type Decision struct {
	Outcome Outcome
	Subject tiers.Subject
	Tier    string

	// Kind is empty for a document that did not validate. Name is the one that the client gave the operation.
	Kind       ast.Operation
	Name       string
	RootFields []string
	// Selected is what operation rules of the policy have looked at, or would have, nil if there are none that could apply and nobody counts.
	Selected *tiers.Selection

	Cost                      cost.Cost
	Breakdown                 *cost.Breakdown
	Points, Charged, Refunded int64
	// Openly is what of Charged limits were charged that the client is told of: those that refuse or warn.
	Openly int64
	Actual *int64

	// Asked are the amounts that the store was asked for.
	Asked     bucket.Amounts
	Limits    []bucket.LimitState
	Candidate *Candidate
	// Refusal says why the operation does not run, WouldRefuse why it would not if everything were enforced.
	Refusal, WouldRefuse *Refusal

	// Rules are what the policy says of the subject.
	Rules         *tiers.Rules
	StoreDuration time.Duration
	// StoreErr is the error of the store, and FailMode what the limits do about it.
	StoreErr error

	// What is small stands together, because each decision is in the memory of its operation.
	FailMode bucket.FailMode
	Mode     bucket.Mode
	// Keyed says that the store was given an idempotency key.
	Keyed bool
	// KeyIgnored says that the operation carries an idempotency key, and that it is ignored: of an anonymous caller, in the upgrade of a WebSocket,
	// or of what costs nothing under limits that count points alone.
	KeyIgnored bool
	// Correctable says that what the operation comes to can change what it is charged.
	Correctable bool
	// Counted says that what the operation comes to is added up whether or not it is Correctable.
	Counted    bool
	Overridden bool
	// RefusedInside says that a charge inside the operation was refused, of which no answer has told in full.
	RefusedInside bool
	// Hide is what the client is not told. ShowShadow says that it is told of what is in mode shadow or off, and Full of every
	// limit, because it or the server asks for that.
	Hide             tiers.Hide
	ShowShadow, Full bool
}

// Candidate is what a candidate policy would have decided.
type Candidate struct {
	ID      string
	Outcome Outcome
	Limits  []bucket.LimitState
}

// Pay adds to what was charged what limits that count points were asked for, at most the points: all of them, where it is not
// paid in parts.
func (d *Decision) Pay(limits []bucket.LimitState, points int64) {
	d.Charged += paid(limits, points, bucket.Off)
	d.Openly += paid(limits, points, bucket.Warn)
}

// paid returns how many of the points limits were charged that are in a mode, or a stricter one. Limits that hold for all
// operations are asked for the same; each rule of an operation may be asked for a part of its own.
func paid(limits []bucket.LimitState, points int64, mode bucket.Mode) int64 {
	general, rules, rule := int64(0), int64(0), int64(0)
	for i := range limits {
		l := &limits[i]
		if i > 0 && l.Owner != limits[i-1].Owner {
			rules, rule = min(points, rules+rule), 0
		}
		switch {
		case l.Limit.Unit != bucket.Points || l.Charged <= 0 || l.Limit.Mode > mode:
		case l.Owner.Level == bucket.Operation:
			rule = max(rule, l.Asked)
		default:
			general = max(general, l.Asked)
		}
	}
	return min(points, general+rules+rule)
}

// StoreAway says that the store was not asked although it should have been, so that what is left is not known.
func (d *Decision) StoreAway() bool {
	return d.Outcome == Unjudged || d.Outcome == Unavailable || d.Outcome.Locally()
}

// Because returns what refused, or else what would have, nil if nothing.
func (d *Decision) Because() *Refusal {
	if d.Refusal != nil {
		return d.Refusal
	}
	return d.WouldRefuse
}

// Tightest returns the chosen limit with the smallest remaining share, nil if none is chosen.
func (d *Decision) Tightest(chosen func(*bucket.LimitState) bool) *bucket.LimitState {
	var tightest *bucket.LimitState
	share := math.Inf(1)
	for i := range d.Limits {
		l := &d.Limits[i]
		if s := float64(l.Remaining) / float64(l.Limit.Capacity); s < share && chosen(l) {
			share, tightest = s, l
		}
	}
	return tightest
}

// EnforcedFrom returns when the policy has the limit enforced, zero if nobody knows. An override record beats the policy
// on its day too: of a limit that has one no day is promised.
func (d *Decision) EnforcedFrom(l *bucket.LimitState) time.Time {
	if l.Overridden {
		return time.Time{}
	}
	return d.Rules.LimitEnforcedFrom(l.Owner, l.Limit.Name)
}

// RefusesIn reports whether the limit does not have the amount, in the mode. A soft limit reports, whatever its mode.
func RefusesIn(mode bucket.Mode, l *bucket.LimitState) bool {
	return l.Exceeded && !l.Limit.Soft && l.Limit.Mode == mode
}
