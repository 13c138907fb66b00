package natsstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
)

// Config says where a [Sink] brings events. The zero value is the default in each field but Conn. Every mistake in it is reported, all at once.
type Config struct {
	// Conn is the connection. It is required, and the caller's to close. Give it nats.MaxReconnects(-1), without which it gives up after two minutes.
	Conn *nats.Conn
	// MaxEvent is how large an event may be, in bytes, from 1 KiB to 16 MiB. Zero means 256 KiB. Larger ones are stream.ErrTooLarge, and so are those that the
	// server or its stream finds too large.
	MaxEvent int
	// Streams says how the stream of a topic is made that is not there.
	Streams StreamConfig

	// Logger is told if streams cannot be made. Nil means slog.Default().
	Logger *slog.Logger
}

// StreamConfig says how the stream of a topic is made that is not there, with the first event for it. It has the name of the topic with _ for each dot, and
// the subjects TOPIC and TOPIC.>. One that is there stays as it is.
type StreamConfig struct {
	// Leave makes no stream: somebody else does. Events for one that is not there wait.
	Leave bool
	// Replicas is how many servers keep it, 1 to 5. Zero means one.
	Replicas int
	// Retention is for how long events stay, from a minute to ten years. Zero means seven days.
	Retention time.Duration
	// MaxBytes is how large it becomes, the oldest events making room. Zero means 1 GiB.
	MaxBytes int64
}

const (
	minEvent         = 1 << 10
	maxEvent         = 16 << 20
	defaultEvent     = 256 << 10
	maxReplicas      = 5
	minRetention     = time.Minute
	maxRetention     = 10 * 365 * 24 * time.Hour
	defaultRetention = 7 * 24 * time.Hour
	minBytes         = 1 << 20
	defaultBytes     = 1 << 30
	// window is for how long JetStream knows an id: longer than a queue sends again unless it is told to.
	window = 10 * time.Minute
	// makeTimeout is for how long a stream may take to be made, and again until it is tried once more.
	makeTimeout = 2 * time.Second
	again       = time.Minute
	// workers is how many tenants are sent at once.
	workers = 64
)

// Sink is the stream.Sink of NATS JetStream. It is made by [New] and safe for concurrent use.
type Sink struct {
	js  jetstream.JetStream
	cfg Config

	// making guards next: when the stream of a topic is asked for again, zero for never.
	making sync.Mutex
	next   map[string]time.Time
}

var _ stream.Sink = (*Sink)(nil)

// New returns the sink of a connection. It asks the server nothing. The error has everything that is wrong with the configuration.
func New(cfg Config) (*Sink, error) {
	cfg.MaxEvent = cmp.Or(cfg.MaxEvent, defaultEvent)
	cfg.Streams.Replicas = cmp.Or(cfg.Streams.Replicas, 1)
	cfg.Streams.Retention = cmp.Or(cfg.Streams.Retention, defaultRetention)
	cfg.Streams.MaxBytes = cmp.Or(cfg.Streams.MaxBytes, defaultBytes)
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	js, err := jetstream.New(cfg.Conn)
	if err != nil {
		return nil, fmt.Errorf("natsstream: %w", err)
	}
	return &Sink{js: js, cfg: cfg, next: map[string]time.Time{}}, nil
}

func (c *Config) validate() error {
	var errs []error
	wrong := func(format string, arguments ...any) {
		errs = append(errs, fmt.Errorf("natsstream: "+format, arguments...))
	}
	if c.Conn == nil {
		wrong("Config.Conn is nil: set the result of nats.Connect")
	}
	if c.MaxEvent < minEvent || c.MaxEvent > maxEvent {
		wrong("Config.MaxEvent is %d: write %d to %d, or 0 for %d", c.MaxEvent, minEvent, maxEvent, defaultEvent)
	}
	s := &c.Streams
	if s.Replicas < 1 || s.Replicas > maxReplicas {
		wrong("Config.Streams.Replicas is %d: write 1 to %d", s.Replicas, maxReplicas)
	}
	if s.Retention < minRetention || s.Retention > maxRetention {
		wrong("Config.Streams.Retention is %v: write %v to %v, or 0 for %v", s.Retention, minRetention, maxRetention, defaultRetention)
	}
	if s.MaxBytes < minBytes {
		wrong("Config.Streams.MaxBytes is %d: write %d or more, or 0 for %d", s.MaxBytes, minBytes, defaultBytes)
	}
	return errors.Join(errs...)
}

