// Package deadline bounds the calls of a store in time, and tells the silence of a node, which is an absence, from the
// lateness of this process, which is none.
package deadline

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

var (
	// ErrSilent says that a node gave no sign of life for as long as it may, in a process that would have seen one.
	ErrSilent = errors.New("bucket: the node is silent")
	// ErrLate says that a call has waited for as long as it may for a node that answered others meanwhile, or in a process
	// that was late itself: nothing is known of the node.
	ErrLate = errors.New("bucket: the call was late, which says nothing of the node")

	errPatience = errors.New("bucket: the patience of the call has run out")
)

// quietChecks is how many looks in a row have to find a node silent before a call ends that has not left. The scheduler of
// Go looks at the network every ten milliseconds where it has other work, so that one look may miss a connection that is
// there.
const quietChecks = 2

// Bounds are those of a call.
type Bounds struct {
	// Silence is how long a node may be silent from when a command has left.
	Silence time.Duration
	// Patience is how long the call may wait besides.
	Patience time.Duration
}

// Call is the context of a call. Its deadline is that of its patience until its command leaves, and from then on that of
// the silence of the node: go-redis asks for it once before it writes and once before it reads. It is safe for
// concurrent use.
type Call struct {
	context.Context

	cancel  context.CancelCauseFunc
	silence time.Duration
	began   time.Time
	until   time.Time
	// hurried says that this is the deadline of the caller.
	hurried bool
	// late says that the timer was late.
	late atomic.Bool
	// left is how long after its beginning the command has left, zero if it has not.
	left atomic.Int64
	// toward is the node that the command needs a connection to, nil if that is not known.
	toward atomic.Pointer[Node]

	mu    sync.Mutex
	timer *time.Timer
	due   time.Time
	// node is that to which a command is on its way, nil for a call that waits for others to leave.
	node *Node
	// since is when the last look at the node was, and quiet how many in a row have found it silent.
	since time.Time
	quiet int
	ended bool
}

// Begin returns the context of a call of that caller. [Call.End] has to be called.
func Begin(ctx context.Context, bounds Bounds) *Call {
	began := time.Now()
	return begin(ctx, bounds.Silence, began, began.Add(bounds.Silence+bounds.Patience))
}

// BeginUntil is [Begin] with a date at which the patience ends.
func BeginUntil(ctx context.Context, silence time.Duration, until time.Time) *Call {
	return begin(ctx, silence, time.Now(), until)
}

func begin(ctx context.Context, silence time.Duration, began, until time.Time) *Call {
	c := &Call{silence: silence, began: began, until: until}
	if callers, ok := ctx.Deadline(); ok && callers.Before(c.until) {
		c.until, c.hurried = callers, true
	}
	c.Context, c.cancel = context.WithCancelCause(ctx)
	return c
}

// End gives back what the call holds.
func (c *Call) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end(nil)
}

// end is called under the lock.
func (c *Call) end(cause error) {
	c.ended = true
	if c.timer != nil {
		c.timer.Stop()
	}
	c.cancel(cause)
}

// Wait bounds the call by its patience alone, while it waits for others to leave.
func (c *Call) Wait() { c.watch(nil) }

// Send says that a command is about to leave for the node: the call ends with [ErrSilent] where nothing is heard of
// that and the command cannot leave.
func (c *Call) Send(node *Node) {
	c.left.Store(0)
	c.watch(node)
}

func (c *Call) watch(node *Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	now := time.Now()
	c.node, c.since, c.quiet = node, now, 0
	c.arm(now)
}

// arm sets the timer. It is called under the lock.
func (c *Call) arm(now time.Time) {
	c.due = c.until
	if look := now.Add(c.silence); c.node != nil && c.left.Load() == 0 && look.Before(c.due) {
		c.due = look
	}
	if c.timer == nil {
		c.timer = time.AfterFunc(c.due.Sub(now), c.look)
		return
	}
	c.timer.Reset(c.due.Sub(now))
}

