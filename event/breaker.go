package event

import (
	"log/slog"
	"time"
)

// BreakerState is what a breaker does with calls.
type BreakerState string

// States of a breaker.
const (
	// BreakerClosed lets every call pass.
	BreakerClosed BreakerState = "closed"
	// BreakerOpen refuses every call.
	BreakerOpen BreakerState = "open"
	// BreakerHalfOpen lets one call pass, whose outcome decides between the other two.
	BreakerHalfOpen BreakerState = "half_open"
)

// BreakerChanged says that the breaker of one node of the store has changed its state.
type BreakerChanged struct {
	// At is when, by the clock of the replica.
	At time.Time
	// Node is the address of the node, or the name of the master behind Sentinels.
	Node string
	// From is the state before, To the one since.
	From, To BreakerState
}

// Name returns breaker_changed.
func (BreakerChanged) Name() string { return "breaker_changed" }

// LogValue returns all fields but the time.
func (e BreakerChanged) LogValue() slog.Value {
	return slog.GroupValue(slog.String("node", e.Node), slog.String("from", string(e.From)), slog.String("to", string(e.To)))
}
