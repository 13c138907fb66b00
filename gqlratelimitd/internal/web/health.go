package web

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
)

//go:embed openapi.yaml
var openAPI []byte

// description serves the OpenAPI document.
func (s *Server) description(c *call) error {
	if err := c.known(); err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "application/yaml")
	c.send(http.StatusOK, openAPI)
	return nil
}

// metrics serves the metrics of the daemon.
func (s *Server) metrics(c *call) error {
	if err := access.Authorize(c.actor, access.ReadMetrics, ""); err != nil {
		return err
	}
	c.status = http.StatusOK
	s.cfg.Metrics.ServeHTTP(c.w, c.Request)
	return nil
}

// health says that the process serves.
func (s *Server) health(c *call) error {
	return c.write(http.StatusOK, map[string]string{"status": "up"})
}

// readiness says whether the daemon can do its work, for which it needs the database. What else fails is told, and no reason to ask another
// daemon: that one has the same log and the same Redis.
func (s *Server) readiness(c *call) error {
	failed := s.ready.ask()
	status, body := http.StatusOK, map[string]string{"status": "ready"}
	for name := range failed {
		// Who asks may be a stranger: the log has more.
		body[name] = "failing"
	}
	if failed[partDatabase] != nil {
		status, body["status"] = http.StatusServiceUnavailable, "not ready"
	}
	return c.write(status, body)
}

// partDatabase is the part without which nothing can be done.
const partDatabase = "database"

// readyFor is for how long an answer about readiness holds, so that nobody makes work by asking.
const readyFor = time.Second

// readiness asks for the health of the parts at most once in a while.
type readiness struct {
	check  func(context.Context) map[string]error
	now    func() time.Time
	log    *slog.Logger
	mu     sync.Mutex
	asked  time.Time
	failed map[string]error
}

func (r *readiness) ask() map[string]error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.asked.IsZero() && r.now().Sub(r.asked) < readyFor {
		return r.failed
	}
	// The answer is for others too, so that it does not end with one request.
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	failed := r.check(ctx)
	// Strangers ask as often as they like: what changes is logged.
	for name, err := range failed {
		if r.failed[name] == nil {
			r.log.WarnContext(ctx, "a part of the daemon fails", "part", name, "error", err)
		}
	}
	for name := range r.failed {
		if failed[name] == nil {
			r.log.InfoContext(ctx, "a part of the daemon works again", "part", name)
		}
	}
	// It may have taken long, for which others have waited: they have this answer.
	r.failed, r.asked = failed, r.now()
	return failed
}

// check returns which parts fail, by name.
func (s *Server) check(ctx context.Context) map[string]error {
	failed := map[string]error{}
	if _, err := s.newest(ctx); err != nil {
		failed[partDatabase] = err
	}
	// A relay without its database says nothing about Redis.
	if s.cfg.Relay != nil && failed[partDatabase] == nil {
		if err := s.cfg.Relay(); err != nil {
			failed["redis"] = err
		}
	}
	return failed
}

// newest returns the number of the newest revision, 0 before the first.
func (s *Server) newest(ctx context.Context) (uint64, error) {
	found, err := s.cfg.Control.Policies(ctx, access.System("web"), 0, 1)
	if err != nil {
		return 0, fmt.Errorf("web: %w", err)
	}
	if len(found) == 0 {
		return 0, nil
	}
	return found[0].Number, nil
}