// look ends the call if it is time to.
func (c *Call) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.ended || now.Before(c.due) {
		return
	}
	late := Late(c.due, now, c.silence)
	if late {
		c.late.Store(true)
	}
	known := c.knownSilent()
	switch {
	case !now.Before(c.until):
		c.end(errPatience)
		return
	case c.node == nil || c.left.Load() != 0:
	case c.node.HeardSince(c.since), late && !known:
		c.quiet = 0
	default:
		if c.quiet++; known || c.quiet == quietChecks {
			c.end(ErrSilent)
			return
		}
	}
	c.since = now
	c.arm(now)
}

// Toward says which node the command needs a connection to. If it was found silent before, it is not looked at twice.
func (c *Call) Toward(node *Node) { c.toward.Store(node) }

// knownSilent reports whether the node of the command was found silent before.
func (c *Call) knownSilent() bool {
	toward := c.toward.Load()
	return toward != nil && toward.Silent()
}

// Unsent reports whether the call has ended because its command could not leave, and nothing was heard of the node.
func (c *Call) Unsent() bool { return errors.Is(context.Cause(c.Context), ErrSilent) }

// Leave notes that the command leaves now.
func (c *Call) Leave() { c.left.Store(max(1, int64(time.Since(c.began)))) }

// Late reports whether this process has been late while it waited for the call.
func (c *Call) Late() bool { return c.late.Load() }

// Until is when the caller goes, whatever happens before.
func (c *Call) Until() time.Time { return c.until }

// Began is when the call began.
func (c *Call) Began() time.Time { return c.began }

// Deadline implements context.Context.
func (c *Call) Deadline() (time.Time, bool) {
	if silent, left := c.silent(); left && silent.Before(c.until) {
		return silent, true
	}
	return c.until, true
}

// silent is when the node has been silent for too long, if the command has left.
func (c *Call) silent() (time.Time, bool) {
	left := c.left.Load()
	return c.began.Add(time.Duration(left) + c.silence), left != 0
}

// Err implements context.Context.
func (c *Call) Err() error {
	err := c.Context.Err()
	if err == nil {
		return nil
	}
	if cause := context.Cause(c.Context); errors.Is(cause, errPatience) || errors.Is(cause, ErrSilent) {
		return context.DeadlineExceeded
	}
	return err
}

type callKey struct{}

// Value implements context.Context.
func (c *Call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// Of returns the call that the context belongs to, or nil.
func Of(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}

// Silence reports whether the error, with which the command ended, is the silence of its node: not that the caller had
// less time, nor that this process was late.
func (c *Call) Silence(err error) bool {
	if errors.Is(err, ErrLate) {
		return false
	}
	silent, left := c.silent()
	switch now := time.Now(); {
	case c.Unsent():
		return true
	case !IsTimeout(err):
		return false
	case !left:
		// Setting up a connection had the time of a step.
		return errors.Is(err, os.ErrDeadlineExceeded) && (!c.hurried || now.Before(c.until))
	case c.until.Before(silent), now.Before(silent):
		return false
	default:
		// A connection that does not look again can only be judged by when it gave up.
		return errors.Is(err, ErrSilent) || !Late(silent, now, c.silence)
	}
}

// IsTimeout reports whether the error is the end of some time, and not something that a node did.
func IsTimeout(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// Step returns the context of a command that go-redis sends by itself inside the call, such as one that sets up a
// connection: its node may be silent for no longer than that of the call.
func (c *Call) Step() context.Context { return &step{Call: c} }

// step is asked for its deadline before its command is written, and then before the reply is read.
type step struct {
	*Call

	asked atomic.Bool
}

// Deadline implements context.Context.
func (s *step) Deadline() (time.Time, bool) {
	if silent := time.Now().Add(s.silence); s.asked.Swap(true) && silent.Before(s.until) {
		return silent, true
	}
	return s.until, true
}

// ByCaller reports whether a call that is none of a store was ended by its caller, or by the deadline of it.
func ByCaller(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	// The socket has the same deadline, and its timer may come first.
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}
