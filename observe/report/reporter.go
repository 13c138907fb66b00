package report

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/event/redisstream"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redisplace"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
	"github.com/gqlgen-ratelimit/ratelimit/usage/redisusage"
)

const (
	// maxEntries is about how many activities the stream of a namespace has, of all instances. Most have some hundred bytes.
	maxEntries = 16_384
	// keep is for how long they stay.
	keep = time.Hour
	// idle is after how long an instance writes that has decided nothing and was told nothing, and gone after how long a silent instance is
	// not listed.
	idle = 5 * time.Second
	gone = 10 * time.Second
	// longestPause is how long a reporter waits at most after the Redis has taken nothing.
	longestPause = 8 * time.Second
)

// Reporter writes into Redis once a second what its instance decides, and which policy it serves. It is an observer of the server: put it into
// Config.Observe.Observer of package ratelimit, with event.All beside others, and into that of package policy, wherever the policy comes from. Of
// several followers in one process give it to the one whose policy the server uses. It is made by [Start] and safe for concurrent use.
type Reporter struct {
	cfg     Config
	run     string
	names   names
	counter *counter
	pending *pending
	told    *told
	// refusals are those of whole hours, which a collector reads.
	refusals usage.Refusals
	encoder  *stream.Encoder
	events   *redisstream.Sink
	metrics  *instruments
	stop     context.CancelFunc
	ended    sync.WaitGroup

	// What follows belongs to the goroutine of the loop. unsent are the events that the Redis has not taken. written is when an activity was
	// written, from since when the next one counts, and wait until when the Redis is left alone.
	unsent        []stream.Envelope
	written, from time.Time
	wait          time.Time
	pause         time.Duration
}

var (
	_ event.Counter     = (*Reporter)(nil)
	_ event.Keeper      = (*Reporter)(nil)
	_ event.DropCounter = (*Reporter)(nil)
)

// Start begins to write once a second, whether the Redis answers or not. The error has everything that is wrong with the configuration.
func Start(cfg Config) (*Reporter, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	r := &Reporter{
		cfg: cfg, run: redisplace.NewRun(), names: names{cfg.Key, cfg.Users}, pending: newPending(), told: new(told), from: time.Now(),
		encoder: stream.NewEncoder(cfg.Namespace, cfg.Instance, stream.Topics{}),
	}
	r.counter = newCounter(r.names)
	var err error
	if r.events, err = redisstream.New(redisstream.Config{Client: cfg.Client, Namespace: cfg.Namespace}); err != nil {
		return nil, err
	}
	if r.metrics, err = newInstruments(cfg.MeterProvider); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.ended.Go(func() { r.loop(ctx) })
	return r, nil
}

// loop writes once a second until its context ends, and then once more.
func (r *Reporter) loop(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			r.tick(context.WithoutCancel(ctx), true)
			return
		case <-ticker.C:
			r.tick(context.WithoutCancel(ctx), false)
		}
	}
}

// Close writes once more, and stops. It waits for that, some seconds at most. It always returns nil.
func (r *Reporter) Close() error {
	r.stop()
	r.ended.Wait()
	return nil
}

// Count implements [event.Counter].
func (r *Reporter) Count(v event.Verdict) {
	r.counter.count(&v)
	r.refusals.Count(v)
}

// Observe implements [event.Observer].
func (r *Reporter) Observe(ctx context.Context, e event.Event) { r.Keep(ctx, e) }

// Keep implements [event.Keeper]. It takes an event that goes to a stream, unless there is no room or its tenant has written too many.
func (r *Reporter) Keep(_ context.Context, e event.Event) bool {
	r.told.hear(e)
	return r.pending.push(e, time.Now())
}

// Dropped is how many events were not written for lack of room.
func (r *Reporter) Dropped() uint64 { return r.pending.count() }

