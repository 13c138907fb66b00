package ratelimit

import (
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"
)

// stream is what a subscription takes for its events from the limits that count them, or their bytes. Only the response
// handler of the operation, which is not called twice at once, uses it.
type stream struct {
	// paid is how many more events may leave, and sent how many have.
	paid, sent int64
	// charged is how many of the bytes that have left were charged. The end of the operation reads it too, which may come
	// while an event is under way.
	charged atomic.Int64
	// waiting is an event that was refused, and pause is how long until it may be tried again.
	waiting *graphql.Response
	pause   time.Duration
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
