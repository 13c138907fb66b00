package redisclient

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/internal/deadline"
)

// lastLook is for how long a socket is looked at once more after a deadline: what has arrived by then is read at once, so
// that this is only for how long a node that is silent is given in addition.
const lastLook = time.Millisecond

// longSilence is for how long a node has to be silent to be taken for silent also by a process that is late, or was in the
// seconds before: that is more than the turns of others that a process waits for on a machine without processor time.
const longSilence = 250 * time.Millisecond

// ticks is how often in the time in which a node may be silent a connection sees whether this process is late.
const ticks = 4

// nodes are what is known of the nodes of a client, by their addresses. It is safe for concurrent use.
type nodes struct {
	process *deadline.Process

	mu    sync.Mutex
	known map[string]*deadline.Node
}

func newNodes() *nodes {
	return &nodes{process: deadline.NewProcess(), known: map[string]*deadline.Node{}}
}

func (n *nodes) at(addr string) *deadline.Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	node := n.known[addr]
	if node == nil {
		node = deadline.NewNode()
		n.known[addr] = node
	}
	return node
}

// dialer connects.
type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// watch makes the connections of a dialer notice silence and lateness. What is watched already stays as it is.
func (n *nodes) watch(dial dialer) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		start := time.Now()
		c, err := dial(ctx, network, addr)
		if err != nil {
			if due, ok := ctx.Deadline(); ok && deadline.IsTimeout(err) && deadline.Late(due, time.Now(), due.Sub(start)) {
				err = &timeout{error: err, kind: deadline.ErrLate}
			}
			return nil, err
		}
		switch c.(type) {
		case *conn, *rawConn:
			return c, nil
		}
		watched := &conn{Conn: c, node: n.at(addr), process: n.process}
		if raw, ok := c.(syscall.Conn); ok {
			return &rawConn{conn: watched, raw: raw}, nil
		}
		return watched, nil
	}
}

// conn is a connection that tells a node that is silent from a process that is late. As every connection of go-redis it
// has one user at a time.
//
// A command of a store has two deadlines: that of writing is until when it waits in all, that of reading until when its
// node may be silent, see [deadline.Call]. What has one deadline is only looked at once more.
type conn struct {
	net.Conn

	node *deadline.Node
	// process is what is known of this process.
	process *deadline.Process
	// wrote is when something was written last, until when what was written waits in all, and silent
	// when the node has been silent for too long.
	wrote, until, silent time.Time
	// tick is the deadline of the socket: when to see next whether this process is late.
	tick time.Time
	// ended is the verdict on what was written last, nil while there is none: go-redis reads again after it, since it looks
	// for push messages before each reply of RESP3.
	ended error
	// over says that the verdict is the last. A pool that is closed asks for it beside the user.
	over atomic.Bool
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	if c.over.Load() {
		return nil
	}
	c.until, c.silent, c.tick, c.ended = t, t, t, nil
	return c.Conn.SetDeadline(t)
}

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.until = t
	return c.Conn.SetWriteDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	if c.over.Load() {
		return nil
	}
	c.silent, c.ended = t, nil
	return c.arm(c.wrote, t)
}

// arm sets the next tick, while something is waited for until due.
func (c *conn) arm(from, due time.Time) error {
	c.tick = due
	if tick := from.Add(c.step()); !due.IsZero() && tick.After(from) && tick.Before(due) {
		c.tick = tick
	}
	return c.Conn.SetReadDeadline(c.tick)
}

// step is the time between two ticks.
func (c *conn) step() time.Duration { return c.silent.Sub(c.wrote) / ticks }

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	if c.over.Load() {
		return 0, c.ended
	}
	c.wrote, c.ended = time.Now(), nil
	return c.Conn.Write(b)
}

// Read implements net.Conn. It ends when its node has been silent for as long as it may be, or when the patience of the
// command has run out, and its error says which of them.
func (c *conn) Read(b []byte) (int, error) {
	if c.ended != nil {
		return 0, c.ended
	}
	n, err := c.Conn.Read(b)
	if n == 0 && isDeadline(err) && !c.silent.IsZero() {
		n, err = c.wait(b)
	}
	if n > 0 {
		c.node.Hear()
	}
	return n, err
}

