package bucket

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/internal/deadline"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// waiter is a command and whether it has left, by itself or in a batch. Its arguments belong to it: they are read at any
// time until its batch is done, which may be after the caller has gone.
//
// It stands among the arguments itself, in the place of one of them: go-redis asks for the bytes of that in the moment in
// which it writes them to the connection, which is when a command leaves.
type waiter struct {
	cmd command
	// call is that of the caller, and carrier what the command leaves in: the same, or that of a batch, set before.
	call, carrier *deadline.Call
	// marked are the bytes of the argument, and numbers says that they are those of a script, see clock.lua.
	marked  []byte
	numbers bool
	// written is how often the command has left, or withdrawn.
	written atomic.Int32
	// done is closed when the batch has ended, and err, which is set before, is why it failed.
	done <-chan struct{}
	err  error
}

// withdrawn is the number of times a command was written whose caller has taken it back.
const withdrawn = -1

// newWaiter takes the arguments of the command over, of which the one at the place is to tell when it leaves: the numbers
// of a script, or a key.
func newWaiter(call *deadline.Call, args []any, place int) *waiter {
	w := &waiter{call: call}
	switch marked := args[place].(type) {
	case []byte:
		w.marked, w.numbers = marked, true
	case string:
		w.marked = []byte(marked)
	}
	args[place] = w
	w.cmd = newCommand(call, args)
	return w
}

// wait returns the error of the command in its batch, or that the caller had to go before, and what that means.
func (w *waiter) wait(node *deadline.Node) error {
	w.call.Wait()
	select {
	case <-w.done:
		return w.outcome(w.err, node)
	case <-w.call.Done():
	}
	if w.withdraw() {
		return w.meaning(w.call.Err(), node)
	}
	select {
	case <-w.done:
		return w.outcome(w.err, node)
	default:
		return w.meaning(w.call.Err(), node)
	}
}

// withdraw takes a command back that has not left, and reports whether that was in time.
func (w *waiter) withdraw() bool { return w.written.CompareAndSwap(0, withdrawn) }

func (w *waiter) withdrawn() bool { return w.written.Load() == withdrawn }

// MarshalBinary implements encoding.BinaryMarshaler. It never fails: the commands before it in the batch
// are on their way.
func (w *waiter) MarshalBinary() ([]byte, error) {
	w.carrier.Leave()
	for {
		written := w.written.Load()
		if written == withdrawn {
			return w.dropped(), nil
		}
		if w.written.CompareAndSwap(written, written+1) {
			return w.marked, nil
		}
	}
}

// dropped are numbers with which every script does nothing: those of a caller who has long gone. Nothing else than
// scripts rides with others.
func (w *waiter) dropped() []byte {
	b := slices.Clone(w.marked)
	if w.numbers {
		state.PutDouble(b[state.NumberBefore:], 1)
	}
	return b
}

// String is the argument as it is, by which go-redis finds the node of a key, but for numbers: hooks that print arguments
// must not read what changes meanwhile.
func (w *waiter) String() string {
	if w.numbers {
		return "numbers"
	}
	return string(w.marked)
}

// outcome is the error of the command after it, or its batch, is done, of which the error is given.
func (w *waiter) outcome(whole error, node *deadline.Node) error {
	if w.cmd.Val() != nil {
		// go-redis gives the error of a connection that broke off to the replies before it, too.
		w.cmd.SetErr(nil)
		return nil
	}
	err := w.cmd.Err()
	if err == nil {
		// A hook kept the command from being sent, or panicked.
		err = whole
	}
	if err == nil {
		return fmt.Errorf("%w: a hook of the Redis client left a command without a reply", ErrAmbiguous)
	}
	return w.meaning(err, node)
}

// meaning wraps the error of a command in what it means for the charge. Replies of Redis it leaves as they are, see
// [classify].
func (w *waiter) meaning(err error, node *deadline.Node) error {
	var reply redis.Error
	left := w.written.Load()
	switch {
	case errors.As(err, &reply):
		if left > 1 && redirects(err) {
			// It was sent on, and what became of it there, go-redis does not say.
			return fmt.Errorf("%w: %w", ErrAmbiguous, err)
		}
		return err
	case errors.Is(err, ErrUnavailable), errors.Is(err, ErrAmbiguous), errors.Is(err, ErrBusy):
		// What stands before the node knows that nothing was sent.
		return err
	case left > 0 && w.late(err):
		return fmt.Errorf("%w: %w: %w", ErrAmbiguous, ErrLate, err)
	case left > 0:
		return fmt.Errorf("%w: %w", ErrAmbiguous, err)
	case w.busy(err, node):
		return fmt.Errorf("%w: %w", ErrBusy, err)
	default:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
}

// late reports whether a command that has left ended for want of time, and not by the silence of its node.
func (w *waiter) late(err error) bool {
	return deadline.IsTimeout(err) && !errors.Is(err, ErrLate) && !w.carrier.Silence(err)
}

// busy reports whether a command has not left because of this process: it waited for others to leave, or for a
// connection, while the node answered, or its time ran out in a process that was late.
func (w *waiter) busy(err error, node *deadline.Node) bool {
	switch {
	case errors.Is(err, deadline.ErrLate):
		return true
	case errors.Is(err, context.Canceled), w.call.Silence(err), errors.Is(err, deadline.ErrSilent):
		return false
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted), deadline.IsTimeout(err):
		return node.HeardSince(w.call.Began()) || w.call.Late()
	default:
		return false
	}
}

// redirects reports whether the error names another node.
func redirects(err error) bool {
	return redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK")
}
