package placement

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/follow"
)

// Source gives the map on which instances agree. [Record] is one. Its method ends when its context does, and what it returns is the caller's own.
type Source interface {
	// Newest returns the map that holds. The error is [ErrEmpty] if there is none.
	Newest(ctx context.Context) (*Map, error)
}

// DefaultInterval is how often [Store.Follow] asks where nothing else is said.
const DefaultInterval = time.Second

// patience is how long one question may take.
const patience = 2 * time.Second

// Follow asks the source for a newer map each interval, up to a fifth sooner or later, zero for [DefaultInterval], applies what it gives, and returns when ctx ends. While the source does not
// answer, and where a map is refused, the one that holds goes on; the log says so, once for each reason. A source that has not answered is asked again soon. A refused map is tried again at
// the next interval: its store may be well by then. It is to be run once.
func (s *Store) Follow(ctx context.Context, source Source, interval time.Duration) {
	if interval <= 0 {
		interval = DefaultInterval
	}
	said := ""
	follow.New(follow.Config[*Map]{
		Source: "Source", Read: source.Newest, Interval: interval, AtOnce: true, Patience: patience,
		Judge: func(ctx context.Context, answer follow.Answer[*Map]) error {
			err := s.judge(ctx, answer)
			said = s.say(ctx, err, said)
			return err
		},
	}).Run(ctx)
}

// judge applies a map that is another one than the one that holds.
func (s *Store) judge(ctx context.Context, answer follow.Answer[*Map]) error {
	m := answer.Value
	if answer.Err != nil {
		return answer.Err
	}
	if now := s.Map(); now != nil && m.Generation == now.Generation && m.same(now) {
		return nil
	}
	if err := s.Apply(ctx, m); err != nil {
		return follow.Refused(err)
	}
	s.watch.logger.InfoContext(ctx, "placement: a map holds", slog.Uint64("generation", m.Generation), slog.Int("stores", len(m.Stores)))
	return nil
}

// say logs why the newest map does not hold, and returns what was said last, which is not said again.
func (s *Store) say(ctx context.Context, err error, said string) string {
	switch {
	case err == nil:
		return ""
	case ctx.Err() != nil, errors.Is(err, ErrClosed), err.Error() == said:
		return said
	}
	s.watch.logger.WarnContext(ctx, "placement: the map that holds goes on", slog.String("error", err.Error()))
	return err.Error()
}
