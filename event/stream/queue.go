package stream

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"hash/maphash"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event"
)

// Queue is an event.Observer that brings events to a [Sink]. It is made by [Start] and safe for concurrent use.
type Queue struct {
	cfg     Config
	encoder *Encoder
	seed    maphash.Seed
	told    *instruments

	mu sync.Mutex
	// ring has what waits: length entries from first on. Fields below here are guarded by mu.
	ring          []waiting
	first, length int
	// held is what all events take, those that are being sent included, and lanes what those of some tenants do.
	held  room
	lanes [lanes]room
	// sequences are those of the newest events.
	sequences [topics]uint64
	closed    bool

	// wake has an element if something may have come.
	wake chan struct{}
	// closing is closed when no further events come, ended when the goroutine has ended. stop ends a batch that is being sent.
	closing, ended chan struct{}
	abandoned      context.Context //nolint:containedctx // That of the goroutine, which the queue owns.
	stop           context.CancelFunc

	sent    [topics]atomic.Uint64
	dropped [reasons]atomic.Uint64
	// oldest is when the oldest event came that was not sent, in Unix nanoseconds, 0 if there is none.
	oldest atomic.Int64
}

// lanes is by how many hashes tenants are told apart when room is divided.
const lanes = 256

// room is so much of it.
type room struct{ events, bytes int }

// waiting is an event that waits.
type waiting struct {
	event    event.Event
	came     time.Time
	sequence uint64
	size     int
	lane     uint8
}

var (
	_ event.DropCounter = (*Queue)(nil)
	_ event.Keeper      = (*Queue)(nil)
)

// Start begins to bring events to the sink, whether its broker answers or not. The error has everything that is wrong with the configuration.
func Start(cfg Config) (*Queue, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	q := &Queue{
		cfg: cfg, encoder: cfg.encoder(), seed: maphash.MakeSeed(),
		ring: make([]waiting, cfg.MaxEvents),
		wake: make(chan struct{}, 1), closing: make(chan struct{}), ended: make(chan struct{}),
	}
	var err error
	if q.told, err = newInstruments(cfg.MeterProvider, q); err != nil {
		return nil, err
	}
	q.abandoned, q.stop = context.WithCancel(context.Background())
	go q.run()
	return q, nil
}

// instanceName returns that of the machine and some random digits.
func instanceName() string {
	var random [4]byte
	// It never fails.
	_, _ = rand.Read(random[:])
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "instance"
	}
	host = strings.ToValidUTF8(host[:min(len(host), maxName-2*len(random)-1)], "")
	return host + "-" + hex.EncodeToString(random[:])
}

// Observe takes an event, or drops it. It never waits for a broker, and allocates nothing.
func (q *Queue) Observe(ctx context.Context, e event.Event) { q.Keep(ctx, e) }

// Keep takes an event, and reports whether it did. It takes none that goes to no topic, and drops one for which there is no room.
//
// Room is divided as it gets scarce: tenants have no more than what is still free, in events and in bytes. One that is refused all the time has half of the room,
// the next one a third, and there is always some for a tenant that has none. (A. K. Choudhury and E. L. Hahne, Dynamic queue length thresholds,
// IEEE/ACM Transactions on Networking 6, 1998.) Tenants are told apart by 256 hashes; what is about no tenant is one of them.
func (q *Queue) Keep(_ context.Context, e event.Event) bool {
	k, ok := kindOf(e)
	if !ok {
		return false
	}
	w := waiting{event: e, came: time.Now(), size: k.size, lane: uint8(maphash.String(q.seed, k.tenant) % lanes)}
	reason := q.push(&w, k.topic)
	if reason != kept {
		q.dropped[reason].Add(1)
		return false
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return true
}

// push puts an event into the ring, and returns kept or the reason why not.
func (q *Queue) push(w *waiting, t topic) reason {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sequences[t]++
	w.sequence = q.sequences[t]
	if q.closed {
		return whileClosed
	}
	lane := &q.lanes[w.lane]
	if lane.events+1 > q.cfg.MaxEvents-q.held.events || lane.bytes+w.size > q.cfg.MaxBytes-q.held.bytes {
		return full
	}
	q.ring[(q.first+q.length)%len(q.ring)] = *w
	q.length++
	q.take(w, 1)
	return kept
}

// take takes the room of an event, or with -1 gives it back.
func (q *Queue) take(w *waiting, sign int) {
	lane := &q.lanes[w.lane]
	for _, r := range [...]*room{lane, &q.held} {
		r.events += sign
		r.bytes += sign * w.size
	}
}

// pop appends up to n events to what is about to be sent, in their order. They keep their room.
func (q *Queue) pop(into []waiting, n int) []waiting {
	q.mu.Lock()
	defer q.mu.Unlock()
	for ; n > 0 && q.length > 0; n-- {
		w := &q.ring[q.first]
		into = append(into, *w)
		// What has left the ring is not kept alive by it.
		*w = waiting{}
		q.first = (q.first + 1) % len(q.ring)
		q.length--
	}
	return into
}

// release gives back the room of events that were sent or dropped.
func (q *Queue) release(w *waiting) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.take(w, -1)
}

// Dropped is how many events were not brought to the broker, of whatever reason.
func (q *Queue) Dropped() uint64 {
	n := uint64(0)
	for i := range q.dropped {
		n += q.dropped[i].Load()
	}
	return n
}

// Sent is how many events the broker has acknowledged.
func (q *Queue) Sent() uint64 {
	n := uint64(0)
	for i := range q.sent {
		n += q.sent[i].Load()
	}
	return n
}

// unsent is how many events wait or are being sent.
func (q *Queue) unsent() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.held.events
}

// grace is for how long Close waits for a sink that was told to end.
const grace = time.Second

// Close takes no further events, sends those that wait until the context ends, and drops the rest. It returns nil if nothing was left. It
// may be called again, and waits then as well.
func (q *Queue) Close(ctx context.Context) error {
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		close(q.closing)
	}
	q.mu.Unlock()
	select {
	case <-q.ended:
		return nil
	case <-ctx.Done():
		left := q.unsent()
		q.stop()
		return q.abandon(ctx, left)
	}
}

// abandon waits a little for the goroutine to end.
func (q *Queue) abandon(ctx context.Context, left int) error {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-q.ended:
		if left == 0 {
			return nil
		}
		return fmt.Errorf("stream: up to %d events were not sent: %w", left, context.Cause(ctx))
	case <-timer.C:
		return fmt.Errorf("stream: the sink does not end, and holds up to %d events: %w", left, context.Cause(ctx))
	}
}
