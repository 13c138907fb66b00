package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Bounds of what strangers can make a server say.
const (
	sparingLines = 10
	sparingTime  = 10 * time.Second
)

// sparing passes lines of a server on to a log, at most [sparingLines] in [sparingTime], and says how many it has left out: whoever
// connects and says something wrong makes one.
type sparing struct {
	log *slog.Logger

	mu sync.Mutex
	// until is when the time ends in which lines were passed on, and left how many were not since.
	until        time.Time
	passed, left int
}

// Write implements io.Writer.
func (s *sparing) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.After(s.until) {
		if s.left > 0 {
			s.log.Warn("more was said by the server, and left out", "lines", s.left)
		}
		s.until, s.passed, s.left = now.Add(sparingTime), 0, 0
	}
	if s.passed >= sparingLines {
		s.left++
		return len(line), nil
	}
	s.passed++
	s.log.Warn(strings.TrimSpace(string(line)))
	return len(line), nil
}

// redisLog is the log of the client of Redis.
type redisLog struct{ *sparing }

// Printf implements the logger of go-redis.
func (l redisLog) Printf(_ context.Context, format string, args ...any) {
	_, _ = fmt.Fprintf(l.sparing, format, args...)
}
