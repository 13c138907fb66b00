package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/event/redisstream"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook"
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
	// looked is when it was looked whether the stream is still the one that was read.
	looked time.Time
}

// look is how often that is looked at, where nothing has come.
const look = time.Second

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
		return false, r.same(ctx)
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

// same goes on where the stream ends if that is before what was read: it was lost, and its Redis or another one has begun it anew by an earlier clock. Nothing would be read
// before that clock has come to where it was. Of what an older copy of the stream has nobody knows what was read: it is not brought again. What comes into one that is
// empty is all new.
func (r *reader) same(ctx context.Context) error {
	if time.Since(r.looked) < look {
		return nil
	}
	r.looked = time.Now()
	last, err := r.last(ctx)
	if err != nil || last == r.at || last != nothing && !earlier(last, r.at) {
		return err
	}
	if last != nothing {
		r.d.cfg.Logger.WarnContext(ctx, "dispatch: a stream ends before what was read of it: it goes on from there", slog.String("topic", r.topic), slog.String("end", last))
	}
	if _, err := r.d.deliveries.TakeEvents(ctx, r.topic, r.at, last, nil); err != nil {
		return err
	}
	r.at = last
	return nil
}

// nothing is where a stream ends that has no entry.
const nothing = "0-0"

// last returns where the stream ends.
func (r *reader) last(ctx context.Context) (string, error) {
	last, err := r.d.cfg.Client.XRevRangeN(ctx, r.key, "+", "-", 1).Result()
	if err != nil {
		return "", fmt.Errorf("dispatch: read %s: %w", r.topic, err)
	}
	if len(last) == 0 {
		return nothing, nil
	}
	return last[0].ID, nil
}

// earlier reports whether an ID of an entry comes before another one. Both are two numbers, without zeros before them.
func earlier(a, b string) bool {
	compare := func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }
	atA, nA, _ := strings.Cut(a, "-")
	atB, nB, _ := strings.Cut(b, "-")
	return cmp.Or(compare(atA, atB), compare(nA, nB)) < 0
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
	to, err := r.last(ctx)
	if err != nil {
		return err
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