// wait reads on after a tick.
func (c *conn) wait(b []byte) (int, error) {
	began, due := c.wrote, c.silent
	silence := due.Sub(began)
	for {
		now := time.Now()
		c.process.Note(c.tick, now, c.step())
		if !now.Before(due) {
			// The runtime ends a read without looking at the socket, in which the reply may lie.
			if n, err := c.look(b); n > 0 || !isDeadline(err) {
				return n, err
			}
			now = time.Now()
			switch heard := c.node.Heard(); {
			case c.node.Silent():
				return 0, c.end(deadline.ErrSilent)
			case c.process.LateSince(began), now.Sub(c.wrote) < longSilence && c.process.StarvedSince(c.wrote):
				began = now
			case c.node.HeardSince(began):
				began = heard
			default:
				return 0, c.end(deadline.ErrSilent)
			}
			if due = began.Add(silence); due.After(c.until) {
				due = c.until
			}
			if !due.After(now) {
				return 0, c.end(c.verdict(now))
			}
		}
		if err := c.arm(now, due); err != nil {
			return 0, err
		}
		if n, err := c.Conn.Read(b); n > 0 || !isDeadline(err) {
			return n, err
		}
	}
}

// end keeps the verdict for whoever reads again. With it a command of a store is over, and so is its connection; what has
// one deadline may have been ended by its caller alone.
func (c *conn) end(kind error) error {
	c.ended = &timeout{error: os.ErrDeadlineExceeded, kind: kind}
	if c.silent.Before(c.until) {
		c.leave(kind)
	}
	return c.ended
}

// leave closes the connection: go-redis does not close those whose greeting fails. A node that was found silent is
// listened to for a while longer, beside the calls: these give it no more than its silence from now on, so that one that is
// slower would never be heard again.
func (c *conn) leave(kind error) {
	c.over.Store(true)
	if errors.Is(kind, deadline.ErrSilent) {
		c.node.FindSilent()
		if done, ok := c.node.Listen(); ok {
			go c.listen(done)
			return
		}
	}
	_ = c.Conn.Close()
}

// listen closes the connection when its node has said something, or has had the time to.
func (c *conn) listen(done func()) {
	defer done()
	defer func() { _ = c.Conn.Close() }()
	if c.Conn.SetReadDeadline(time.Now().Add(longSilence)) != nil {
		return
	}
	if n, _ := c.Conn.Read(make([]byte, 1)); n > 0 {
		c.node.Hear()
	}
}

// Close implements net.Conn.
func (c *conn) Close() error {
	if c.over.Load() {
		return nil
	}
	return c.Conn.Close()
}

// verdict says what it means that the patience of a command has run out: a process that is late is not late for ever.
func (c *conn) verdict(now time.Time) error {
	if !c.node.HeardSince(c.wrote) && now.Sub(c.wrote) >= max(longSilence, c.silent.Sub(c.wrote)) {
		return deadline.ErrSilent
	}
	return deadline.ErrLate
}

// look reads what there is.
func (c *conn) look(b []byte) (int, error) {
	until := time.Now().Add(lastLook)
	if err := c.Conn.SetReadDeadline(until); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	c.process.Note(until, time.Now(), c.step())
	return n, err
}

// nodeOf returns the node of a connection that is watched, or nil.
func nodeOf(c net.Conn) *deadline.Node {
	switch watched := c.(type) {
	case *conn:
		return watched.node
	case *rawConn:
		return watched.node
	default:
		return nil
	}
}

func isDeadline(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// rawConn is a conn whose socket go-redis may look at before it uses it again.
type rawConn struct {
	*conn

	raw syscall.Conn
}

// SyscallConn implements syscall.Conn.
func (c *rawConn) SyscallConn() (syscall.RawConn, error) { return c.raw.SyscallConn() }

// timeout is the error of a deadline, and what it means. It is a net.Error.
type timeout struct {
	error

	kind error
}

// Unwrap returns both.
func (t *timeout) Unwrap() []error { return []error{t.error, t.kind} }

// Timeout implements net.Error.
func (*timeout) Timeout() bool { return true }

// Temporary implements net.Error.
func (*timeout) Temporary() bool { return true }
