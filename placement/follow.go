package placement

import (
	"context"
	"errors"
	"log/slog"
	"time"
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

// Follow asks the source for a newer map each interval, zero for [DefaultInterval], applies what it gives, and returns when ctx ends. While the source does not
// answer, and where a map is refused, the one that holds goes on; the log says so, once for each reason. A refused map is tried again: its store may be well by
// then. It is to be run once.
func (s *Store) Follow(ctx context.Context, source Source, interval time.Duration) {
	if interval <= 0 {
		interval = DefaultInterval
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	said := ""
	for {
		said = s.follow(ctx, source, said)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// follow asks once. It returns what it has said is wrong, which it does not say again.
func (s *Store) follow(ctx context.Context, source Source, said string) string {
	asked, cancel := context.WithTimeout(ctx, patience)
	m, err := source.Newest(asked)
	cancel()
	if err == nil {
		if now := s.Map(); now != nil && m.Generation == now.Generation && m.same(now) {
			return ""
		}
		if err = s.Apply(ctx, m); err == nil {
			s.watch.logger.InfoContext(ctx, "placement: a map holds", slog.Uint64("generation", m.Generation), slog.Int("stores", len(m.Stores)))
			return ""
		}
	}
	if ctx.Err() != nil || errors.Is(err, ErrClosed) || err.Error() == said {
		return said
	}
	s.watch.logger.WarnContext(ctx, "placement: the map that holds goes on", slog.String("error", err.Error()))
	return err.Error()
}
