package redisclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/internal/deadline"
)

// nodeHook stands before one node. It asks the breaker, if there is one, tells what surely was not
// sent from what may have been, and bounds what has no deadline of its own.
type nodeHook struct {
	// breaker is nil if there is none.
	breaker *breaker
	// nodes are what is known of the nodes of the client.
	nodes *nodes
	// behind is the node that was connected to last. Behind Sentinels it changes.
	behind atomic.Pointer[deadline.Node]
	// unbounded is how long a call may take that has no deadline, zero if that is left to the timeouts of the client.
	unbounded time.Duration
}

var _ redis.Hook = (*nodeHook)(nil)

func addNodeHook(client *redis.Client, name string, known *nodes, unbounded time.Duration, cfg *BreakerConfig) {
	h := &nodeHook{breaker: newBreaker(name, cfg), nodes: known, unbounded: unbounded}
	h.behind.Store(known.at(name))
	client.AddHook(h)
}

// DialHook implements redis.Hook.
func (h *nodeHook) DialHook(next redis.DialHook) redis.DialHook {
	watched := h.nodes.watch(next)
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := watched(ctx, network, addr)
		if err != nil {
			return nil, notSent(&dialError{err})
		}
		if node := nodeOf(conn); node != nil {
			h.behind.Store(node)
		}
		return conn, nil
	}
}

// dialError is the error of connecting.
type dialError struct{ error }

// Unwrap returns the error.
func (e *dialError) Unwrap() error { return e.error }

// bound gives a context a deadline that has none, such as that with which go-redis reads the map of a cluster.
func (h *nodeHook) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok || h.unbounded == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, h.unbounded)
}

// ProcessHook implements redis.Hook.
func (h *nodeHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if p := h.outer(ctx); p != nil {
			return p.handshake(next(step(ctx), cmd))
		}
		ctx, cancel := h.bound(ctx)
		defer cancel()
		p, err := h.admit(ctx)
		if err != nil {
			cmd.SetErr(err)
			return err
		}
		err = errUnfinished
		defer func() { p.end(err) }()
		err = next(p, cmd) //nolint:contextcheck // a permit is the context of its call
		if p.failed && err != nil {
			return notSent(err)
		}
		return err
	}
}

// ProcessPipelineHook implements redis.Hook.
func (h *nodeHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if p := h.outer(ctx); p != nil {
			return p.handshake(next(step(ctx), cmds))
		}
		ctx, cancel := h.bound(ctx)
		defer cancel()
		p, err := h.admit(ctx)
		if err != nil {
			setErr(cmds, err)
			return err
		}
		outcome := errUnfinished
		defer func() { p.end(outcome) }()
		err = next(p, cmds) //nolint:contextcheck // a permit is the context of its call
		if outcome = err; err == nil {
			return nil
		}
		if p.failed {
			err = notSent(err)
			setErr(cmds, err)
			return err
		}
		// The error is that of the first command, and may be a reply where a later one got none.
		for _, cmd := range cmds {
			if failed := cmd.Err(); failed != nil && !isReply(failed) {
				outcome = failed
				break
			}
		}
		return err
	}
}

func setErr(cmds []redis.Cmder, err error) {
	for _, cmd := range cmds {
		cmd.SetErr(err)
	}
}

// step is the context of a command that sets up a connection for a call.
func step(ctx context.Context) context.Context {
	if call := deadline.Of(ctx); call != nil {
		return call.Step()
	}
	return ctx
}

// notSent wraps the error of a call that ended before it was sent.
func notSent(err error) error {
	switch {
	case errors.Is(err, bucket.ErrUnavailable), errors.Is(err, bucket.ErrBusy):
		return err
	case errors.Is(err, deadline.ErrLate):
		return fmt.Errorf("%w: %w", bucket.ErrBusy, err)
	default:
		return fmt.Errorf("%w: %w", bucket.ErrUnavailable, err)
	}
}

// permit is a call that the breaker let pass, and the context of that call: go-redis sets a new
// connection up with the hooks of the client, inside the call that needs it, which is one call.
type permit struct {
	context.Context

	hook *nodeHook
	// report tells the breaker how the call ended; nil without a breaker.
	report func(error)
	// failed says that a connection could not be set up, so that the call itself was not sent.
	failed bool
}

// Value implements context.Context. The hook is the key of its permit.
func (p *permit) Value(key any) any {
	if hook, ok := key.(*nodeHook); ok && hook == p.hook {
		return p
	}
	return p.Context.Value(key)
}

// outer returns the permit that a call is part of, or nil.
func (h *nodeHook) outer(ctx context.Context) *permit {
	p, _ := ctx.Value(h).(*permit)
	return p
}

// admit asks the breaker, and tells a call of a store which node it is for.
func (h *nodeHook) admit(ctx context.Context) (*permit, error) {
	p := &permit{Context: ctx, hook: h}
	if h.breaker != nil {
		report, err := h.breaker.steps.Allow()
		if err != nil {
			return nil, h.breaker.refusal
		}
		p.report = report
	}
	if call := deadline.Of(ctx); call != nil {
		call.Toward(h.behind.Load())
	}
	return p, nil
}

// handshake notes how a command went that sets up a connection.
func (p *permit) handshake(err error) error {
	if err != nil && !isReply(err) {
		p.failed = true
	}
	return err
}

// end tells the breaker how the call ended, and those that come next that this one could not leave.
func (p *permit) end(err error) {
	if err != nil && !isReply(err) {
		if call := deadline.Of(p.Context); call != nil && call.Unsent() {
			p.hook.behind.Load().FindSilent()
		}
	}
	if p.report == nil {
		return
	}
	p.report(nodeOutcome(p.Context, err))
	p.hook.breaker.tell(p.Context)
}
