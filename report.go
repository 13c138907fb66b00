package ratelimit

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/internal/observe"
	"github.com/gqlgen-ratelimit/ratelimit/internal/show"
	"github.com/gqlgen-ratelimit/ratelimit/internal/sink"
)

// Operators are told by the reporter, of what stores do by this watcher too; clients by the headers and the extension.

// storeWatch tells operators what happens to stores.
type storeWatch struct {
	*observe.Reporter

	log *slog.Logger
}

var _ backend.Watcher = storeWatch{}

// Settled implements backend.Watcher.
func (w storeWatch) Settled(ctx context.Context, s *backend.Settlement, settled *bucket.Settled, result backend.Result, calls int) {
	w.Reporter.Settled(ctx, &observe.Settlement{
		Tier: s.Tier, Reason: s.Reason, Result: string(result), Limits: settled.Limits, Began: s.Began, Calls: calls,
	})
	if result == backend.SettlementFailed {
		w.log.ErrorContext(ctx, "ratelimit: a charge could not be settled: the estimate stays charged",
			slog.String("reason", s.Reason))
	}
}

// signal puts status and headers of the decision where the Handler finds them.
func (e *Extension) signal(x *sink.Exchange, d *decision.Decision) {
	if x == nil {
		return
	}
	cfg, status := &e.cfg.Response, 0
	if d.Refusal != nil {
		status = cfg.statusOf(d.Refusal.Code)
	}
	var expose []string
	if cfg.ExposeHeaders {
		expose = show.HeaderNames
	}
	x.Decide(status, expose, func(header http.Header) { show.Headers(header, d, show.Form(cfg.Headers)) })
}

// answered adds extensions.rateLimit to a response.
func answered(response *graphql.Response, d *decision.Decision) *graphql.Response {
	if d.Outcome == decision.Exempt && d.Breakdown == nil {
		return response
	}
	if response.Extensions == nil {
		response.Extensions = make(map[string]any, 1)
	}
	response.Extensions[show.ExtensionKey] = show.Extension(d)
	return response
}
