package ratelimit

import (
	"net/http"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/internal/show"
	"github.com/gqlgen-ratelimit/ratelimit/internal/sink"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// signal puts status and headers of the decision where the Handler finds them.
func (e *Extension) signal(x *sink.Exchange, d *decision.Decision) {
	if x == nil {
		return
	}
	cfg, status := &e.cfg.Response, 0
	if d.Refusal != nil {
		status = cfg.statusOf(d.Refusal.Outcome.Code())
	}
	snapshot := e.cfg.Policy.Snapshot()
	var expose []string
	if cfg.ExposeHeaders {
		expose = show.HeaderNames
	}
	x.Decide(status, expose, func(header http.Header) {
		show.Headers(header, d, show.Form(cfg.Headers), &e.policies, snapshot)
	})
}

// withExtension adds extensions.rateLimit to a response, if there is anything to tell.
func withExtension(response *graphql.Response, d *decision.Decision) *graphql.Response {
	told := show.Extension(d)
	if told == nil {
		return response
	}
	if response.Extensions == nil {
		response.Extensions = make(map[string]any, 1)
	}
	response.Extensions[show.ExtensionKey] = told
	return response
}

// tellRefused adds the same to a later answer in which a charge was refused, which has every limit then.
func (op *operation) tellRefused(response *graphql.Response) *graphql.Response {
	if d := op.refusal(); d != nil {
		return withExtension(response, d)
	}
	return response
}

// statusOf returns the HTTP status of a refusal, 0 for the one that gqlgen chose.
func (c *ResponseConfig) statusOf(code string) int {
	if c.StatusOK {
		return 0
	}
	status := ratelimitclient.Status(code)
	if chosen, found := c.Status[code]; found {
		status = chosen
	}
	if status == http.StatusOK {
		return 0
	}
	return status
}
