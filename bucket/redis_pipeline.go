package bucket

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/internal/deadline"
)

const (
	// nodeConnections is how many connections to one node the calls use at the same time; what comes when all
	// are in use waits for the next batch.
	nodeConnections = 2
	// maxBatch is how many commands a batch has at most, so that the first of them does not wait for
	// the replies of thousands.
	maxBatch = 128
)

// pipeline sends the commands of callers that come at the same time together: while few calls are on
// their way to a node, each caller sends its own command, and what comes meanwhile waits for one batch, sent as
// soon as a connection is free. It has goroutines only while batches are on their way, and is safe for
// concurrent use.
type pipeline struct {
	client redis.UniversalClient
	// silence is how long a node may be silent after a batch has left.
	silence time.Duration
	// cluster is the client if it is that of a cluster. A batch never mixes nodes: one that is away
	// would hold up the calls to all others.
	cluster *redis.ClusterClient
	// width is how many connections to one node are used at the same time, zero if there is no bound and
	// so no batch.
	width int

	// testAlways makes every command wait for a batch.
	testAlways bool

	mu     sync.Mutex
	queues map[*redis.Client]*queue
	closed bool
	// running counts what runs in all queues.
	running sync.WaitGroup
}

// queue is what goes to one node.
type queue struct {
	node *redis.Client
	// known is what the calls of the queue have heard of the node.
	known *deadline.Node
	// running is how many connections are in use, each by a caller or by a goroutine that sends batches.
	running int
	// waiting are the batches to come. It is empty while a connection is free.
	waiting []*batch
}

// batch is a number of commands that are sent together.
type batch struct {
	waiters []*waiter
	// done is closed when all of them have ended.
	done chan struct{}
}

// newPipeline returns a pipeline that makes batches if it may, and if it is known where the commands of the
// client go.
func newPipeline(client redis.UniversalClient, silence time.Duration, batches bool) *pipeline {
	p := &pipeline{client: client, silence: silence, queues: map[*redis.Client]*queue{}}
	switch c := client.(type) {
	case *redis.Client:
		p.width = nodeConnections
	case *redis.ClusterClient:
		p.width, p.cluster = nodeConnections, c
	}
	if !batches {
		p.width = 0
	}
	return p
}

// process sends the command of the waiter, of which the first key is given, and waits for its reply until the call ends.
// Its errors are for classify.
func (p *pipeline) process(w *waiter, key string) error {
	var node *redis.Client
	if p.cluster != nil {
		var err error
		if node, err = p.cluster.MasterForKey(w.call.Step(), key); err != nil {
			// Nobody has sent anything yet; only go-redis's own words say why.
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	q, queued, err := p.enqueue(node, w)
	switch {
	case err != nil:
		return err
	case queued:
		return w.wait(q.known)
	}
	silent := false
	defer func() { p.leave(q, silent) }() // Also after a panic of a hook.
	err = p.send(w, q.known)
	silent = w.call.Silence(err)
	return err
}

// send sends the command in the goroutine of its caller.
func (p *pipeline) send(w *waiter, node *deadline.Node) error {
	w.carrier = w.call
	w.call.Send(node)
	err := p.client.Process(w.call, w.cmd)
	if err = w.outcome(err, node); replied(err) {
		node.Hear()
	}
	return err
}

// replied reports whether the error is none, or a reply of a node.
func replied(err error) bool {
	var reply redis.Error
	return err == nil || errors.As(err, &reply)
}

// enqueue puts the command into the next batch to the node. While a connection is free it is not queued:
// the caller sends the command itself, and leaves the queue.
func (p *pipeline) enqueue(node *redis.Client, w *waiter) (q *queue, queued bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false, fmt.Errorf("%w: %w", ErrUnavailable, redis.ErrClosed)
	}
	q = p.queues[node]
	if q == nil {
		q = &queue{node: node, known: deadline.NewNode()}
		p.queues[node] = q
	}
	free := q.running < p.width || p.width == 0
	if free {
		q.running++
		p.running.Add(1)
		if !p.testAlways {
			return q, false, nil
		}
		defer func() { go p.run(q) }()
	}
	if n := len(q.waiting); n == 0 || len(q.waiting[n-1].waiters) == maxBatch {
		q.waiting = append(q.waiting, &batch{done: make(chan struct{})})
	}
	b := q.waiting[len(q.waiting)-1]
	w.done = b.done
	b.waiters = append(b.waiters, w)
	return q, true, nil
}

// alone sends a command that administers: it neither waits for others nor holds any up.
func (p *pipeline) alone(w *waiter) error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return fmt.Errorf("%w: %w", ErrUnavailable, redis.ErrClosed)
	}
	p.running.Add(1)
	p.mu.Unlock()
	defer p.running.Done()
	return p.send(w, deadline.NewNode())
}

