package backend

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
)

// toldEvery is how often a store that fails now and then is said to have gone.
const toldEvery = time.Second

// What becomes of an operation meanwhile is decided where takes are, in the root: take.go.

// absence follows whether a store is there, and adds up what was decided without it. The zero value says that it is
// there.
type absence struct {
	// away says that the last call failed.
	away atomic.Bool

	mu sync.Mutex
	// counted is until when the time away was returned.
	counted time.Time
	// told says that its going was told, last at the time went.
	told bool
	went time.Time

	unjudged, refused, admittedLocally, limitedLocally sum
}

// change is what a call of the store has shown.
type change uint8

const (
	asBefore change = iota
	hasGone
	isBack
)

// observe notes how a call ended. It returns what there is to tell of that, and the time away that was not returned
// before.
func (a *absence) observe(now time.Time, failed bool) (change, time.Duration) {
	if !failed && !a.away.Load() {
		return asBefore, 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var since time.Duration
	if a.away.Load() {
		since = max(0, now.Sub(a.counted))
	}
	a.counted = now
	a.away.Store(failed)
	switch {
	case failed && !a.told && now.Sub(a.went) >= toldEvery:
		a.told, a.went = true, now
		return hasGone, since
	case !failed && a.told:
		a.told = false
		return isBack, since
	default:
		return asBefore, since
	}
}

// Decided counts an operation that was decided while the store was away.
func (b *Store) Decided(outcome decision.Outcome, points int64) {
	a := &b.absence
	s := &a.refused
	switch outcome {
	case decision.Unjudged:
		s = &a.unjudged
	case decision.AdmittedLocally:
		s = &a.admittedLocally
	case decision.LimitedLocally:
		s = &a.limitedLocally
	default:
	}
	s.operations.Add(1)
	s.points.Add(points)
}

// sum adds up operations.
type sum struct {
	operations, points atomic.Int64
}

// take returns the sum and begins anew.
func (s *sum) take() event.Sum {
	return event.Sum{Operations: s.operations.Swap(0), Points: s.points.Swap(0)}
}

// over returns what there is to tell of an absence that is over.
func (a *absence) over(now time.Time) event.StoreBack {
	a.mu.Lock()
	defer a.mu.Unlock()
	return event.StoreBack{
		At: now, Away: max(0, now.Sub(a.went)),
		Unjudged: a.unjudged.take(), Refused: a.refused.take(),
		AdmittedLocally: a.admittedLocally.take(), LimitedLocally: a.limitedLocally.take(),
	}
}
