package policy

import (
	"context"
	"log/slog"

	"github.com/gqlgen-ratelimit/ratelimit/internal/follow"
	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
)

// follows says how the feed is followed.
func (f *Follower) follows() follow.Config[*Revision] {
	return follow.Config[*Revision]{
		Source: "Feed", Read: f.read, Judge: f.judge, Asked: f.tellState, Subscribe: f.feed.Hints,
		Interval: max(f.cfg.Interval, 0), Patience: askTimeout,
	}
}

// restore gives the feed back what it has lost.
func (f *Follower) restore(ctx context.Context, lost *Revision) {
	feed, ok := f.feed.(Restorer)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
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
