package backend

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pending"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// settlement is one that waits for its store.
type settlement struct {
	bucket.Settlement

	told decision.Settlement
	// span is where in a trace the operation belongs.
	span trace.SpanContext
	// until is when it would not settle any more.
	until time.Time
}

// queue settles charges after their responses, so that no response waits for it. At most so many wait as it has room
// for. Its workers end when nothing waits, so that a queue that is never closed leaves nothing behind.
type queue struct {
	// settle asks the store.
	settle func(context.Context, bucket.Settlement) (bucket.Settled, error)
	// ended is told of each settlement what became of it, once.
	ended   func(context.Context, *decision.Settlement)
	waiting chan *settlement
	// life ends calls and pauses when it is stopped.
	life context.Context //nolint:containedctx // it is the life of the workers
	stop context.CancelFunc

	mu      sync.Mutex
	workers int
	closed  bool
	// pending counts what was taken in and not yet told.
	pending pending.Counter
}

const (
	maxWorkers = 8
	// waitingPerWorker is how many settlements may wait before another worker begins.
	waitingPerWorker = 16
	firstPause       = 50 * time.Millisecond
	longestPause     = 5 * time.Second
)

func newQueue(room int, settle func(context.Context, bucket.Settlement) (bucket.Settled, error),
	ended func(context.Context, *decision.Settlement),
) *queue {
	q := &queue{settle: settle, ended: ended, waiting: make(chan *settlement, room)}
	q.life, q.stop = context.WithCancel(context.Background())
	return q
}

// offer takes a settlement in. It never blocks, and returns false if the settlement was dropped.
func (q *queue) offer(ctx context.Context, s bucket.Settlement, reason, tier string) bool {
	item := &settlement{
		Settlement: s, told: decision.Settlement{Reason: reason, Tier: tier},
		span: trace.SpanContextFromContext(ctx), until: time.Now().Add(state.MarkerLife * time.Millisecond),
	}
	dropped := q.admit(item) //nolint:contextcheck // a settlement outlives its request
	if dropped != "" {
		q.tell(item, dropped) //nolint:contextcheck // it is told as those that wait are
	}
	return dropped == ""
}

// tell tells what became of a settlement.
func (q *queue) tell(item *settlement, result decision.SettlementResult) {
	item.told.Result = result
	q.ended(trace.ContextWithSpanContext(context.Background(), item.span), &item.told)
}

// admit returns why an item was dropped, empty if it was not.
func (q *queue) admit(item *settlement) (dropped decision.SettlementResult) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return decision.DroppedClosed
	}
	select {
	case q.waiting <- item:
		q.pending.Add(1)
	default:
		return decision.DroppedFull
	}
	if q.workers == 0 || q.workers < maxWorkers && len(q.waiting) > q.workers*waitingPerWorker {
		q.workers++
		go q.work()
	}
	return ""
}

// work settles until nothing waits.
func (q *queue) work() {
	for item := q.next(); item != nil; item = q.next() {
		q.tell(item, q.try(item))
		q.pending.Add(-1)
	}
}

// next returns nil when the worker is to end.
func (q *queue) next() *settlement {
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
func (q *queue) try(item *settlement) decision.SettlementResult {
	lost := false
	item.told.Began = time.Now()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		if q.life.Err() != nil {
			return decision.DroppedClosed
		}
		if !time.Now().Before(item.until) {
			return decision.DroppedAway
		}
		item.told.Calls++
		settled, err := q.settle(q.life, item.Settlement)
		if err == nil {
			item.told.Answered(&settled, lost)
			return item.told.Result
		}
		ambiguous := errors.Is(err, bucket.ErrAmbiguous)
		if !ambiguous && !errors.Is(err, bucket.ErrUnavailable) {
			return decision.SettlementFailed
		}
		lost = lost || ambiguous
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
