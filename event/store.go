package event

import (
	"log/slog"
	"time"
)

// StoreAway says that the store does not answer, so that operations are decided by the fail modes of their
// limits. A store that fails now and then is told once a second at most.
type StoreAway struct {
	// At is when, by the clock of the replica.
	At time.Time
	// Store is the name that policies call it, empty for the default one.
	Store string
	// Result is unavailable, or ambiguous if nobody knows whether the store has acted.
	Result string
}

// Name returns store_away.
func (StoreAway) Name() string { return "store_away" }

// LogValue returns all fields but the time.
func (e StoreAway) LogValue() slog.Value {
	return withStore(e.Store, slog.String("result", e.Result))
}

// withStore is a group that names the store, unless that is the default one.
func withStore(store string, attributes ...slog.Attr) slog.Value {
	if store != "" {
		attributes = append([]slog.Attr{slog.String("store", store)}, attributes...)
	}
	return slog.GroupValue(attributes...)
}

// Sum adds up operations and what they cost.
type Sum struct {
	Operations, Points int64
}

func (s Sum) attribute(key string) slog.Attr {
	return slog.Group(key, slog.Int64("operations", s.Operations), slog.Int64("points", s.Points))
}

// StoreBack says that the store answers again, and what this replica has decided without it since it answered
// before.
type StoreBack struct {
	// At is when, by the clock of the replica, and Away for how long it was away.
	At   time.Time
	Away time.Duration
	// Store is the name that policies call it, empty for the default one.
	Store string
	// Unjudged are operations that ran although nobody could say whether their limits, which fail open, had the
	// amount, and Refused those that did not run for that reason.
	Unjudged, Refused Sum
	// AdmittedLocally are operations that ran within this replica's share of their limits, which the store is
	// charged with, and LimitedLocally those for which the share had not enough left.
	AdmittedLocally, LimitedLocally Sum
}

// Name returns store_back.
func (StoreBack) Name() string { return "store_back" }

// LogValue returns all fields but the time.
func (e StoreBack) LogValue() slog.Value {
	return withStore(e.Store, slog.Duration("away", e.Away),
		e.Unjudged.attribute("unjudged"), e.Refused.attribute("refused"),
		e.AdmittedLocally.attribute("admittedLocally"), e.LimitedLocally.attribute("limitedLocally"))
}
