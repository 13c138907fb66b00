package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
)

// reason is why an event was dropped.
type reason uint8

const (
	// full: there was no room for it.
	full reason = iota
	// tooLarge: it is too large for the broker.
	tooLarge
	// refused: the broker, or JSON, does not take it, or Config.Edit panicked.
	refused
	// expired: it was not acknowledged within Config.MaxAge.
	expired
	// whileClosed: it came after Close, or Close had no time for it.
	whileClosed
	reasons
	// kept is no reason.
	kept = reasons
)

// String returns the reason as metrics have it.
func (r reason) String() string {
	return [...]string{"full", "too_large", "refused", "expired", "closed", "kept"}[r]
}

// Waits between batches that were not acknowledged, between half of it and all of it: the first, and the longest.
const (
	firstWait   = 100 * time.Millisecond
	longestWait = 10 * time.Second
)

// delivery is what the goroutine of a queue knows.
type delivery struct {
	*Queue
	// batch are the envelopes that are sent next, the oldest first, and behind what they were before.
	batch  []Envelope
	behind []waiting
	popped []waiting
	wait   time.Duration
	failed bool
	// hurried says that Close has been noticed, which waits for nothing once.
	hurried bool
}

// run sends until the queue is closed and empty, or abandoned.
func (q *Queue) run() {
	defer close(q.ended)
	defer q.stop()
	d := &delivery{Queue: q}
	for q.abandoned.Err() == nil {
		d.fill()
		if len(d.batch) == 0 {
			if d.idle() {
				return
			}
			continue
		}
		if !d.send() {
			d.pause()
		}
	}
	d.dropRest()
}

// idle waits until something comes. It is true if nothing comes any more.
func (d *delivery) idle() bool {
	d.oldest.Store(0)
	select {
	case <-d.wake:
		return false
	case <-d.closing:
		// Whoever was about to push when the queue was closed has pushed by now.
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.length == 0
	case <-d.abandoned.Done():
		return false
	}
}

// fill adds what waits to what is to be sent again.
func (d *delivery) fill() {
	clear(d.popped[:cap(d.popped)])
	d.popped = d.pop(d.popped[:0], d.cfg.BatchEvents-len(d.batch))
	for i := range d.popped {
		w := &d.popped[i]
		e, ok := d.edited(w)
		if !ok {
			continue
		}
		d.batch = append(d.batch, e)
		w.event = nil
		d.behind = append(d.behind, *w)
	}
	if len(d.behind) > 0 {
		d.oldest.Store(d.behind[0].came.UnixNano())
	}
}

// edited returns an event as it leaves. One that stays, or cannot leave, is gone.
func (d *delivery) edited(w *waiting) (Envelope, bool) {
	k, _ := kindOf(w.event)
	e := w.event
	if d.cfg.Edit != nil {
		if !guard.Run(d.abandoned, d.cfg.Logger, "stream.Config.Edit", func() { e = d.cfg.Edit(w.event) }) {
			d.drop(w, refused)
			return Envelope{}, false
		}
		if e == nil {
			d.release(w)
			return Envelope{}, false
		}
		edited, ok := kindOf(e)
		if !ok || edited.topic != k.topic {
			d.drop(w, refused)
			return Envelope{}, false
		}
		k = edited
	}
	envelope, err := d.encoder.envelope(w.sequence, e, &k)
	if err != nil {
		d.drop(w, refused)
		return Envelope{}, false
	}
	return envelope, true
}

// drop counts an event as dropped.
func (d *delivery) drop(w *waiting, r reason) {
	d.dropped[r].Add(1)
	d.release(w)
}

// send sends the batch, keeps what is to be sent again, and returns true if that is nothing.
func (d *delivery) send() bool {
	ctx, cancel := context.WithTimeout(d.abandoned, d.cfg.Timeout)
	defer cancel()
	began := time.Now()
	var errs []error
	if err := guard.Call("the sink of a stream", func() error { errs = d.cfg.Sink.Send(ctx, d.batch); return nil }); err != nil {
		errs = Failed(len(d.batch), err)
	}
	if errs != nil && len(errs) != len(d.batch) {
		errs = Failed(len(d.batch), fmt.Errorf("stream: a sink has said something of %d envelopes of %d", len(errs), len(d.batch)))
	}
	acknowledged, failure := d.sort(errs)
	d.told.batch(d.abandoned, time.Since(began), failure)
	d.say(acknowledged, failure)
	if acknowledged > 0 {
		d.wait = 0
	}
	return failure == nil
}

// sort keeps of the batch what is to be sent again, and returns how many were acknowledged, and an error of what was not.
func (d *delivery) sort(errs []error) (acknowledged int, failure error) {
	now := time.Now()
	left := 0
	for i := range d.batch {
		w := &d.behind[i]
		var err error
		if errs != nil {
			err = errs[i]
		}
		switch {
		case err == nil:
			k := d.topicNamed(d.batch[i].Topic)
			d.sent[k].Add(1)
			d.release(w)
			acknowledged++
		case errors.Is(err, ErrTooLarge):
			d.drop(w, tooLarge)
		case errors.Is(err, ErrRefused):
			d.drop(w, refused)
		case now.Sub(w.came) >= d.cfg.MaxAge:
			d.drop(w, expired)
			failure = err
		default:
			d.batch[left], d.behind[left] = d.batch[i], *w
			left++
			failure = err
		}
	}
	clear(d.batch[left:])
	clear(d.behind[left:])
	d.batch, d.behind = d.batch[:left], d.behind[:left]
	return acknowledged, failure
}

// topicNamed returns the first topic of this name.
func (q *Queue) topicNamed(name string) topic {
	for t := range q.encoder.topics {
		if q.encoder.topics[t] == name {
			return topic(t)
		}
	}
	return denials
}

// say tells the log that the broker takes nothing, and that it does again.
func (d *delivery) say(acknowledged int, failure error) {
	switch {
	case failure != nil && acknowledged == 0 && !d.failed:
		d.failed = true
		d.cfg.Logger.WarnContext(d.abandoned, "ratelimit: the broker of events takes none: they wait, and are dropped and counted where there is no more room",
			slog.Any("error", failure))
	case acknowledged > 0 && d.failed:
		d.failed = false
		d.cfg.Logger.InfoContext(d.abandoned, "ratelimit: the broker of events takes them again", slog.Uint64("dropped", d.Dropped()))
	default:
	}
}

// pause waits before the next batch, longer each time that nothing was acknowledged. Close ends it once.
func (d *delivery) pause() {
	d.wait = min(max(2*d.wait, firstWait), longestWait)
	//nolint:gosec // Jitter need not be secret.
	timer := time.NewTimer(d.wait/2 + rand.N(d.wait/2))
	defer timer.Stop()
	closing := d.closing
	if d.hurried {
		closing = nil
	}
	select {
	case <-timer.C:
	case <-d.abandoned.Done():
	case <-closing:
		d.hurried, d.wait = true, 0
	}
}

// dropRest drops what nobody sends any more. Nothing comes after it: only Close abandons.
func (d *delivery) dropRest() {
	for i := range d.behind {
		d.drop(&d.behind[i], whileClosed)
	}
	rest := d.pop(nil, d.cfg.MaxEvents)
	for i := range rest {
		d.drop(&rest[i], whileClosed)
	}
	d.oldest.Store(0)
}

// lag is how old the oldest event is that was not sent.
func (q *Queue) lag() time.Duration {
	oldest := q.oldest.Load()
	if oldest == 0 {
		return 0
	}
	return max(0, time.Since(time.Unix(0, oldest)))
}
