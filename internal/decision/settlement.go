package decision

import (
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
