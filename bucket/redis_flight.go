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

// flight is a command that rides in a batch. Its arguments belong to it: they are read at any time until
// the batch is done, which may be after the caller has gone.
//
// It stands among the arguments itself, in the place of the numbers, see clock.lua: go-redis asks for their
// bytes in the moment in which it writes them to the connection, which is when a command leaves.
type flight struct {
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

// newFlight takes the arguments of the command over, of which the one at the place is the numbers.
func newFlight(ctx context.Context, cmd command, place int, done <-chan struct{}) *flight {
	f := &flight{cmd: cmd, done: done}
	f.deadline, _ = ctx.Deadline()
	args := cmd.Args()
	f.numbers, _ = args[place].([]byte)
	args[place] = f
	return f
}

// wait returns the error of the command, or that the context ended before, and what that means.
func (f *flight) wait(ctx context.Context) error {
	select {
	case <-f.done:
		return f.outcome()
	case <-ctx.Done():
	}
	if f.withdraw() {
		return fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	}
	select {
	case <-f.done:
		return f.outcome()
	default:
		return fmt.Errorf("%w: %w", ErrAmbiguous, ctx.Err())
	}
}

// withdraw takes a command back that has not left, and reports whether that was in time.
func (f *flight) withdraw() bool { return f.written.CompareAndSwap(0, withdrawn) }

func (f *flight) withdrawn() bool { return f.written.Load() == withdrawn }

// MarshalBinary implements encoding.BinaryMarshaler. It never fails: the commands before it in the batch
// are on their way.
func (f *flight) MarshalBinary() ([]byte, error) {
	for {
		written := f.written.Load()
		if written == withdrawn {
			return f.dropped(), nil
		}
		if f.written.CompareAndSwap(written, written+1) {
			return f.numbers, nil
		}
	}
}

// dropped are numbers with which every script does nothing: those of a caller who has long gone.
func (f *flight) dropped() []byte {
	b := slices.Clone(f.numbers)
	state.PutDouble(b[state.NumberBefore:], 1)
	return b
}

// String keeps hooks that print arguments from reading what changes meanwhile.
func (f *flight) String() string { return "numbers" }

// outcome is the error of the command after its batch is done.
func (f *flight) outcome() error {
	if f.cmd.Val() != nil {
		// go-redis gives the error of a connection that broke off to the replies before it, too.
		f.cmd.SetErr(nil)
		return nil
	}
	err := f.cmd.Err()
	if err == nil {
		// A hook kept the batch from being sent, or panicked.
		err = f.err
	}
	written := f.written.Load()
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
