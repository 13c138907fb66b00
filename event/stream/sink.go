package stream

import (
	"context"
	"errors"
)

// A Sink brings envelopes to a broker. Package streamtest has its contract as tests.
type Sink interface {
	// Send brings a batch to the broker, each envelope to its topic, and waits until the broker has said what became of it. It returns nil if
	// all were stored, and otherwise an error for each: nil for one that the broker has stored, [ErrTooLarge] or [ErrRefused] for one that
	// it never will, and any other for one that may be sent again.
	//
	// Of a key it stores none after one that may be sent again, so that whoever sends those again, in their order and before others, keeps the
	// order of each key. It returns soon after the context has ended; what it sent by then may be stored all the same. It keeps nothing of
	// the batch.
	//
	// A [Queue] calls it from one goroutine. It is safe for concurrent use, without an order between calls.
	Send(ctx context.Context, batch []Envelope) []error
}

var (
	// ErrTooLarge says that a broker takes no envelope of this size.
	ErrTooLarge = errors.New("stream: the envelope is too large for the broker")
	// ErrRefused says that a broker never takes this envelope, whatever its size.
	ErrRefused = errors.New("stream: the broker refuses the envelope")
)

// Failed returns what [Sink.Send] does if all of n envelopes have failed alike.
func Failed(n int, err error) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}
