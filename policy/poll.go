package policy

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pace"
)

// hintGap is the shortest time between two questions because of hints: whoever can send hints cannot make an instance
// ask without end.
const hintGap = 20 * time.Millisecond

// minRetry is within which time a question is asked again that the feed has not answered; the next one comes within twice as long,
// and so on, until that is the interval: five or six questions in the first second without an answer, and then no more than ever.
const minRetry = 50 * time.Millisecond

// poll asks the feed at each interval, when it is woken, and soon again when it has not answered.
func (f *Follower) poll(ctx context.Context) {
	// The first question comes anywhere in the interval: instances that start together do not ask together.
	timer := time.NewTimer(f.fifths(0, 5))
	defer timer.Stop()
	retry, longest := minRetry, f.cfg.Interval
	if longest == None {
		longest = defaultInterval
	}
	for {
		hinted := false
		select {
		case <-ctx.Done():
			return
		case <-f.woken:
			hinted = true
		case <-timer.C:
		}
		err := f.ask(ctx, !hinted) // Told by status, metrics and events.
		f.tellState(ctx)
		silent := unanswered(err)
		switch {
		case silent && retry < longest:
			timer.Reset(pace.Between(retry/2, retry))
			retry *= 2
		case !hinted:
			timer.Reset(f.fifths(4, 6))
		}
		if !silent {
			retry = minRetry
		}
		if hinted && !pace.Sleep(ctx, hintGap) {
			return
		}
	}
}

// fifths returns a time from so many to so many fifths of the interval, and one that does not come where there is none.
func (f *Follower) fifths(least, most int64) time.Duration {
	if f.cfg.Interval == None {
		return math.MaxInt64
	}
	fifth := int64(f.cfg.Interval) / 5
	return pace.Between(time.Duration(least*fifth), time.Duration(most*fifth))
}

// unanswered says that the feed could not be read.
func unanswered(err error) bool {
	refused := (*RefusedError)(nil)
	return err != nil && !errors.Is(err, ErrNotYet) && !errors.Is(err, ErrEmpty) && !errors.As(err, &refused)
}

// restore gives the feed back what it has lost.
func (f *Follower) restore(ctx context.Context, lost *Revision) {
	feed, ok := f.feed.(Restorer)
	if !ok {
		return
	}
	err := guard.Call("Feed.Restore", func() error { return feed.Restore(ctx, lost) })
	log := f.cfg.Observe.Logger.With(slog.Uint64("revision", lost.Number))
	switch {
	case err == nil:
		log.InfoContext(ctx, "policy: the feed had lost its newest revision, which was given back")
	case !f.unrestored:
		log.WarnContext(ctx, "policy: the feed has lost its newest revision, which could not be given back",
			slog.String("error", errorText(err, maxToldText)))
	}
	f.unrestored = err != nil
}

// listen subscribes to hints again and again.
func (f *Follower) listen(ctx context.Context) {
	pace.Subscribe(ctx, func(stands func()) bool {
		err := guard.Call("Feed.Hints", func() error {
			return f.feed.Hints(ctx, func() {
				stands()
				pace.Sign(f.woken)
			})
		})
		return !errors.Is(err, ErrNoHints)
	})
}

// report tells the reporter after each change, and at intervals.
func (f *Follower) report(ctx context.Context) {
	ticker := time.NewTicker(ReportEvery)
	defer ticker.Stop()
	failed := false
	for {
		call, cancel := context.WithTimeout(ctx, askTimeout)
		status := f.Status()
		err := guard.Call("Config.Reporter", func() error { return f.cfg.Reporter.Report(call, status) })
		cancel()
		if err != nil && !failed && ctx.Err() == nil {
			f.cfg.Observe.Logger.WarnContext(ctx, "policy: what this instance serves could not be reported",
				slog.String("error", errorText(err, maxToldText)))
		}
		failed = err != nil
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-f.reportDue:
		}
	}
}
