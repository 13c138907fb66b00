package redisstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pace"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redisplace"
)

// ForwardConfig says what [Forward] brings where. The zero value is the default in each field but Client, Topic and Sink. Every mistake in it is
// reported, all at once.
type ForwardConfig struct {
	// Client is that of the Redis with the stream. It is required, and the caller's to close. Its user needs [ConsumerACLRules].
	Client redis.UniversalClient
	// Namespace is that of [Config]. Empty means main.
	Namespace string
	// Topic is the one that is brought on, such as ratelimit.policy.updates. It is required.
	Topic string
	// Group is the group of consumers in which it stands what has arrived, one for each place that events are brought to. Empty means forward.
	Group string
	// Sink is where they go, such as one of Kafka. It is required.
	Sink stream.Sink
	// Logger is told, once, that nothing goes on, and of each entry that never arrives. Nil means slog.Default().
	Logger *slog.Logger
}

const (
	// forwarded is how many events are sent at once, and forwardTimeout for how long that may take.
	forwarded      = 100
	forwardTimeout = 10 * time.Second
	// forwardPoll is how often it is looked for new entries, and longestForwardWait how long it is waited at most after something has failed.
	forwardPoll        = 200 * time.Millisecond
	longestForwardWait = 10 * time.Second
)

// forwarder is what Forward knows.
type forwarder struct {
	ForwardConfig
	key string
	// from is where the next read begins: with what was read and has not arrived, then with what is new.
	from   string
	failed bool
}

// Forward brings the events of a topic of a Redis to another sink, from the oldest that is there, until its context ends: a bridge to a broker that the
// writer of the stream does not know. It returns nil then, and the mistakes of its configuration otherwise.
//
// Each entry arrives at least once, and in the order in which the sink keeps the events of a key: an entry is acknowledged to the Redis once the sink
// has stored it. What the sink never takes is logged and passed over. Of a group one Forward runs at a time; two lose nothing, and send
// events twice. While the Redis or the broker is away it tries again.
func Forward(ctx context.Context, cfg ForwardConfig) error {
	cfg.Group = cmp.Or(cfg.Group, "forward")
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	place := redisplace.Place{Client: cfg.Client, Namespace: cfg.Namespace}
	errs := []error{place.Complete("redisstream")}
	if cfg.Sink == nil {
		errs = append(errs, errors.New("redisstream: ForwardConfig.Sink is nil: set that of another broker"))
	}
	if err := stream.CheckTopic(cfg.Topic); err != nil {
		errs = append(errs, fmt.Errorf("redisstream: ForwardConfig.Topic: %w", err))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	f := &forwarder{ForwardConfig: cfg, key: place.Key("stream:" + cfg.Topic), from: "0"}
	wait := forwardPoll
	for ctx.Err() == nil {
		busy, err := f.step(ctx)
		f.report(ctx, err)
		switch {
		case err != nil:
			wait = min(2*wait, longestForwardWait)
		case busy:
			wait = forwardPoll
			continue
		default:
			wait = forwardPoll
		}
		pace.Sleep(ctx, wait)
	}
	return nil
}

// step brings some entries on, and reports whether there were any.
func (f *forwarder) step(ctx context.Context) (busy bool, _ error) {
	limited, cancel := context.WithTimeout(ctx, forwardTimeout)
	defer cancel()
	entries, err := f.read(limited)
	if err != nil {
		return false, err
	}
	if len(entries) == 0 {
		// Nothing is left of what was read before.
		fresh := f.from == ">"
		f.from = ">"
		return !fresh, nil
	}
	arrived, failure := f.send(limited, entries)
	if failure != nil {
		// What has not arrived is read again.
		f.from = "0"
	}
	if len(arrived) > 0 {
		// What has arrived is not sent again because the context ends just now.
		noting, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer done()
		if err := f.Client.XAck(noting, f.key, f.Group, arrived...).Err(); err != nil {
			f.from = "0"
			return true, errors.Join(failure, fmt.Errorf("redisstream: %w", err))
		}
	}
	return true, failure
}

// read reads the next entries, and makes the group where it is not there.
func (f *forwarder) read(ctx context.Context) ([]redis.XMessage, error) {
	found, err := f.Client.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: f.Group, Consumer: "forward", Streams: []string{f.key, f.from}, Count: forwarded, Block: -1,
	}).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return nil, nil
	case err != nil && strings.HasPrefix(err.Error(), "NOGROUP"):
		// A stream that gets nothing for long is gone, and its groups with it.
		f.from = ">"
		err := f.Client.XGroupCreateMkStream(ctx, f.key, f.Group, "0").Err()
		if err == nil || strings.HasPrefix(err.Error(), "BUSYGROUP") {
			return f.read(ctx)
		}
		return nil, fmt.Errorf("redisstream: %w", err)
	case err != nil:
		return nil, fmt.Errorf("redisstream: %w", err)
	case len(found) == 0:
		return nil, nil
	}
	return found[0].Messages, nil
}

// send sends entries, and returns the IDs of those that are done with: stored, or never taken.
func (f *forwarder) send(ctx context.Context, entries []redis.XMessage) (arrived []string, failure error) {
	var batch []stream.Envelope
	var ids []string
	for _, entry := range entries {
		e, err := Decode(f.Topic, entry)
		if err != nil {
			arrived = append(arrived, entry.ID)
			f.lose(ctx, entry.ID, err)
			continue
		}
		batch, ids = append(batch, e), append(ids, entry.ID)
	}
	if len(batch) == 0 {
		return arrived, nil
	}
	errs := f.Sink.Send(ctx, batch)
	if errs != nil && len(errs) != len(batch) {
		return arrived, fmt.Errorf("redisstream: a sink has said something of %d envelopes of %d", len(errs), len(batch))
	}
	for i, id := range ids {
		switch {
		case errs == nil || errs[i] == nil:
		case errors.Is(errs[i], stream.ErrTooLarge), errors.Is(errs[i], stream.ErrRefused):
			f.lose(ctx, id, errs[i])
		default:
			failure = errs[i]
			continue
		}
		arrived = append(arrived, id)
	}
	return arrived, failure
}

// lose tells the log of an entry that never arrives.
func (f *forwarder) lose(ctx context.Context, id string, err error) {
	f.Logger.ErrorContext(ctx, "redisstream: an event is not brought on", slog.String("topic", f.Topic), slog.String("entry", id), slog.Any("error", err))
}

// report tells the log that nothing goes on, and that it does again.
func (f *forwarder) report(ctx context.Context, failure error) {
	switch {
	case ctx.Err() != nil:
	case failure != nil && !f.failed:
		f.failed = true
		f.Logger.WarnContext(ctx, "redisstream: events are not brought on: they wait in the Redis", slog.String("topic", f.Topic), slog.Any("error", failure))
	case failure == nil && f.failed:
		f.failed = false
		f.Logger.InfoContext(ctx, "redisstream: events are brought on again", slog.String("topic", f.Topic))
	}
}
