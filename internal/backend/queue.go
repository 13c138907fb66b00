package backend

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pending"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// Settlement is one that waits for its store.
type Settlement struct {
	bucket.Settlement

	// Reason says why the charge is corrected, and Tier which tier's it was.
	Reason, Tier string
	// Span is where in a trace the operation belongs. [Store.Offer] sets it.
	Span trace.SpanContext
	// Began is when the store was first asked.
	Began time.Time
	// until is when it would not settle any more.
	until time.Time
}

// queue settles charges after their responses, so that no response waits for it. At most so many wait as it has room
// for. Its workers end when nothing waits, so that a queue that is never closed leaves nothing behind.
type queue struct {
	// settle asks the store.
	settle func(context.Context, bucket.Settlement) (bucket.Settled, error)
	// ended is told of each settlement what became of it, once, after how many calls.
	ended   func(ctx context.Context, item *Settlement, settled *bucket.Settled, result Result, calls int)
	waiting chan *Settlement
	// life ends calls and pauses when it is stopped.
	life context.Context //nolint:containedctx // it is the life of the workers
	stop context.CancelFunc

	mu      sync.Mutex
	workers int
	closed  bool
	// pending counts what was taken in and not yet told.
	pending pending.Counter
}

// Result is what became of a settlement, in the word that metrics carry.
type Result string

// What becomes of settlements.
const (
	// SettledNow: this call settled.
	SettledNow Result = "settled"
	// SettledBefore: an earlier call, whose reply was lost, had settled.
	SettledBefore Result = "settled_before"
	// SettledLate: the operation ran for so long that the charge is not corrected any more.
	SettledLate Result = "late"
	// DroppedFull: too many settlements waited.
	DroppedFull Result = "dropped_full"
	// DroppedClosed: the stores were shut down.
	DroppedClosed Result = "dropped_closed"
	// DroppedAway: the store was away until it was too late.
	DroppedAway Result = "dropped_away"
	// SettlementFailed: the store did not take the call.
	SettlementFailed Result = "failed"
)

const (
	maxWorkers = 8
	// waitingPerWorker is how many settlements may wait before another worker begins.
	waitingPerWorker = 16
	firstPause       = 50 * time.Millisecond
	longestPause     = 5 * time.Second
)

func newQueue(room int, settle func(context.Context, bucket.Settlement) (bucket.Settled, error),
	ended func(context.Context, *Settlement, *bucket.Settled, Result, int),
) *queue {
	q := &queue{settle: settle, ended: ended, waiting: make(chan *Settlement, room)}
	q.life, q.stop = context.WithCancel(context.Background())
	return q
}

// offer takes a settlement in. It never blocks, and returns false if the settlement was dropped.
func (q *queue) offer(ctx context.Context, item *Settlement) bool {
	item.Span = trace.SpanContextFromContext(ctx)
	item.until = time.Now().Add(state.MarkerLife * time.Millisecond)
	result := q.admit(item) //nolint:contextcheck // a settlement outlives its request
	if result != SettledNow {
		q.tell(item, &bucket.Settled{}, result, 0) //nolint:contextcheck // it is told as those that wait are
		return false
	}
	return true
}

// tell tells what became of a settlement.
func (q *queue) tell(item *Settlement, settled *bucket.Settled, result Result, calls int) {
	q.ended(trace.ContextWithSpanContext(context.Background(), item.Span), item, settled, result, calls)
}

// admit returns why an item was dropped, SettledNow if it was not.
func (q *queue) admit(item *Settlement) Result {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return DroppedClosed
	}
	select {
	case q.waiting <- item:
		q.pending.Add(1)
	default:
		return DroppedFull
	}
	if q.workers == 0 || q.workers < maxWorkers && len(q.waiting) > q.workers*waitingPerWorker {
		q.workers++
		go q.work()
	}
	return SettledNow
}

// work settles until nothing waits.
func (q *queue) work() {
	for item := q.next(); item != nil; item = q.next() {
		settled, result, calls := q.try(item)
		q.tell(item, &settled, result, calls)
		q.pending.Add(-1)
	}
}

// next returns nil when the worker is to end.
func (q *queue) next() *Settlement {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case item := <-q.waiting:
		return item
	default:
		q.workers--
		return nil
	}
}

// try asks until the store has answered or would not settle any more. A marker in the store makes it
// happen once, however often it is tried.
func (q *queue) try(item *Settlement) (settled bucket.Settled, result Result, calls int) {
	lost := false
	item.Began = time.Now()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		if q.life.Err() != nil {
			return bucket.Settled{}, DroppedClosed, calls
		}
		if !time.Now().Before(item.until) {
			return bucket.Settled{}, DroppedAway, calls
		}
		calls++
		settled, err := q.settle(q.life, item.Settlement)
		switch {
		case err == nil && settled.Applied:
			return settled, SettledNow, calls
		case err == nil && lost:
			return settled, SettledBefore, calls
		case err == nil:
			return settled, SettledLate, calls
		case !errors.Is(err, bucket.ErrUnavailable) && !errors.Is(err, bucket.ErrAmbiguous):
			return settled, SettlementFailed, calls
		}
		lost = lost || errors.Is(err, bucket.ErrAmbiguous)
		select {
		case <-time.After(pause):
		case <-q.life.Done():
		}
	}
}

// end takes nothing in any more.
func (q *queue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}

// close waits until nothing waits. What waits longer than the context is dropped.
func (q *queue) close(ctx context.Context) error {
	defer q.stop()
	if err := q.pending.Wait(ctx); err != nil {
		return fmt.Errorf("ratelimit: settlements still waited for the store and were dropped: %w", err)
	}
	return nil
}
