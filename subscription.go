package ratelimit

import (
	"context"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
)

// unstreamed returns why a subscription is refused whose transport answers once, nil if it is none. It would hold the request until its
// first event, which may never come.
func (op *operation) unstreamed() *decision.Refusal {
	rules, x := op.decision.Rules, op.exchange
	if op.decision.Kind != ast.Subscription || rules.Mode == bucket.Off || x == nil || !x.Single() {
		return nil
	}
	return &decision.Refusal{
		Outcome: decision.QueryLimited, Mode: rules.Mode, EnforceFrom: rules.EnforceFrom,
		Detail: "a subscription needs an answer that streams: send it on a WebSocket, or accept text/event-stream or multipart/mixed",
	}
}

// maxEventBatch is how many events are taken at once at most. What a stream has taken and does not send is lost to its
// tenant, so batches grow with what a stream has sent.
const maxEventBatch = 16

// stream is what a subscription takes for its events from the limits that count them, or their bytes. Only the response
// handler of the operation, which is not called twice at once, uses it.
type stream struct {
	// paid is how many more events may leave, and sent how many have.
	paid, sent int64
	// charged is how many of the bytes that have left were charged. The end of the operation reads it too, which may come
	// while an event is under way.
	charged atomic.Int64
	// ended says that the limit has ended the subscription.
	ended bool
}

// paidBytes returns how many of the bytes that have left were charged, of an operation that is no such subscription none.
func (s *stream) paidBytes() int64 {
	if s == nil {
		return 0
	}
	return s.charged.Load()
}

// nextEvent returns the next event of a subscription whose events, or their bytes, limits count. A charge that is refused is
// reported once, in place of the event, and ends the subscription.
func (e *Extension) nextEvent(ctx context.Context, op *operation, next graphql.ResponseHandler) *graphql.Response {
	s := op.stream
	var event *graphql.Response
	if !s.ended {
		event = e.unbroken(ctx, op, next)
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
	s.ended = true
	return &graphql.Response{Data: []byte("null"), Errors: e.presented(ctx, refused)}
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
