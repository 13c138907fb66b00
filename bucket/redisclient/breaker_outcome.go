package redisclient

import (
	"context"
	"errors"
	"net"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/internal/deadline"
)

var (
	// errUnknown says that a call tells nothing of its node.
	errUnknown = errors.New("redisclient: the call tells nothing of its node")
	// errUnfinished stands for a call that ended in a panic.
	errUnfinished = errors.New("redisclient: the call did not come back")
)

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
		errors.Is(err, deadline.ErrLate), endedItself(ctx, err):
		return errUnknown
	default:
		return err
	}
}

// endedItself reports whether the call ended by the time that it had, and not by its node being silent for too long.
func endedItself(ctx context.Context, err error) bool {
	var dial *dialError
	call := deadline.Of(ctx)
	switch {
	case call == nil:
		return deadline.ByCaller(ctx)
	case !deadline.IsTimeout(err), errors.As(err, &dial):
		return false
	default:
		return !call.Silence(err)
	}
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
