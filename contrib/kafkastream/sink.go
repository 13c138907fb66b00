package kafkastream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
)

// Config says where a [Sink] brings events. The zero value is the default in each field but Brokers. Every mistake in it is reported, all at once.
type Config struct {
	// Brokers are addresses to begin with, as host:port. At least one is required.
	Brokers []string
	// Options are further ones of the client, such as kgo.SASL, kgo.DialTLSConfig and kgo.ClientID. Those on which the promises of this package rest are
	// set after them.
	Options []kgo.Opt
	// MaxEvent is how large an event may be, in bytes, from 1 KiB to 16 MiB: no more than max.message.bytes of the topics. Zero means 256 KiB. Larger
	// ones are stream.ErrTooLarge.
	MaxEvent int
	// Topics says how topics are made that are not there.
	Topics TopicConfig

	// Logger is told if topics cannot be made. Nil means slog.Default().
	Logger *slog.Logger
}

// TopicConfig says how a topic is made that is not there, with the first event for it. One that is there stays as it is.
type TopicConfig struct {
	// Leave makes no topic: somebody else does. Events for one that is not there wait.
	Leave bool
	// Partitions and Replicas are how many it has. Zero means what the brokers say.
	Partitions int32
	Replicas   int16
	// Retention is for how long events stay, from a minute to ten years. Zero means seven days.
	Retention time.Duration
}

const (
	minEvent         = 1 << 10
	maxEvent         = 16 << 20
	defaultEvent     = 256 << 10
	minRetention     = time.Minute
	maxRetention     = 10 * 365 * 24 * time.Hour
	defaultRetention = 7 * 24 * time.Hour
	// minBatch is how large a batch of the client may be at least, which brokers take unless told otherwise, and headroom what it has beside events.
	minBatch = 1_000_000
	headroom = 64 << 10
	// produceTimeout is for how long a broker may take to have a batch replicated, and overhead for how much longer a connection may be silent.
	produceTimeout = 5 * time.Second
	overhead       = 5 * time.Second
)

// Sink is the stream.Sink of Kafka. It is made by [New] and safe for concurrent use.
type Sink struct {
	client *kgo.Client
	cfg    Config

	// turn has an element while the client has records of a chunk, also of one that nobody waits for any more. With others behind these in one partition the
	// client fails some of those with them, and stores the rest.
	turn chan struct{}
	// life is that of the sink, end ends it, and flushing are who send what the client has.
	life     context.Context //nolint:containedctx // It is that of goroutines which the sink owns.
	end      context.CancelFunc
	flushing sync.WaitGroup

	// making guards made: the topics that are there, or are not made.
	making sync.Mutex
	made   map[string]bool
}

var _ stream.Sink = (*Sink)(nil)

// New returns the sink of a Kafka. It does not connect. The error has everything that is wrong with the configuration.
func New(cfg Config) (*Sink, error) {
	cfg.MaxEvent = cmp.Or(cfg.MaxEvent, defaultEvent)
	cfg.Topics.Retention = cmp.Or(cfg.Topics.Retention, defaultRetention)
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append(append([]kgo.Opt{}, cfg.Options...),
		kgo.SeedBrokers(cfg.Brokers...),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		// What Java, librdkafka and others do with a key.
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
		kgo.ProducerBatchMaxBytes(int32(max(cfg.MaxEvent+headroom, minBatch))),
		// It never blocks: it has one chunk at a time.
		kgo.MaxBufferedRecords(math.MaxInt32),
		// Send says when a batch is whole, and the queue sends again.
		kgo.ManualFlushing(), kgo.ProduceRequestTimeout(produceTimeout), kgo.RequestTimeoutOverhead(overhead), kgo.MetadataMinAge(250*time.Millisecond),
		kgo.AllowIdempotentProduceCancellation(), kgo.RetryBackoffFn(backoff),
	)...)
	if err != nil {
		return nil, fmt.Errorf("kafkastream: %w", err)
	}
	s := &Sink{client: client, cfg: cfg, made: map[string]bool{}, turn: make(chan struct{}, 1)}
	s.life, s.end = context.WithCancel(context.Background())
	return s, nil
}

func (c *Config) validate() error {
	var errs []error
	if len(c.Brokers) == 0 {
		errs = append(errs, errors.New("kafkastream: Config.Brokers is empty: write host:port of at least one"))
	}
	if c.MaxEvent < minEvent || c.MaxEvent > maxEvent {
		errs = append(errs, fmt.Errorf("kafkastream: Config.MaxEvent is %d: write %d to %d, or 0 for %d", c.MaxEvent, minEvent, maxEvent, defaultEvent))
	}
	t := &c.Topics
	if t.Partitions < 0 || t.Replicas < 0 {
		errs = append(errs, fmt.Errorf("kafkastream: Config.Topics has %d partitions and %d replicas: write 1 or more, or 0 for what the brokers say", t.Partitions, t.Replicas))
	}
	if t.Retention < minRetention || t.Retention > maxRetention {
		errs = append(errs, fmt.Errorf("kafkastream: Config.Topics.Retention is %v: write %v to %v, or 0 for %v", t.Retention, minRetention, maxRetention, defaultRetention))
	}
	return errors.Join(errs...)
}