// leave gives the connection of a caller on to those that wait. If the node was silent, they need not find that out
// one after the other.
func (p *pipeline) leave(q *queue, silent bool) {
	p.mu.Lock()
	var given []*batch
	if silent {
		given, q.waiting = q.waiting, nil
	}
	waits := len(q.waiting) > 0
	if !waits {
		p.release(q)
	}
	p.mu.Unlock()
	for _, b := range given {
		b.give(errQueueSilent)
	}
	if waits {
		go p.run(q)
	}
}

// run sends batches for as long as calls wait.
func (p *pipeline) run(q *queue) {
	for b := p.next(q); b != nil; b = p.next(q) {
		if silent := b.send(p, q.known); silent {
			p.leave(q, true)
			return
		}
	}
}

// next returns the next batch of the queue. If there is none, a connection is free again.
func (p *pipeline) next(q *queue) *batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(q.waiting) > 0 {
		b := q.waiting[0]
		q.waiting[0] = nil
		q.waiting = q.waiting[1:]
		return b
	}
	p.release(q)
	return nil
}

// release frees a connection of the queue. It is called under the lock.
func (p *pipeline) release(q *queue) {
	q.running--
	if q.running == 0 {
		// Nodes come and go.
		delete(p.queues, q.node)
	}
	p.running.Done()
}

// close lets no further calls in and waits for those that are on their way.
func (p *pipeline) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.running.Wait()
}

// give ends a batch that was not sent.
func (b *batch) give(err error) {
	for _, w := range b.waiters {
		w.err = err
	}
	close(b.done)
}

// send sends the commands of those who still wait, and reports whether the node was silent. The patience of the batch is
// that of the last of them.
func (b *batch) send(p *pipeline, node *deadline.Node) (silent bool) {
	waiters, until, now := b.waiters[:0], time.Time{}, time.Now()
	for _, w := range b.waiters {
		if !now.Before(w.call.Until()) && w.withdraw() {
			w.err = context.DeadlineExceeded
		}
		if w.withdrawn() {
			continue
		}
		waiters = append(waiters, w)
		if w.call.Until().After(until) {
			until = w.call.Until()
		}
	}
	b.waiters = waiters
	if len(waiters) == 0 {
		close(b.done)
		return false
	}
	call := deadline.BeginUntil(context.Background(), p.silence, until)
	defer call.End()
	for _, w := range waiters {
		w.carrier = call
	}
	call.Send(node)
	err := b.exec(call, p.client)
	if slices.ContainsFunc(waiters, func(w *waiter) bool { return w.cmd.Val() != nil }) || err != nil && replied(err) {
		node.Hear()
	} else {
		silent = err != nil && call.Silence(err)
	}
	b.give(err)
	return silent
}

// exec returns why the batch as a whole failed. A hook of the client
// runs here and not in a goroutine of a caller, whose server would recover from its panic: here it would end
// the process. Hooks of the nodes of a cluster go-redis runs elsewhere, out of reach: see SeparateCalls.
func (b *batch) exec(ctx context.Context, client redis.UniversalClient) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("%w: %v", errHookPanicked, panicked)
		}
	}()
	pipe := client.Pipeline()
	for _, w := range b.waiters {
		if err := pipe.Process(ctx, w.cmd); err != nil {
			return err
		}
	}
	_, err = pipe.Exec(ctx)
	return err
}

var (
	errHookPanicked = errors.New("bucket: a hook of the Redis client panicked")
	// errQueueSilent is the error of what waited for commands to leave that got no answer.
	errQueueSilent = fmt.Errorf("%w: %w", ErrUnavailable, deadline.ErrSilent)
)
