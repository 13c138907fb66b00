// Package deadline bounds the calls of a store by its timeout, and tells afterwards whether that has ended a call or
// its caller.
package deadline

import (
	"context"
	"errors"
	"time"
)

// errTimeout is the cause of a context that the timeout of the store has ended, and not the deadline of its caller.
var errTimeout = errors.New("bucket: the timeout of the store has run out")

// endWait is how long a context may take to end after its deadline: its timer is due.
const endWait = 10 * time.Millisecond

// Bound bounds a call by the timeout of the store. Hurried says that the deadline of the caller comes before.
func Bound(ctx context.Context, timeout time.Duration) (bounded context.Context, hurried bool, cancel context.CancelFunc) {
	callers, hurried := ctx.Deadline()
	bounded, cancel = context.WithTimeoutCause(ctx, timeout, errTimeout)
	own, _ := bounded.Deadline()
	return bounded, hurried && own.Equal(callers), cancel
}

// Cause is the cause of a context that ends with a call that was bounded.
func Cause(hurried bool) error {
	if hurried {
		return context.DeadlineExceeded
	}
	return errTimeout
}

// ByCaller reports whether the caller has ended the call: by canceling, or by a deadline of its own that
// came before the timeout of the store.
func ByCaller(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	if ok && ctx.Err() == nil && !time.Now().Before(deadline) {
		// The socket has the same deadline, and its timer came first.
		timer := time.NewTimer(endWait)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
			return true
		}
	}
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), errTimeout)
}