// Close ends the connections. What was not acknowledged is lost to this sink: close the queue first. It always returns nil.
func (s *Sink) Close() error {
	s.end()
	s.client.Close()
	s.flushing.Wait()
	return nil
}

// Send implements stream.Sink.
func (s *Sink) Send(ctx context.Context, batch []stream.Envelope) []error {
	b := &outcome{errs: make([]error, len(batch)), open: map[int]bool{}, all: make(chan struct{}, 1)}
	wanted := make([]int, 0, len(batch))
	for i := range batch {
		if err := s.check(&batch[i]); err != nil {
			b.errs[i] = err
			continue
		}
		s.ensure(ctx, batch[i].Topic)
		wanted = append(wanted, i)
	}
	s.inChunks(ctx, b, batch, wanted)
	s.apart(ctx, b, batch)
	for _, err := range b.errs {
		if err != nil {
			return b.errs
		}
	}
	return nil
}

// check returns why an envelope is never sent.
func (s *Sink) check(e *stream.Envelope) error {
	if size := e.Size(); size > s.cfg.MaxEvent {
		return fmt.Errorf("kafkastream: an event of %d bytes, of at most %d: %w", size, s.cfg.MaxEvent, stream.ErrTooLarge)
	}
	if err := stream.CheckTopic(e.Topic); err != nil {
		return fmt.Errorf("kafkastream: %w: %w", err, stream.ErrRefused)
	}
	return nil
}

// outcome is what became of a batch. After it was taken nothing is written to errs.
type outcome struct {
	mu   sync.Mutex
	errs []error
	// open are the envelopes that nothing was said of.
	open map[int]bool
	// all has an element when there are none.
	all chan struct{}
}

// backoff is for how long the client waits after so many failures of a broker, between half of it and all of it: 50 ms, doubled up to 1.6 s.
func backoff(failures int) time.Duration {
	wait := 50 * time.Millisecond << min(max(failures-1, 0), 5)
	return wait/2 + rand.N(wait/2) //nolint:gosec // Jitter need not be secret.
}

// inChunks sends envelopes in chunks of which each partition gets at most one batch. With two under way the first may be lost and the second stored, where a
// broker does not know this producer yet, or not any more. After a chunk that was not stored as a whole, nothing is sent.
func (s *Sink) inChunks(ctx context.Context, b *outcome, batch []stream.Envelope, wanted []int) {
	for len(wanted) > 0 {
		n, size := 0, 0
		for n < len(wanted) {
			size += batch[wanted[n]].Size()
			if n > 0 && size > s.chunk() {
				break
			}
			n++
		}
		s.produce(ctx, b, batch, wanted[:n])
		var failed error
		for _, i := range wanted[:n] {
			if err := b.errs[i]; err != nil && !errors.Is(err, kerr.MessageTooLarge) {
				failed = err
			}
		}
		wanted = wanted[n:]
		if failed != nil {
			for _, i := range wanted {
				b.errs[i] = failed
			}
			return
		}
	}
}

// chunk is how many bytes of events a batch of the client takes. Envelopes count each byte that a record has.
func (s *Sink) chunk() int { return max(s.cfg.MaxEvent, minBatch-headroom) }

// produce sends some envelopes of a batch when it is their turn, and waits for all, or until the context ends.
func (s *Sink) produce(ctx context.Context, b *outcome, batch []stream.Envelope, wanted []int) {
	if len(wanted) == 0 {
		return
	}
	b.mu.Lock()
	for _, i := range wanted {
		b.open[i] = true
	}
	b.mu.Unlock()
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		b.abandon(ctx.Err())
		return
	}
	var left atomic.Int64
	left.Store(int64(len(wanted)))
	for _, i := range wanted {
		s.client.Produce(ctx, recordOf(&batch[i]), func(_ *kgo.Record, err error) {
			b.close(i, err)
			if left.Add(-1) == 0 {
				<-s.turn
			}
		})
	}
	// It goes on for records that nobody waits for any more, until the client has done with them.
	s.flushing.Go(func() { _ = s.client.Flush(s.life) })
	select {
	case <-b.all:
	case <-ctx.Done():
		b.abandon(ctx.Err())
	}
}

// close says what became of an envelope.
func (b *outcome) close(i int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open[i] {
		return
	}
	delete(b.open, i)
	b.errs[i] = err
	if len(b.open) == 0 {
		b.all <- struct{}{}
	}
}

// abandon says of the rest that nobody waits for it.
func (b *outcome) abandon(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.open {
		b.errs[i] = fmt.Errorf("kafkastream: %w", err)
	}
	clear(b.open)
}

// apart sends each envelope by itself that the brokers found too large, because they mean all that were in one batch of theirs: it is too
// large if it still is.
func (s *Sink) apart(ctx context.Context, b *outcome, batch []stream.Envelope) {
	for i := range batch {
		if !errors.Is(b.errs[i], kerr.MessageTooLarge) {
			continue
		}
		alone := &outcome{errs: make([]error, len(batch)), open: map[int]bool{}, all: make(chan struct{}, 1)}
		s.produce(ctx, alone, batch, []int{i})
		b.errs[i] = alone.errs[i]
		if errors.Is(b.errs[i], kerr.MessageTooLarge) {
			b.errs[i] = fmt.Errorf("kafkastream: %w: %w", b.errs[i], stream.ErrTooLarge)
		}
	}
}
