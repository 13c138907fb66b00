package ratelimit

import (
	"context"
	"math"
	"net/http"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
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

// tooLarge puts an error in the place of an answer that may not leave.
func (e *Extension) tooLarge(ctx context.Context, op *operation, response *graphql.Response) {
	after := op.snapshot()
	after.Limits, after.Outcome = nil, decision.QueryLimited
	after.Refuse(refusedQuery(&cost.ShapeError{
		Rule: RuleResponseBytes, Reason: "the answer has too many bytes, ask for fewer list items or fields",
		Given: saturated(max(op.size.most+1, op.size.least.Load())), Allowed: saturated(op.size.most),
	}))
	e.tell(ctx, &after, bucket.ResponseBytes)
	response.Data, response.Errors = []byte("null"), e.presented(ctx, &after)
}

// tell tells operators what the charge of a unit came to in the middle of an operation.
func (e *Extension) tell(ctx context.Context, after *decision.Decision, unit bucket.Unit) {
	e.reporter.Counted(ctx, after, unit)
	e.reporter.Charged(ctx, after)
}

// presented returns the error of a refused decision as the server presents it, beside no others.
func (e *Extension) presented(ctx context.Context, d *decision.Decision) gqlerror.List {
	ctx = graphql.WithFreshResponseContext(ctx)
	graphql.AddError(ctx, e.graphQLError(d))
	return graphql.GetErrors(ctx)
}

func saturated(n int64) int { return int(min(n, math.MaxInt)) }
