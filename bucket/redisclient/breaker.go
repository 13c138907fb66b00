package redisclient

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
)

const (
	// defaultFailures and defaultDelay are the defaults of a BreakerConfig.
	defaultFailures = 5
	defaultDelay    = 500 * time.Millisecond
	// breakerJitter is by which share a breaker may stay open for longer or shorter than its delay.
	breakerJitter = 0.2
	// maxUntold is how many changes wait for an observer that does not come back.
	maxUntold = 64
)

// ErrBreakerOpen says that a node of the store has failed so often that it is not asked for a while:
// nothing was sent. It matches [bucket.ErrUnavailable] as well.
var ErrBreakerOpen = fmt.Errorf("%w: its breaker is open", bucket.ErrUnavailable)

// BreakerConfig configures the circuit breakers of a client, one for each node. The zero value is a
// breaker with defaults.
//
// A breaker opens after some failures in a row. While it is open, calls to its node fail at once with
// [ErrBreakerOpen]. After a delay it lets one call pass: if that succeeds the breaker closes, if it fails
// the breaker stays open for another delay.
//
// A failure is a call that got no reply: refused, cut off, or silent until the timeout of the store or of
// the socket. So is a reply that costs the connection: READONLY, too many clients, a refused password. Any
// other error reply comes from a node that lives, and is none. What the caller ended says nothing: its
// cancellation, and its own deadline if that is shorter than the timeout of the store. Nor does a
// connection pool that is used up.
type BreakerConfig struct {
	// Disabled leaves the breakers away. With a store that is slow, every call then opens a connection.
	Disabled bool
	// Failures is how many failures in a row open a breaker, at most 1000. Zero means 5.
	Failures int
	// Delay is how long a breaker stays open, from a millisecond to a minute. Each breaker draws its own
	// delay, up to a fifth shorter or longer, so that replicas do not ask a node that comes back all at
	// once. Zero means half a second.
	Delay time.Duration
	// Observer is told of each change of state as an [event.BreakerChanged], in the call that made it and
	// one after the other. While it does not come back, only the first changes are kept for it. Nil tells
	// nobody.
	Observer event.Observer
}

// check returns all that is wrong.
func (c *BreakerConfig) check() error {
	var errs []error
	if c.Failures < 0 || c.Failures > 1000 {
		errs = append(errs, fmt.Errorf("redisclient: a breaker that opens after %d failures; 1 to 1000 fits, and 0 means %d", c.Failures, defaultFailures))
	}
	if c.Delay != 0 && (c.Delay < time.Millisecond || c.Delay > time.Minute) {
		errs = append(errs, fmt.Errorf("redisclient: a breaker that stays open for %v; 1ms to 1m fits, and 0 means %v", c.Delay, defaultDelay))
	}
	return errors.Join(errs...)
}

// AddBreaker gives a client of one's own a breaker for each node, as [Open] does with its own: one
// for a server or the master behind Sentinels, one for each node of a cluster or a ring. Besides, errors of
// connecting then match [bucket.ErrUnavailable]. Call it once, before the client is used. A disabled configuration
// adds no breaker.
func AddBreaker(client redis.UniversalClient, cfg BreakerConfig) error {
	if err := cfg.check(); err != nil {
		return err
	}
	add := func(node *redis.Client) {
		// Other options than those of Bound have timeouts of their own, and may repeat what has no deadline.
		o, unbounded := node.Options(), time.Duration(0)
		if o.ReadTimeout == boundSocket && o.MaxRetries <= 0 {
			unbounded = boundUnbounded
		}
		addNodeHook(node, o.Addr, newNodes(), unbounded, &cfg)
	}
	switch c := client.(type) {
	case *redis.Client:
		add(c)
	case *redis.ClusterClient:
		c.OnNewNode(add)
	case *redis.Ring:
		c.OnNewNode(add)
		return c.ForEachShard(context.Background(), func(_ context.Context, node *redis.Client) error {
			add(node)
			return nil
		})
	default:
		return fmt.Errorf("redisclient: no breaker fits a client of type %T; a *redis.Client, *redis.ClusterClient or *redis.Ring does", client)
	}
	return nil
}

// breaker is the breaker of one node.
type breaker struct {
	node     string
	steps    *gobreaker.TwoStepCircuitBreaker[struct{}]
	refusal  error
	observer event.Observer

	mu sync.Mutex
	// changes are those that the observer has not been told.
	changes []event.BreakerChanged
	// untold says that there are changes, and telling is held by who tells them: one after the other.
	untold  atomic.Bool
	telling sync.Mutex
}

// newBreaker returns a breaker, or nil if the configuration disables it.
func newBreaker(node string, cfg *BreakerConfig) *breaker {
	if cfg.Disabled {
		return nil
	}
	failures, delay := uint32(defaultFailures), defaultDelay
	if cfg.Failures > 0 {
		failures = uint32(cfg.Failures)
	}
	if cfg.Delay > 0 {
		delay = cfg.Delay
	}
	//nolint:gosec // Nobody gains by guessing when a breaker probes.
	jitter := 1 - breakerJitter + 2*breakerJitter*rand.Float64()
	b := &breaker{node: node, refusal: fmt.Errorf("%w: node %s", ErrBreakerOpen, node), observer: cfg.Observer}
	settings := gobreaker.Settings{
		Name:         node,
		Timeout:      time.Duration(jitter * float64(delay)),
		ReadyToTrip:  func(counts gobreaker.Counts) bool { return counts.ConsecutiveFailures >= failures },
		IsSuccessful: func(err error) bool { return err == nil },
		IsExcluded:   func(err error) bool { return errors.Is(err, errUnknown) },
	}
	if cfg.Observer != nil {
		settings.OnStateChange = b.changed
	}
	b.steps = gobreaker.NewTwoStepCircuitBreaker[struct{}](settings)
	return b
}

// changed notes a change. It is called under the lock of the state machine, where no observer may run.
func (b *breaker) changed(_ string, from, to gobreaker.State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.changes) == maxUntold {
		return
	}
	b.changes = append(b.changes, event.BreakerChanged{At: time.Now(), Node: b.node, From: breakerState(from), To: breakerState(to)})
	b.untold.Store(true)
}

func breakerState(state gobreaker.State) event.BreakerState {
	switch state {
	case gobreaker.StateOpen:
		return event.BreakerOpen
	case gobreaker.StateHalfOpen:
		return event.BreakerHalfOpen
	default:
		return event.BreakerClosed
	}
}

// tell tells the observer what has changed, in order. Who finds somebody telling goes on: the other looks
// again before it leaves.
func (b *breaker) tell(ctx context.Context) {
	for b.untold.Load() && b.telling.TryLock() {
		b.tellChanges(ctx)
	}
}

// tellChanges is called with the lock of who tells, and unlocks it.
func (b *breaker) tellChanges(ctx context.Context) {
	defer b.telling.Unlock()
	b.mu.Lock()
	changes := b.changes
	b.changes = nil
	b.untold.Store(false)
	b.mu.Unlock()
	for _, change := range changes {
		b.observer.Observe(ctx, change)
	}
}
