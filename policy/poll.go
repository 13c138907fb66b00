package policy

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
)

// hintGap is the shortest time between two questions because of hints: whoever can send hints cannot make an instance
// ask without end.
const hintGap = 20 * time.Millisecond

// Bounds of the time between two subscriptions.
const (
	minSubscribe = 50 * time.Millisecond
	maxSubscribe = 5 * time.Second
)

// poll asks the feed at each interval, and when it is woken.
func (f *Follower) poll(ctx context.Context) {
	var due <-chan time.Time
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	if interval := f.cfg.Interval; interval != None {
		// The first question comes anywhere in the interval: instances that start together do not ask together.
		timer.Reset(spread(0, interval))
		due = timer.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.woken:
			_ = f.ask(ctx, false) // Told by status, metrics and events.
			f.tellState(ctx)
			if !sleep(ctx, hintGap) {
				return
			}
		case <-due:
			_ = f.ask(ctx, true) // Told by status, metrics and events.
			f.tellState(ctx)
			timer.Reset(spread(f.cfg.Interval*4/5, f.cfg.Interval*6/5))
		}
	}
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
	pause := minSubscribe
	for {
		stood := false
		err := guard.Call("Feed.Hints", func() error {
			return f.feed.Hints(ctx, func() {
				stood = true
				sign(f.woken)
			})
		})
		if errors.Is(err, ErrNoHints) {
			return
		}
		if stood {
			pause = minSubscribe
		}
		if !sleep(ctx, spread(pause/2, pause)) {
			return
		}
		pause = min(2*pause, maxSubscribe)
	}
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

// sleep returns true after the time, and false if the context has ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// spread returns a time from least to most.
func spread(least, most time.Duration) time.Duration {
	return least + rand.N(most-least+1) //nolint:gosec // jitter need not be secret
}
