package bucket

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// waiter is a command that waits in a batch. Its arguments belong to it: they are read at any time until
// the batch is done, which may be after the caller has gone.
//
// It stands among the arguments itself, in the place of the numbers, see clock.lua: go-redis asks for their
// bytes in the moment in which it writes them to the connection, which is when a command leaves.
type waiter struct {
	cmd      command
	deadline time.Time
	numbers  []byte
	// written is how often the command has left, or withdrawn.
	written atomic.Int32
	// done is closed when the batch has ended, and err, which is set before, is why it failed.
	done <-chan struct{}
	err  error
}

// withdrawn is the number of times a command was written whose caller has taken it back.
const withdrawn = -1

// newWaiter takes the arguments of the command over, of which the one at the place is the numbers.
func newWaiter(ctx context.Context, cmd command, place int, done <-chan struct{}) *waiter {
	w := &waiter{cmd: cmd, done: done}
	w.deadline, _ = ctx.Deadline()
	args := cmd.Args()
	w.numbers, _ = args[place].([]byte)
	args[place] = w
	return w
}

// wait returns the error of the command, or that the context ended before, and what that means.
func (w *waiter) wait(ctx context.Context) error {
	select {
	case <-w.done:
		return w.outcome()
	case <-ctx.Done():
	}
	if w.withdraw() {
		return fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	}
	select {
	case <-w.done:
		return w.outcome()
	default:
		return fmt.Errorf("%w: %w", ErrAmbiguous, ctx.Err())
	}
}

// withdraw takes a command back that has not left, and reports whether that was in time.
func (w *waiter) withdraw() bool { return w.written.CompareAndSwap(0, withdrawn) }

func (w *waiter) withdrawn() bool { return w.written.Load() == withdrawn }

// MarshalBinary implements encoding.BinaryMarshaler. It never fails: the commands before it in the batch
// are on their way.
func (w *waiter) MarshalBinary() ([]byte, error) {
	for {
		written := w.written.Load()
		if written == withdrawn {
			return w.dropped(), nil
		}
		if w.written.CompareAndSwap(written, written+1) {
			return w.numbers, nil
		}
	}
}

// dropped are numbers with which every script does nothing: those of a caller who has long gone.
func (w *waiter) dropped() []byte {
	b := slices.Clone(w.numbers)
	state.PutDouble(b[state.NumberBefore:], 1)
	return b
}

// String keeps hooks that print arguments from reading what changes meanwhile.
func (w *waiter) String() string { return "numbers" }

// outcome is the error of the command after its batch is done.
func (w *waiter) outcome() error {
	if w.cmd.Val() != nil {
		// go-redis gives the error of a connection that broke off to the replies before it, too.
		w.cmd.SetErr(nil)
		return nil
	}
	err := w.cmd.Err()
	if err == nil {
		// A hook kept the batch from being sent, or panicked.
		err = w.err
	}
	written := w.written.Load()
	switch {
	case err == nil:
		return fmt.Errorf("%w: a hook of the Redis client left a command without a reply", ErrAmbiguous)
	case written <= 0:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	case written > 1 && redirects(err):
		// It was sent on, and what became of it there, go-redis does not say.
		return fmt.Errorf("%w: %w", ErrAmbiguous, err)
	default:
		return err
	}
}

// redirects reports whether the error names another node.
func redirects(err error) bool {
	return redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK")
}
