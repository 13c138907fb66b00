package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// settling is a settlement that waits for the store.
type settling struct {
	settlement bucket.Settlement
	correction correction
	tier       string
	// span is where in a trace the operation belongs.
	span trace.SpanContext
	// began is when the store was first asked, and until when it would not settle any more.
	began, until time.Time
}

// settler settles charges after their responses, so that no response waits for it. At most so many wait
// as it has room for. Its workers end when nothing waits, so that a settler that is never closed leaves
// nothing behind.
type settler struct {
	// call asks the store.
	call func(context.Context, bucket.Settlement) (bucket.Settled, error)
	// ended is told of each settlement what became of it, once, after how many calls.
	ended func(item *settling, settled bucket.Settled, result settlementResult, calls int)
	queue chan *settling
	// life ends calls and pauses when it is stopped.
	life context.Context //nolint:containedctx // it is the life of the workers
	stop context.CancelFunc

	mu      sync.Mutex
	workers int
	closed  bool
	// idle is closed when the last worker ends. It is nil if nobody waits for that.
	idle chan struct{}
}

// settlementResult is what became of a settlement, in the word that metrics carry.
type settlementResult string

const (
	// settledNow: this call settled.
	settledNow settlementResult = "settled"
	// settledBefore: an earlier call, whose reply was lost, had settled.
	settledBefore settlementResult = "settled_before"
	// settledLate: the operation ran for so long that the charge is not corrected any more.
	settledLate settlementResult = "late"
	// droppedFull: too many settlements waited.
	droppedFull settlementResult = "dropped_full"
	// droppedClosed: the extension was closed.
	droppedClosed settlementResult = "dropped_closed"
	// droppedAway: the store was away until it was too late.
	droppedAway settlementResult = "dropped_away"
	// settlementFailed: the store did not take the call.
	settlementFailed settlementResult = "failed"
)

const (
	maxSettlers = 8
	// waitingPerSettler is how many settlements may wait before another worker begins.
	waitingPerSettler = 16
	firstPause        = 50 * time.Millisecond
	longestPause      = 5 * time.Second
)

func newSettler(room int) *settler {
	s := &settler{queue: make(chan *settling, room)}
	s.life, s.stop = context.WithCancel(context.Background())
	return s
}

// offer takes a settlement in. It never blocks, and returns false if the settlement was dropped.
func (s *settler) offer(ctx context.Context, item *settling) bool {
	item.span = trace.SpanContextFromContext(ctx)
	item.until = time.Now().Add(bucket.MaxReceiptAge)
	result := s.admit(item)
	if result != settledNow {
		s.ended(item, bucket.Settled{}, result, 0)
		return false
	}
	return true
}

// admit returns why an item was dropped, settledNow if it was not.
func (s *settler) admit(item *settling) settlementResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return droppedClosed
	}
	select {
	case s.queue <- item:
	default:
		return droppedFull
	}
	if s.workers == 0 || s.workers < maxSettlers && len(s.queue) > s.workers*waitingPerSettler {
		s.workers++
		go s.work()
	}
	return settledNow
}

// work settles until nothing waits.
func (s *settler) work() {
	for item := s.next(); item != nil; item = s.next() {
		settled, result, calls := s.settle(item)
		s.ended(item, settled, result, calls)
	}
}

// next returns nil when the worker is to end.
func (s *settler) next() *settling {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case item := <-s.queue:
		return item
	default:
	}
	s.workers--
	if s.workers == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
	return nil
}

// settle tries until the store has answered or would not settle any more. A marker in the store makes it
// happen once, however often it is tried.
func (s *settler) settle(item *settling) (settled bucket.Settled, result settlementResult, calls int) {
	lost := false
	item.began = time.Now()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		if s.life.Err() != nil {
			return bucket.Settled{}, droppedClosed, calls
		}
		if !time.Now().Before(item.until) {
			return bucket.Settled{}, droppedAway, calls
		}
		calls++
		settled, err := s.ask(item)
		switch {
		case err == nil && settled.Applied:
			return settled, settledNow, calls
		case err == nil && lost:
			return settled, settledBefore, calls
		case err == nil:
			return settled, settledLate, calls
		case !errors.Is(err, bucket.ErrUnavailable) && !errors.Is(err, bucket.ErrAmbiguous):
			return settled, settlementFailed, calls
		}
		lost = lost || errors.Is(err, bucket.ErrAmbiguous)
		s.rest(pause)
	}
}

// rest waits, at most until the settler is stopped.
func (s *settler) rest(pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.life.Done():
	}
}

var errSettlePanicked = errors.New("ratelimit: a store panicked in Settle")

// ask calls the store. A panic in it, outside of any request, would end the process.
func (s *settler) ask(item *settling) (settled bucket.Settled, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%w: %v", errSettlePanicked, cause)
		}
	}()
	return s.call(s.life, item.settlement)
}

// wait returns when nothing waits any more.
func (s *settler) wait(ctx context.Context) error {
	s.mu.Lock()
	if s.workers == 0 {
		s.mu.Unlock()
		return nil
	}
	if s.idle == nil {
		s.idle = make(chan struct{})
	}
	idle := s.idle
	s.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close takes nothing in any more and waits until nothing waits. What waits longer than the context is
// dropped.
func (s *settler) close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	defer s.stop()
	if err := s.wait(ctx); err != nil {
		return fmt.Errorf("ratelimit: settlements still waited for the store and were dropped: %w", err)
	}
	return nil
}

// AwaitSettled returns when no settlement waits for a store any more, or with the error of ctx when that ends
// before. Tests of a server that gives points back call it before they look at a budget. It closes nothing, and
// returns at once on an extension that srv.Use has not seen.
func (e *Extension) AwaitSettled(ctx context.Context) error {
	for _, b := range e.backends {
		if b.settler == nil {
			continue
		}
		if err := b.settler.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close settles the charges that still wait for the store, which happens after the response, and returns
// when it is done. When ctx ends before, it drops the rest, which stay charged at their estimate, and returns
// an error that matches that of ctx. Call it after http.Server.Shutdown. Operations that end later keep their
// estimate. Close may be called again, and does nothing on an extension that srv.Use has not seen.
func (e *Extension) Close(ctx context.Context) error {
	var closing sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for _, b := range e.backends {
		if b.settler == nil {
			continue
		}
		closing.Go(func() {
			if err := b.settler.close(ctx); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	closing.Wait()
	return errors.Join(errs...)
}
