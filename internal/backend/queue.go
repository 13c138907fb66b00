package backend

import (
	"container/heap"
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

	// lost says that a reply was lost, pause is how long it waited last, and due when it is tried again.
	lost  bool
	pause time.Duration
	due   time.Time
}

// queue settles charges after their responses, so that no response waits for it. A settlement that the store does not
// take goes back with a date and holds no worker meanwhile, because a part of the store may be away while the others
// answer. At most so many wait as the queue has room for, beside those in the hands of workers. Workers end when nothing
// is due, so that a queue that is never closed leaves nothing behind.
type queue struct {
	// settle asks the store.
	settle func(context.Context, bucket.Settlement) (bucket.Settled, error)
	// ended is told of each settlement what became of it, once.
	ended func(context.Context, *decision.Settlement)
	room  int
	// life ends calls when it is stopped.
	life context.Context //nolint:containedctx // it is the life of the workers
	stop context.CancelFunc

	mu sync.Mutex
	// fresh were not tried yet, later are those that the store did not take.
	fresh chan *settlement
	later byDate
	// timer wakes the queue when the first of them is due and nobody works.
	timer *time.Timer
	// retrying is how many of the workers try something again.
	workers, retrying int
	closed            bool
	// pending counts what was taken in and not yet told.
	pending pending.Counter
}

const (
	maxWorkers = 8
	// maxRetrying leaves workers to what was not tried yet, however long the store takes to fail.
	maxRetrying = maxWorkers / 2
	// waitingPerWorker is how many settlements may wait before another worker begins.
	waitingPerWorker = 16
	firstPause       = 50 * time.Millisecond
	longestPause     = 5 * time.Second
)

func newQueue(room int, settle func(context.Context, bucket.Settlement) (bucket.Settled, error),
	ended func(context.Context, *decision.Settlement),
) *queue {
	q := &queue{settle: settle, ended: ended, room: room, fresh: make(chan *settlement, room)}
	q.life, q.stop = context.WithCancel(context.Background())
	return q
}

// offer takes a settlement in. It never blocks, and returns false if the settlement was dropped.
func (q *queue) offer(ctx context.Context, s bucket.Settlement, reason, tier string) bool {
	item := &settlement{
		Settlement: s, told: decision.Settlement{Reason: reason, Tier: tier},
		span: trace.SpanContextFromContext(ctx), until: time.Now().Add(state.MarkerLife * time.Millisecond),
	}
	displaced, dropped := q.admit(item) //nolint:contextcheck // a settlement outlives its request
	if displaced != nil {
		q.end(displaced, decision.DroppedFull) //nolint:contextcheck // it is told as those that wait are
	}
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

// end tells what became of a settlement that was taken in.
func (q *queue) end(item *settlement, result decision.SettlementResult) {
	q.tell(item, result)
	q.pending.Add(-1)
}

// admit returns why an item was dropped, empty if it was not. One that the store did not take gives its room to one that
// was not tried yet.
func (q *queue) admit(item *settlement) (displaced *settlement, dropped decision.SettlementResult) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, decision.DroppedClosed
	}
	if n := len(q.later); n > 0 && n+len(q.fresh) >= q.room {
		// The last one is due no sooner than those above it.
		displaced, _ = heap.Remove(&q.later, n-1).(*settlement)
	}
	select {
	case q.fresh <- item:
		q.pending.Add(1)
	default:
		return displaced, decision.DroppedFull
	}
	q.grow()
	return displaced, ""
}

// grow begins another worker if there is more to do now than those that there are can do.
func (q *queue) grow() {
	if q.workers < maxWorkers && (len(q.fresh) > (q.workers-q.retrying)*waitingPerWorker || q.due()) {
		q.workers++
		go q.work()
	}
}

// due reports whether something may be tried again now.
func (q *queue) due() bool {
	return len(q.later) > 0 && q.retrying < maxRetrying && (q.life.Err() != nil || !time.Now().Before(q.later[0].due))
}

// work settles until nothing is due.
func (q *queue) work() {
	for item, again := q.next(); item != nil; item, again = q.next() {
		result := q.try(item)
		q.done(item, result == "", again)
		if result != "" {
			q.end(item, result)
		}
	}
}

// next returns what to settle, and whether that was tried before; nil when the worker is to end.
func (q *queue) next() (item *settlement, again bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.due() {
		item, _ = heap.Pop(&q.later).(*settlement)
		q.retrying++
		q.grow()
		return item, true
	}
	select {
	case item = <-q.fresh:
		return item, false
	default:
	}
	q.workers--
	if q.workers == 0 && len(q.later) > 0 {
		if q.timer != nil {
			q.timer.Stop()
		}
		q.timer = time.AfterFunc(time.Until(q.later[0].due), q.wake)
	}
	return nil, false
}

// wake has what is due tried again.
func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.workers == 0 && len(q.later) > 0 {
		q.workers++
		go q.work()
	}
}

// done puts an item back that the store did not take.
func (q *queue) done(item *settlement, back, again bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if again {
		q.retrying--
	}
	if back {
		heap.Push(&q.later, item)
	}
}

// try asks the store once. It returns nothing if the item is to be tried again. A marker in the store makes it happen
// once, however often it is tried.
func (q *queue) try(item *settlement) decision.SettlementResult {
	now := time.Now()
	if item.told.Calls == 0 {
		item.told.Began = now
	}
	switch {
	case q.life.Err() != nil:
		return decision.DroppedClosed
	case !now.Before(item.until):
		return decision.DroppedAway
	}
	item.told.Calls++
	settled, err := q.settle(q.life, item.Settlement)
	if err == nil {
		item.told.Answered(&settled, item.lost)
		return item.told.Result
	}
	ambiguous := errors.Is(err, bucket.ErrAmbiguous)
	if !ambiguous && !errors.Is(err, bucket.ErrUnavailable) && !errors.Is(err, bucket.ErrBusy) {
		return decision.SettlementFailed
	}
	item.lost = item.lost || ambiguous
	item.pause = min(max(firstPause, 2*item.pause), longestPause)
	item.due = time.Now().Add(item.pause)
	if item.due.After(item.until) {
		item.due = item.until
	}
	return ""
}

// shut takes nothing in any more.
func (q *queue) shut() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}

// close waits until nothing waits. What waits longer than the context is dropped.
func (q *queue) close(ctx context.Context) error {
	defer q.wake() //nolint:contextcheck // what is dropped is told as those that wait are
	defer q.stop()
	if err := q.pending.Wait(ctx); err != nil {
		return fmt.Errorf("ratelimit: settlements still waited for the store and were dropped: %w", err)
	}
	return nil
}

// byDate is a heap of settlements, of which the first is due first.
type byDate []*settlement

func (h byDate) Len() int           { return len(h) }
func (h byDate) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h byDate) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *byDate) Push(item any) {
	s, _ := item.(*settlement)
	*h = append(*h, s)
}

// Pop implements heap.Interface.
func (h *byDate) Pop() any {
	last := len(*h) - 1
	item := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return item
}
