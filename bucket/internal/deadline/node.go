package deadline

import (
	"sync/atomic"
	"time"
)

// slack is by how much a timer may be late in a process that has the processor when it needs it, or by the share of what
// it was set for, if that is more.
const (
	slack      = 2 * time.Millisecond
	slackShare = 4
)

// Late reports whether what was due then, after that time, and is done now shows that this process was late.
func Late(due, now time.Time, after time.Duration) bool {
	return now.Sub(due) > max(slack, after/slackShare)
}

// Node is what is known of a node. It is safe for concurrent use.
type Node struct {
	epoch time.Time
	// heard is how long after the epoch the node was heard last.
	heard atomic.Int64
	// silent says that the node was found silent, and was not heard since.
	silent atomic.Bool
	// listened says that somebody listens for what the node may say too late.
	listened atomic.Bool
}

// NewNode returns a node that was never heard.
func NewNode() *Node { return &Node{epoch: time.Now()} }

// Hear notes that the node has just said something.
func (n *Node) Hear() {
	n.heard.Store(int64(time.Since(n.epoch)))
	if n.silent.Load() {
		n.silent.Store(false)
	}
}

// FindSilent notes that a call has waited for the node for as long as it may, and heard nothing.
func (n *Node) FindSilent() { n.silent.Store(true) }

// Silent reports whether the node was found silent, and was not heard since. Who comes next need not find that out again,
// however late this process is.
func (n *Node) Silent() bool { return n.silent.Load() }

// Listen reports whether the caller is the only one who listens for what the node may say too late, and has to call the
// function when it is done.
func (n *Node) Listen() (done func(), ok bool) {
	return func() { n.listened.Store(false) }, n.listened.CompareAndSwap(false, true)
}

// Heard is when the node was heard last, or when it became known.
func (n *Node) Heard() time.Time { return n.epoch.Add(time.Duration(n.heard.Load())) }

// HeardSince reports whether the node was heard after that time.
func (n *Node) HeardSince(t time.Time) bool { return n.heard.Load() > 0 && n.Heard().After(t) }

// lateFor is for how long a process counts as late that was, and starvedFor for how long as one that may be again: who gets
// no processor now and then, gets none just after, and neither does a node on the same machine.
const (
	lateFor    = 250 * time.Millisecond
	starvedFor = 5 * time.Second
)

// Process is what is known of this process. It is safe for concurrent use.
type Process struct {
	epoch time.Time
	// late is how long after the epoch it was late last.
	late atomic.Int64
}

// NewProcess returns a process that was never late.
func NewProcess() *Process { return &Process{epoch: time.Now()} }

// Note notes that something that was due then, after that time, is done now.
func (p *Process) Note(due, now time.Time, after time.Duration) {
	if at := int64(now.Sub(p.epoch)); Late(due, now, after) && at > p.late.Load() {
		p.late.Store(at)
	}
}

// LateSince reports whether the process was late after that time, or shortly before.
func (p *Process) LateSince(t time.Time) bool { return p.within(lateFor, t) }

// StarvedSince reports whether the process was late after that time, or in the seconds before.
func (p *Process) StarvedSince(t time.Time) bool { return p.within(starvedFor, t) }

func (p *Process) within(d time.Duration, t time.Time) bool {
	late := p.late.Load()
	return late > 0 && p.epoch.Add(time.Duration(late)+d).After(t)
}
