package bucket

import (
	"context"
	"errors"
	"fmt"
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
func newPipeline(client redis.UniversalClient, batches bool) *pipeline {
	p := &pipeline{client: client, queues: map[*redis.Client]*queue{}}
	if !batches {
		return p
	}
	switch c := client.(type) {
	case *redis.Client:
		p.width = nodeConnections
	case *redis.ClusterClient:
		p.width, p.cluster = nodeConnections, c
	}
	return p
}

// process sends the command, of which the first key and the place of the numbers among the arguments are
// given, and waits for its reply until the context ends. Its errors are for classify.
func (p *pipeline) process(ctx context.Context, cmd command, key string, numbers int) error {
	var node *redis.Client
	if p.cluster != nil {
		var err error
		if node, err = p.cluster.MasterForKey(ctx, key); err != nil {
			// Nobody has sent anything yet; only go-redis's own words say why.
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	q, w, err := p.enqueue(ctx, node, cmd, numbers)
	switch {
	case err != nil:
		return err
	case w != nil:
		return w.wait(ctx)
	}
	defer p.leave(q) //nolint:contextcheck // Batches belong to no single caller.
	return p.client.Process(ctx, cmd)
}

// enqueue puts the command into the next batch to the node. While a connection is free there is no
// waiter: the caller sends the command itself, and leaves the queue.
func (p *pipeline) enqueue(ctx context.Context, node *redis.Client, cmd command, numbers int) (*queue, *waiter, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, redis.ErrClosed
	}
	q := p.queues[node]
	if q == nil {
		q = &queue{node: node}
		p.queues[node] = q
	}
	free := q.running < p.width || p.width == 0
	if free {
		q.running++
		p.running.Add(1)
		if !p.testAlways {
			return q, nil, nil
		}
		defer func() { go p.run(q) }() //nolint:contextcheck // Batches belong to no single caller.
	}
	if n := len(q.waiting); n == 0 || len(q.waiting[n-1].waiters) == maxBatch {
		q.waiting = append(q.waiting, &batch{done: make(chan struct{})})
	}
	b := q.waiting[len(q.waiting)-1]
	w := newWaiter(ctx, cmd, numbers, b.done)
	b.waiters = append(b.waiters, w)
	return q, w, nil
}

// alone sends a command that no batch may have.
func (p *pipeline) alone(ctx context.Context, cmd command) error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return redis.ErrClosed
	}
	p.running.Add(1)
	p.mu.Unlock()
	defer p.running.Done()
	return p.client.Process(ctx, cmd)
}

// leave gives the connection of a caller on to those that wait.
func (p *pipeline) leave(q *queue) {
	p.mu.Lock()
	waits := len(q.waiting) > 0
	if !waits {
		p.release(q)
	}
	p.mu.Unlock()
	if waits {
		go p.run(q)
	}
}

// run sends batches for as long as calls wait.
func (p *pipeline) run(q *queue) {
	for b := p.next(q); b != nil; b = p.next(q) {
		b.send(p.client)
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

// send sends the commands of those who still wait, and ends with the last of their deadlines.
func (b *batch) send(client redis.UniversalClient) {
	defer close(b.done)
	waiters, until, cause := b.waiters[:0], time.Time{}, error(nil)
	for _, w := range b.waiters {
		if w.withdrawn() {
			continue
		}
		waiters = append(waiters, w)
		if w.deadline.After(until) {
			until, cause = w.deadline, deadline.Cause(w.cmd.hurried)
		}
	}
	b.waiters = waiters
	if len(waiters) == 0 {
		return
	}
	err := b.exec(client, until, cause)
	for _, w := range waiters {
		w.err = err
	}
}

// exec returns why the batch as a whole failed; the cause is whose the last deadline is. A hook of the client
// runs here and not in a goroutine of a caller, whose server would recover from its panic: here it would end
// the process. Hooks of the nodes of a cluster go-redis runs elsewhere, out of reach: see SeparateCalls.
func (b *batch) exec(client redis.UniversalClient, until time.Time, cause error) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("%w: %v", errHookPanicked, panicked)
		}
	}()
	ctx, cancel := context.WithDeadlineCause(context.Background(), until, cause)
	defer cancel()
	pipe := client.Pipeline()
	for _, w := range b.waiters {
		if err := pipe.Process(ctx, w.cmd); err != nil {
			return err
		}
	}
	_, err = pipe.Exec(ctx)
	return err
}

var errHookPanicked = errors.New("bucket: a hook of the Redis client panicked")
