package ratelimit

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
)

// stored measures a call of the store, and tells the logger and the observer when the store goes and when it is
// back.
func (e *Extension) stored(ctx context.Context, b *backend, call string, took time.Duration, err error) {
	e.telemetry.stored(ctx, b, call, took, err)
	switch {
	case err == nil:
		if back, ends := b.absence.ends(time.Now()); ends {
			e.cfg.Logger.InfoContext(ctx, "ratelimit: the store is back: operations are judged again", b.logged()...)
			back.Store = b.name
			e.facts.tell(ctx, back)
		}
	case errors.Is(err, bucket.ErrInvalid):
		e.cfg.Logger.ErrorContext(ctx, "ratelimit: the store was called wrongly", b.logged(slog.String("error", err.Error()))...)
	default:
		if now := time.Now(); b.absence.begins(now) {
			e.cfg.Logger.WarnContext(ctx, "ratelimit: the store is away: operations are decided by the fail modes of their limits",
				b.logged(slog.String("error", err.Error()))...)
			e.facts.tell(ctx, event.StoreAway{At: now, Store: b.name, Result: storeResult(err)})
		}
	}
}

// absence says whether the logger knows that the store is away, and adds up what was decided meanwhile. The
// zero value says that it does not. A store that fails now and then is reported once a second at most.
type absence struct {
	told atomic.Bool
	// last is when the logger was told, in Unix nanoseconds.
	last atomic.Int64
	// decided are the sums since the store was last there.
	unjudged, refused, admittedLocally, limitedLocally awaySum
}

// awaySum adds up operations.
type awaySum struct {
	operations, points atomic.Int64
}

func (a *absence) begins(now time.Time) bool {
	last := a.last.Load()
	if a.told.Load() || now.UnixNano()-last < int64(time.Second) || !a.last.CompareAndSwap(last, now.UnixNano()) {
		return false
	}
	return a.told.CompareAndSwap(false, true)
}

// ends returns what there is to say when the store is back, and whether it was away.
func (a *absence) ends(now time.Time) (event.StoreBack, bool) {
	if !a.told.Load() || !a.told.CompareAndSwap(true, false) {
		return event.StoreBack{}, false
	}
	return event.StoreBack{
		At: now, Away: max(0, time.Duration(now.UnixNano()-a.last.Load())),
		Unjudged: a.unjudged.take(), Refused: a.refused.take(),
		AdmittedLocally: a.admittedLocally.take(), LimitedLocally: a.limitedLocally.take(),
	}, true
}

// count adds an operation that was decided without the store.
func (a *absence) count(outcome Outcome, points int64) {
	switch outcome {
	case Unjudged:
		a.unjudged.add(points)
	case AdmittedLocally:
		a.admittedLocally.add(points)
	case LimitedLocally:
		a.limitedLocally.add(points)
	default:
		a.refused.add(points)
	}
}

func (s *awaySum) add(points int64) {
	s.operations.Add(1)
	s.points.Add(points)
}

// take returns the sum and begins anew.
func (s *awaySum) take() event.Sum {
	return event.Sum{Operations: s.operations.Swap(0), Points: s.points.Swap(0)}
}
