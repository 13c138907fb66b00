package bucket

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	// errUnknown says that a call tells nothing of its node.
	errUnknown = errors.New("bucket: the call tells nothing of its node")
	// errUnfinished stands for a call that ended in a panic.
	errUnfinished = errors.New("bucket: the call did not come back")
	// errStoreTimeout is the cause of a context that the timeout of the store has ended, and not the
	// deadline of its caller.
	errStoreTimeout = errors.New("bucket: the timeout of the store has run out")
)

// endWait is how long a context may take to end after its deadline: its timer is due.
const endWait = 10 * time.Millisecond

// nodeOutcome says what the end of a call tells of the node: nil for a node that lives, [errUnknown] for nothing,
// and the error for one that does not.
func nodeOutcome(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case isReply(err):
		if costsConnection(err) {
			return err
		}
		return nil
	case errors.Is(err, errUnfinished), errors.Is(err, ErrBreakerOpen), errors.Is(err, redis.ErrPoolTimeout),
		errors.Is(err, redis.ErrPoolExhausted), errors.Is(err, redis.ErrClosed),
		// The client has closed the connection itself, as it does with those to a master that was replaced.
		errors.Is(err, net.ErrClosed),
		endedByCaller(ctx):
		return errUnknown
	default:
		return err
	}
}

// withStoreTimeout bounds a call by the timeout of the store. Hurried says that the deadline of the caller
// comes before.
func withStoreTimeout(ctx context.Context, timeout time.Duration) (bounded context.Context, hurried bool, cancel context.CancelFunc) {
	callers, hurried := ctx.Deadline()
	bounded, cancel = context.WithTimeoutCause(ctx, timeout, errStoreTimeout)
	own, _ := bounded.Deadline()
	return bounded, hurried && own.Equal(callers), cancel
}

// isReply says that the server has answered.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// costsConnection says that go-redis or the server closes the connection after the reply, so that the next
// call opens one: with the breaker closed, each call would.
func costsConnection(err error) bool {
	return redis.IsReadOnlyError(err) || redis.IsMaxClientsError(err) || redis.IsAuthError(err)
}

// endedByCaller says that the caller has ended the call: by canceling, or by a deadline of its own that
// came before the timeout of the store.
func endedByCaller(ctx context.Context) bool {
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
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), errStoreTimeout)
}