// tick writes what there is, unless the Redis is left alone. A mistake in here does not end the process.
func (r *Reporter) tick(ctx context.Context, last bool) {
	now := time.Now()
	if !last && now.Before(r.wait) {
		return
	}
	var err error
	if !guard.Run(ctx, r.cfg.Logger, "the reporter", func() { err = r.write(ctx, now, last) }) {
		return
	}
	r.metrics.wrote(ctx, time.Since(now), err)
	switch {
	case err == nil && r.pause > 0:
		r.cfg.Logger.InfoContext(ctx, "ratelimit: the Redis takes what this instance reports again")
		r.pause, r.wait = 0, time.Time{}
	case err != nil:
		if r.pause == 0 {
			r.cfg.Logger.WarnContext(ctx, "ratelimit: the Redis does not take what this instance reports: refusals are not found by their ids meanwhile",
				slog.Any("error", err))
		}
		r.pause = min(max(2*r.pause, time.Second), longestPause)
		r.wait = now.Add(r.pause)
	}
}

// write sends everything in one pipeline. last says that the instance ends.
func (r *Reporter) write(ctx context.Context, now time.Time, last bool) error {
	ctx, cancel := redisplace.Bounded(ctx)
	defer cancel()
	pipe := r.cfg.Client.Pipeline()
	r.encode()
	sent := r.events.Append(ctx, pipe, r.unsent)
	activity := r.activity(now, last)
	if activity != nil {
		r.append(ctx, pipe, activity, now)
	}
	redisusage.AppendRefusals(ctx, pipe, r.cfg.Namespace, r.run, r.refusals.Snapshot())
	if pipe.Len() == 0 {
		return nil
	}
	_, err := pipe.Exec(ctx)
	r.retain(sent())
	if err != nil {
		// Nobody knows what this instance serves: the next write says it.
		r.written = time.Time{}
		return fmt.Errorf("report: %w", err)
	}
	r.refusals.Stored()
	return nil
}

// encode moves the events that wait to those that are to be sent.
func (r *Reporter) encode() {
	for _, e := range r.pending.take() {
		envelope, ok := r.envelope(e)
		if !ok || len(r.unsent) >= maxPending {
			r.pending.drop(1)
			continue
		}
		r.unsent = append(r.unsent, envelope)
	}
}

// envelope returns an event as it is sent.
func (r *Reporter) envelope(e event.Event) (stream.Envelope, bool) {
	decided, ok := e.(event.Decided)
	if !ok {
		return r.encoder.Encode(r.names.event(e))
	}
	refusal := r.names.refusal(decided, r.told.policy(decided.Revision))
	envelope, ok := r.encoder.Encode(refusal.Decided)
	if ok {
		envelope.Data, ok = refusal.encode()
	}
	return envelope, ok
}

// retain keeps the events that may be sent again.
func (r *Reporter) retain(errs []error) {
	if errs == nil {
		r.unsent = nil
		return
	}
	left := r.unsent[:0]
	for i := range r.unsent {
		switch {
		case errs[i] == nil:
		case errors.Is(errs[i], stream.ErrTooLarge), errors.Is(errs[i], stream.ErrRefused):
			r.pending.drop(1)
		default:
			left = append(left, r.unsent[i])
		}
	}
	clear(r.unsent[len(left):])
	r.unsent = left
}

// activity returns what was counted since the last one, nil if there is nothing to say yet.
func (r *Reporter) activity(now time.Time, last bool) *Activity {
	a := &Activity{Version: Version, Instance: r.cfg.Instance, Run: r.run, Ended: last, From: r.from, To: now, Dropped: r.Dropped()}
	r.counter.collect(a)
	if !last && a.Total.Decisions == 0 && !r.told.news() && now.Sub(r.written) < idle && !now.Before(r.written) {
		return nil
	}
	r.from, r.written = now, now
	r.told.add(a)
	return a
}

// append adds the commands that write an activity. The clock of the Redis says how old an entry is.
func (r *Reporter) append(ctx context.Context, pipe redis.Pipeliner, a *Activity, now time.Time) {
	key := r.cfg.activityKey()
	pipe.XAdd(ctx, &redis.XAddArgs{Stream: key, MaxLen: maxEntries, Approx: true, Values: []any{activityField, a.encode()}})
	pipe.XTrimMinIDApprox(ctx, key, fmt.Sprint(now.Add(-keep).UnixMilli()), 0)
	pipe.PExpire(ctx, key, keep)
}

// activityField is the field of an entry.
const activityField = "activity"
