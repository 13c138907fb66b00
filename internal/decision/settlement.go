package decision

import (
	"math"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// Settlement is what became of the correction of a charge.
type Settlement struct {
	// Tier is that of the operation, and Reason says why its charge is corrected, in the word that metrics carry.
	Tier, Reason string
	Result       SettlementResult
	// Limits are those that the store has changed.
	Limits []bucket.LimitState
	// Began is when the store was first asked, and Calls how often it was asked for this alone.
	Began time.Time
	Calls int
}

// SettlementResult is what became of a settlement, in the word that metrics carry.
type SettlementResult string

// What becomes of settlements.
const (
	// SettledNow: this call settled.
	SettledNow SettlementResult = "settled"
	// SettledBefore: an earlier call, whose reply was lost, had settled.
	SettledBefore SettlementResult = "settled_before"
	// SettledLate: the operation ran for so long that the charge is not corrected any more.
	SettledLate SettlementResult = "late"
	// DroppedFull: too many settlements waited.
	DroppedFull SettlementResult = "dropped_full"
	// DroppedClosed: the stores were shut down.
	DroppedClosed SettlementResult = "dropped_closed"
	// DroppedAway: the store was away until it was too late.
	DroppedAway SettlementResult = "dropped_away"
	// SettlementFailed: the store did not take the call.
	SettlementFailed SettlementResult = "failed"
)

// Answered notes what the store has answered. repeated says that it was asked before and the reply was lost.
func (s *Settlement) Answered(settled *bucket.Settled, repeated bool) {
	s.Limits = settled.Limits
	switch {
	case settled.Applied:
		s.Result = SettledNow
	case repeated:
		s.Result = SettledBefore
	default:
		s.Result = SettledLate
	}
}

// Projected is the state of a limit once the points have been given back, or charged on if they are negative.
// It says no less than will be left if nothing else is taken.
func Projected(l bucket.LimitState, points int64) bucket.LimitState {
	capacity := l.Limit.Capacity
	// What is left, negative where it is overdrawn: charging on overdraws to twice the capacity, and never gives back.
	left := l.Remaining - l.Overdraft
	left = min(capacity, left+max(min(0, -capacity-left), min(2*capacity, points)))
	l.Remaining, l.Overdraft = max(0, left), max(0, -left)
	switch {
	case l.Limit.Window.Kind == bucket.TokenBucket:
		refilled := float64(points) * float64(l.Limit.Period) / float64(l.Limit.Refill)
		longest := 2 * float64(capacity) * float64(l.Limit.Period) / float64(l.Limit.Refill)
		after := max(0, min(float64(l.ResetAfter)-refilled, max(longest, float64(l.ResetAfter)), math.MaxInt64/2))
		l.ResetAfter = time.Duration(after)
	case l.Remaining == capacity:
		l.ResetAfter, l.WindowEnd = 0, 0
	}
	return l
}