// Send implements stream.Sink. Of each key it sends one event at a time, because JetStream stores what comes later whatever became of what came before.
func (s *Sink) Send(ctx context.Context, batch []stream.Envelope) []error {
	errs := make([]error, len(batch))
	byKey := map[string][]int{}
	for i := range batch {
		e := &batch[i]
		if errs[i] = s.check(e); errs[i] != nil {
			continue
		}
		s.ensure(ctx, e.Topic)
		key := subjectOf(e)
		byKey[key] = append(byKey[key], i)
	}
	keys := make(chan []int, len(byKey))
	for _, wanted := range byKey {
		keys <- wanted
	}
	close(keys)
	var group sync.WaitGroup
	for range min(workers, len(byKey)) {
		group.Go(func() {
			for wanted := range keys {
				s.inOrder(ctx, batch, wanted, errs)
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return errs
		}
	}
	return nil
}

// check returns why an envelope is never sent.
func (s *Sink) check(e *stream.Envelope) error {
	if size := e.Size(); size > s.cfg.MaxEvent {
		return fmt.Errorf("natsstream: an event of %d bytes, of at most %d: %w", size, s.cfg.MaxEvent, stream.ErrTooLarge)
	}
	if err := stream.CheckTopic(e.Topic); err != nil {
		return fmt.Errorf("natsstream: %w: %w", err, stream.ErrRefused)
	}
	return nil
}

// inOrder sends the events of a key, and none after one that may be sent again.
func (s *Sink) inOrder(ctx context.Context, batch []stream.Envelope, wanted []int, errs []error) {
	var failed error
	for _, i := range wanted {
		if failed != nil {
			errs[i] = failed
			continue
		}
		_, err := s.js.PublishMsg(ctx, messageOf(&batch[i]), jetstream.WithRetryAttempts(0))
		switch {
		case err == nil:
		case errors.Is(err, nats.ErrMaxPayload) || isTooLarge(err):
			errs[i] = fmt.Errorf("natsstream: %w: %w", err, stream.ErrTooLarge)
		default:
			failed = fmt.Errorf("natsstream: %w", err)
			errs[i] = failed
		}
	}
}

// isTooLarge says whether a stream takes no message of this size.
func isTooLarge(err error) bool {
	// JSStreamMessageExceedsMaximumErr of the server.
	const exceeds = 10054
	var refused *jetstream.APIError
	return errors.As(err, &refused) && refused.ErrorCode == exceeds
}

// ensure makes the stream of a topic that is not there. It asks once, and again after a while if nobody has answered or the stream cannot be made.
func (s *Sink) ensure(ctx context.Context, topic string) {
	s.making.Lock()
	defer s.making.Unlock()
	next, known := s.next[topic]
	if s.cfg.Streams.Leave || known && (next.IsZero() || time.Now().Before(next)) {
		return
	}
	const most = 1000
	if len(s.next) >= most {
		clear(s.next)
	}
	err := s.create(ctx, topic)
	switch {
	case err == nil || errors.Is(err, jetstream.ErrStreamNameAlreadyInUse):
		s.next[topic] = time.Time{}
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrNoResponders):
		// The server is away, or this user may make none, to which it says nothing.
		if ctx.Err() == nil {
			s.next[topic] = time.Now().Add(makeTimeout)
		}
	default:
		s.next[topic] = time.Now().Add(again)
		s.cfg.Logger.WarnContext(ctx, "ratelimit: the stream of a topic of events cannot be made: somebody else has to, or its events are dropped when they are too old",
			slog.String("topic", topic), slog.Any("error", err))
	}
}

func (s *Sink) create(ctx context.Context, topic string) error {
	ctx, cancel := context.WithTimeout(ctx, makeTimeout)
	defer cancel()
	want := s.cfg.Streams
	_, err := s.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: StreamName(topic), Subjects: []string{topic, topic + ".>"}, Storage: jetstream.FileStorage,
		MaxAge: want.Retention, MaxBytes: want.MaxBytes, Replicas: want.Replicas, Duplicates: min(window, want.Retention),
	})
	return err
}

// StreamName returns the name of the stream that is made for a topic.
func StreamName(topic string) string { return strings.ReplaceAll(topic, ".", "_") }
