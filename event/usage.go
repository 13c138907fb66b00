package event

import (
	"context"
	"time"
)

// UsageCounted says that a store has counted usage of a tenant, or corrected it, or may have: the reply to that call was lost. What it counts
// is read from the store.
type UsageCounted struct {
	// Store is the name of the store, empty for the default one.
	Store string
	// Tenant is its whole name.
	Tenant string
	// At is in the minute in which it was counted, by the clock of the store as far as it is known.
	At time.Time
	// Local says that a local share had admitted it, and that it was counted when that was settled.
	Local bool
}

// UsageCounter is an [Observer] that is told whose usage was counted, after each call of a store that counts: of an operation, of a charge
// inside one, and of what corrects them later. It is called by many at once, in requests and outside of them, so that it must not block and should
// allocate nothing. The name of the tenant is that of the request: whoever keeps it copies it.
type UsageCounter interface {
	Observer
	// CountUsage is told whose usage was counted.
	CountUsage(c UsageCounted)
}

// UsageCounterOf is [CounterOf] for those who are told whose usage was counted.
func UsageCounterOf(o Observer) UsageCounter {
	switch found := each[UsageCounter](o); len(found) {
	case 0:
		return nil
	case 1:
		return found[0]
	default:
		return usageCounters(found)
	}
}

// usageCounters are told in turn.
type usageCounters []UsageCounter

// Observe tells nobody: they are observers of their own.
func (usageCounters) Observe(context.Context, Event) {}

// CountUsage tells each.
func (u usageCounters) CountUsage(c UsageCounted) {
	for _, counter := range u {
		counter.CountUsage(c)
	}
}
