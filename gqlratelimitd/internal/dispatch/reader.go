package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/event/redisstream"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/event/webhook"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// batch is how many events are read at once.
const batch = 200

// reader reads the stream of a topic. It is used by one goroutine.
type reader struct {
	d *Dispatcher
	// topic is what it reads, under a key.
	topic, key string
	// at is how far the stream was read when this was known last, and left says that nobody reads it. Neither is more than a guess: the database knows.
	at   string
	left bool
}

// read reads all that has come.
func (r *reader) read(ctx context.Context) error {
	r.left = false
	for {
		more, err := r.next(ctx)
		if errors.Is(err, store.ErrMoved) {
			// Another daemon was first.
			r.at = ""
			continue
		}
		if err != nil || !more {
			return err
		}
	}
}

// next reads a batch, and reports whether there may be another one.
func (r *reader) next(ctx context.Context) (more bool, _ error) {
	if r.at == "" {
		if err := r.begin(ctx); err != nil {
			return false, err
		}
	}
	streams, err := r.d.cfg.Client.XRead(ctx, &redis.XReadArgs{Streams: []string{r.key, r.at}, Count: batch, Block: -1}).Result()
	if errors.Is(err, redis.Nil) || err == nil && len(streams[0].Messages) == 0 {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("dispatch: read %s: %w", r.topic, err)
	}
	entries := streams[0].Messages
	to := entries[len(entries)-1].ID
	in, err := r.d.deliveries.TakeEvents(ctx, r.topic, r.at, to, r.arrivals(ctx, entries))
	if err != nil {
		return false, err
	}
	r.at = to
	r.d.told.took(ctx, in)
	if in.Put > 0 {
		r.d.worker.Wake()
	}
	return len(entries) == batch, nil
}

// begin finds out how far the stream was read. Where nobody has read it, it begins with what comes next.
func (r *reader) begin(ctx context.Context) error {
	err := r.d.cfg.Store.Read(ctx, func(v *store.View) (err error) {
		r.at, err = v.Position(r.topic)
		return err
	})
	if err != nil || r.at != "" {
		return err
	}
	last, err := r.d.cfg.Client.XRevRangeN(ctx, r.key, "+", "-", 1).Result()
	if err != nil {
		return fmt.Errorf("dispatch: read %s: %w", r.topic, err)
	}
	to := "0-0"
	if len(last) > 0 {
		to = last[0].ID
	}
	if _, err := r.d.deliveries.TakeEvents(ctx, r.topic, "", to, nil); err != nil {
		return err
	}
	r.at = to
	return nil
}

// arrivals are entries of the stream as events. What somebody else has written is passed over, and counted.
func (r *reader) arrivals(ctx context.Context, entries []redis.XMessage) (all []store.Arrival) {
	for _, entry := range entries {
		e, err := redisstream.Decode(r.topic, entry)
		if err != nil {
			r.d.told.unread(ctx)
			r.d.cfg.Logger.DebugContext(ctx, "dispatch: an entry of a stream is no event", slog.Any("error", err))
			continue
		}
		all = append(all, arrival(&e))
	}
	return all
}

func arrival(e *stream.Envelope) store.Arrival {
	return store.Arrival{Subject: e.Subject, Type: e.Type, Message: func() (webhook.Message, bool) { return message(e) }}
}
