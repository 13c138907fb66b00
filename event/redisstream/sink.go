package redisstream

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redisplace"
)

// Config says where a [Sink] brings events. The zero value is the default in each field but Client. Every mistake in it is reported, all at once.
type Config struct {
	// Client is that of the Redis. It is required, and the caller's to close. redisclient.Open makes one whose calls end when their deadline does.
	Client redis.UniversalClient
	// Namespace is that of bucket.RedisConfig. Empty means main.
	Namespace string
	// MaxEntries is how many events each topic keeps, about: Redis keeps up to a hundred more. The oldest make room. It is 100 to 100 million; zero means
	// 50 000, which take some 20 MB where most are refusals with three limits.
	MaxEntries int64
	// MaxAge is for how long events stay, from a minute to a year. A topic that gets none for so long is gone. Zero means seven days.
	MaxAge time.Duration
	// MaxEvent is how large an event may be, in bytes, from 1 KiB to 16 MiB. Zero means 256 KiB. Larger ones are stream.ErrTooLarge.
	MaxEvent int
}

const (
	minEntries     = 100
	maxEntries     = 100_000_000
	defaultEntries = 50_000
	minAge         = time.Minute
	maxAge         = 365 * 24 * time.Hour
	defaultAge     = 7 * 24 * time.Hour
	minEvent       = 1 << 10
	maxEvent       = 16 << 20
	defaultEvent   = 256 << 10
	// chunk is how many events one script stores, and chunkBytes about of how many bytes: while it does, the Redis does nothing else.
	chunk      = 64
	chunkBytes = 256 << 10
)

// Sink is the stream.Sink of a Redis. It is made by [New] and safe for concurrent use.
type Sink struct {
	cfg    Config
	prefix string
}

var _ stream.Sink = (*Sink)(nil)

//go:embed add.lua
var addSource string

var addScript = redis.NewScript(addSource)

// New returns the sink of a Redis. It does not connect. The error has everything that is wrong with the configuration.
func New(cfg Config) (*Sink, error) {
	place := redisplace.Place{Client: cfg.Client, Namespace: cfg.Namespace}
	errs := []error{place.Complete("redisstream")}
	cfg.MaxEntries = cmp.Or(cfg.MaxEntries, defaultEntries)
	cfg.MaxAge = cmp.Or(cfg.MaxAge, defaultAge)
	cfg.MaxEvent = cmp.Or(cfg.MaxEvent, defaultEvent)
	if cfg.MaxEntries < minEntries || cfg.MaxEntries > maxEntries {
		errs = append(errs, fmt.Errorf("redisstream: Config.MaxEntries is %d: write %d to %d, or 0 for %d", cfg.MaxEntries, minEntries, maxEntries, defaultEntries))
	}
	if cfg.MaxAge < minAge || cfg.MaxAge > maxAge {
		errs = append(errs, fmt.Errorf("redisstream: Config.MaxAge is %v: write %v to %v, or 0 for %v", cfg.MaxAge, minAge, maxAge, defaultAge))
	}
	if cfg.MaxEvent < minEvent || cfg.MaxEvent > maxEvent {
		errs = append(errs, fmt.Errorf("redisstream: Config.MaxEvent is %d: write %d to %d, or 0 for %d", cfg.MaxEvent, minEvent, maxEvent, defaultEvent))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Sink{cfg, place.Key("stream:")}, nil
}

// Key returns the key of the stream of a topic. An empty namespace means main.
func Key(namespace, topic string) string {
	return "rl:" + cmp.Or(namespace, "main") + ":stream:" + topic
}

// Send implements stream.Sink. Where Redis refuses a part of the events of a topic, those after it are not tried.
func (s *Sink) Send(ctx context.Context, batch []stream.Envelope) []error {
	wanted, errs := s.sort(batch)
	failed := make(map[string]error)
	for _, part := range wanted {
		topic := batch[part[0]].Topic
		if failed[topic] == nil {
			failed[topic] = s.add(ctx, topic, batch, part)
		}
		errs = fail(errs, len(batch), part, failed[topic])
	}
	return errs
}

// Append adds the commands that store a batch to a pipeline. Once that was executed, sent returns what [Sink.Send] does. Unlike there, an event may
// be stored after one of its key that may be sent again.
func (s *Sink) Append(ctx context.Context, pipe redis.Pipeliner, batch []stream.Envelope) (sent func() []error) {
	wanted, errs := s.sort(batch)
	commands := make([]*redis.Cmd, len(wanted))
	for i, part := range wanted {
		// A pipeline learns too late that the Redis does not have the script.
		commands[i] = addScript.Eval(ctx, pipe, []string{s.prefix + batch[part[0]].Topic}, s.arguments(batch, part)...)
	}
	return func() []error {
		for i, part := range wanted {
			errs = fail(errs, len(batch), part, commands[i].Err())
		}
		return errs
	}
}

// fail notes an error of a part of a batch, unless it is nil.
func fail(errs []error, n int, part []int, err error) []error {
	if err == nil {
		return errs
	}
	if errs == nil {
		errs = make([]error, n)
	}
	for _, i := range part {
		errs[i] = err
	}
	return errs
}

// sort returns which envelopes of a batch go to Redis in one command each time: those of one topic, in their order. The errors are those of envelopes that
// never do.
func (s *Sink) sort(batch []stream.Envelope) (parts [][]int, errs []error) {
	byTopic := map[string][]int{}
	var order []string
	for i := range batch {
		e := &batch[i]
		if size := e.Size(); size > s.cfg.MaxEvent {
			errs = fail(errs, len(batch), []int{i}, fmt.Errorf("redisstream: an event of %d bytes, of at most %d: %w", size, s.cfg.MaxEvent, stream.ErrTooLarge))
			continue
		}
		if err := stream.CheckTopic(e.Topic); err != nil {
			errs = fail(errs, len(batch), []int{i}, fmt.Errorf("redisstream: %w: %w", err, stream.ErrRefused))
			continue
		}
		if byTopic[e.Topic] == nil {
			order = append(order, e.Topic)
		}
		byTopic[e.Topic] = append(byTopic[e.Topic], i)
	}
	for _, topic := range order {
		for wanted := byTopic[topic]; len(wanted) > 0; {
			n := chunkOf(batch, wanted)
			parts = append(parts, wanted[:n])
			wanted = wanted[n:]
		}
	}
	return parts, errs
}

// chunkOf returns how many of the wanted envelopes one script takes.
func chunkOf(batch []stream.Envelope, wanted []int) int {
	size := 0
	for n, i := range wanted {
		size += batch[i].Size()
		if n == chunk || n > 0 && size > chunkBytes {
			return n
		}
	}
	return len(wanted)
}

// add stores some of a batch, or none of them.
func (s *Sink) add(ctx context.Context, topic string, batch []stream.Envelope, wanted []int) error {
	ctx, cancel := redisplace.Bounded(ctx)
	defer cancel()
	if err := addScript.Run(ctx, s.cfg.Client, []string{s.prefix + topic}, s.arguments(batch, wanted)...).Err(); err != nil {
		return fmt.Errorf("redisstream: %w", err)
	}
	return nil
}

// arguments are those of the script for some of a batch.
func (s *Sink) arguments(batch []stream.Envelope, wanted []int) []any {
	args := make([]any, 0, 2+len(fields)*len(wanted))
	args = append(args, s.cfg.MaxEntries, s.cfg.MaxAge.Milliseconds())
	for _, i := range wanted {
		for _, value := range valuesOf(&batch[i]) {
			args = append(args, value)
		}
	}
	return args
}
