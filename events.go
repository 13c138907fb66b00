package ratelimit

import (
	"context"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
)

// maxEventBatch is how many events are taken at once at most. What a stream has taken and does not send is lost to its
// tenant, so batches grow with what a stream has sent.
const maxEventBatch = 16

// leastPause is how long a subscription pauses at least before the store is asked again.
const leastPause = 250 * time.Millisecond

// nextEvent returns the next event of a subscription whose events, or their bytes, limits count, or why there is none for
// now, which is told once.
func (e *Extension) nextEvent(ctx context.Context, op *operation, next graphql.ResponseHandler) *graphql.Response {
	s := op.stream
	if s.waiting != nil {
		event := op.resume(ctx)
		e.leave(ctx, op, event)
		return event
	}
	var event *graphql.Response
	if !s.ended {
		event = next(ctx)
	}
	if event == nil {
		e.leave(ctx, op, nil)
		return nil
	}
	refused := op.payEvent(ctx)
	if refused == nil {
		e.leave(ctx, op, event)
		return event
	}
	op.refusedInside()
	if wait := refused.Refusal.RetryAfter; e.cfg.Answer.PauseStreams && wait > 0 {
		s.waiting, s.pause = event, wait
	} else {
		s.ended = true
	}
	return &graphql.Response{Data: []byte("null"), Errors: e.presented(ctx, refused)}
}

// resume returns the event that waits once it has been paid, nil if the subscription is over before that.
func (op *operation) resume(ctx context.Context) *graphql.Response {
	s := op.stream
	event := s.waiting
	for s.pause > 0 && sleep(ctx, max(s.pause, leastPause)) {
		refused := op.payEvent(ctx)
		if refused == nil {
			s.waiting = nil
			return event
		}
		s.pause = refused.Refusal.RetryAfter
	}
	s.waiting, s.ended = nil, true
	return nil
}

// payEvent takes what the next event needs, and returns the charge that was refused, nil if none was.
func (op *operation) payEvent(ctx context.Context) *decision.Decision {
	s := op.stream
	if s.paid > 0 {
		s.paid--
		s.sent++
		return nil
	}
	buckets := judged(op.decision.Rules)
	if bytes := op.size.left.Load() - s.charged.Load(); bytes > 0 && counts(buckets, bucket.ResponseBytes) {
		if after := op.chargeEvent(ctx, buckets, bucket.ResponseBytes, bytes); after.Refusal != nil {
			return &after
		}
		s.charged.Add(bytes)
	}
	batch := min(max(1, s.sent), maxEventBatch)
	if counts(buckets, bucket.Events) {
		after := op.chargeEvent(ctx, buckets, bucket.Events, batch)
		if after.Refusal != nil && batch > 1 {
			// The last ones of a limit are worth as much as the first.
			batch = 1
			after = op.chargeEvent(ctx, buckets, bucket.Events, batch)
		}
		if after.Refusal != nil {
			return &after
		}
	}
	s.paid, s.sent = batch-1, s.sent+1
	return nil
}

// chargeEvent is chargeFrom, and tells operators.
func (op *operation) chargeEvent(ctx context.Context, buckets []bucket.Bucket, unit bucket.Unit, n int64) decision.Decision {
	after := op.chargeFrom(ctx, buckets, unit, n)
	op.extension.reporter.Charged(ctx, &after)
	return after
}

// sleep waits, and reports whether the time is over rather than ctx.
func sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
