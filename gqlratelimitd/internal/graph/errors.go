package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Codes of errors, in extensions.code.
const (
	// CodeConflict: another revision is there, and nothing was changed. extensions.currentRevision is its number, by who has made
	// it, and at when; both are missing where there is none. All three are missing where the policy was replaced again and again while something
	// was checked against it: send that again.
	CodeConflict = "CONFLICT"
	// CodeForbidden: the actor may not. extensions.action is what, roles those that would do, and confined whether one of them is the
	// actor's, for other tenants.
	CodeForbidden = "FORBIDDEN"
	// CodeInvalid: what was asked for cannot be done. extensions.field is what is wrong, and mistakes are those of a document.
	CodeInvalid = "INVALID"
	// CodeSecondPerson: somebody else has to approve it first. extensions.proposals are the ids of proposals of exactly this change.
	CodeSecondPerson = "SECOND_PERSON"
	// CodeNotApproved: the approval does not hold: of one's own proposal, of other bytes, or of what holds no longer.
	CodeNotApproved = "NOT_APPROVED"
	// CodeNotFound: there is no such thing.
	CodeNotFound = "NOT_FOUND"
	// CodeKeyReused: the idempotency key was used for another request.
	CodeKeyReused = "IDEMPOTENCY_KEY_REUSED"
	// CodeUncertain: the connection to the database was lost while the change was committed. Ask what holds before you repeat it, or
	// repeat it under an idempotency key.
	CodeUncertain = "OUTCOME_UNKNOWN"
	// CodeUnauthenticated: it is not known who asks.
	CodeUnauthenticated = "UNAUTHENTICATED"
	// CodeUnavailable: who asks cannot be found out at the moment, or what is asked for is in a Redis that does not answer.
	CodeUnavailable = "UNAVAILABLE"
	// CodeBusy: another preview is under way.
	CodeBusy = "BUSY"
	// CodeInternal: something failed that is not the client's to mend. extensions.request is the id of its line in the log.
	CodeInternal = "INTERNAL"
)

// maxMistakes is how many mistakes of a document are told.
const maxMistakes = 100

// coded returns an error with a code, in plain words.
func coded(code, message string) *gqlerror.Error {
	return &gqlerror.Error{Message: control.Plain(message), Extensions: map[string]any{"code": code}}
}

// internal is the error of what failed here.
func internal(ctx context.Context) *gqlerror.Error {
	e := coded(CodeInternal, "the request failed; its id leads to the line of the log")
	e.Extensions["request"] = idOf(ctx)
	return e
}

// present gives what is wrong with a request a code where nobody has: a number or time that is none.
func present(ctx context.Context, err error) *gqlerror.Error {
	presented := graphql.DefaultErrorPresenter(ctx, err)
	if presented.Extensions["code"] == nil {
		if presented.Extensions == nil {
			presented.Extensions = map[string]any{}
		}
		presented.Extensions["code"] = CodeInvalid
	}
	return presented
}

// recovered returns the error of a panic, which is logged. It is none where a document has a number that no 64 bits hold: gqlgen
// panics with what strconv says of it before any resolver runs.
func recovered(ctx context.Context, logger *slog.Logger, panicked any) error {
	if err, ok := panicked.(error); ok {
		var number *strconv.NumError
		if errors.As(err, &number) {
			e := coded(CodeInvalid, "the document has a number that is out of range")
			e.Path = graphql.GetPath(ctx)
			return e
		}
	}
	logger.ErrorContext(ctx, "graph: a request panicked", "request", idOf(ctx), "panic", fmt.Sprint(panicked), "stack", string(debug.Stack()))
	return internal(ctx)
}

// told returns the error of a resolver as it is told. What nobody expected is logged, and told to nobody.
func told(ctx context.Context, logger *slog.Logger, err error) error {
	var e *gqlerror.Error
	if errors.As(err, &e) && e.Extensions["code"] != nil {
		return err
	}
	var (
		conflict *control.ConflictError
		denied   *access.DeniedError
		invalid  *control.InvalidError
		unknown  *access.UnauthenticatedError
		second   *control.SecondPersonError
		approval *access.ApprovalError
	)
	switch {
	case errors.As(err, &conflict):
		e = conflictOf(conflict)
	case errors.Is(err, control.ErrPolicyChanged):
		e = coded(CodeConflict, "nothing was changed: other policies were published while it was checked against the newest one: send it again")
	case errors.As(err, &denied):
		e = coded(CodeForbidden, denied.Error())
		e.Extensions["action"], e.Extensions["confined"] = string(denied.Action), denied.Confined
		e.Extensions["roles"] = rolesOf(denied.Roles)
	case errors.As(err, &invalid):
		e = invalidOf(invalid)
	case errors.As(err, &second):
		e = coded(CodeSecondPerson, second.Error())
		e.Extensions["proposals"] = some(second.Proposals)
	case errors.As(err, &approval):
		e = coded(CodeNotApproved, approval.Error())
	case errors.As(err, &unknown):
		e = coded(CodeUnauthenticated, unknown.Error())
	case errors.Is(err, control.ErrAway):
		e = coded(CodeUnavailable, control.ErrAway.Error())
	case errors.Is(err, control.ErrNotFound):
		e = coded(CodeNotFound, "there is no such thing")
	case errors.Is(err, control.ErrTooManyProposals):
		e = coded(CodeInvalid, "too many proposals wait: approve or withdraw some first")
		e.Extensions["field"] = "document"
	case errors.Is(err, control.ErrKeyReused):
		e = coded(CodeKeyReused, "the idempotency key was used for another request")
	case errors.Is(err, control.ErrBusy):
		e = coded(CodeBusy, "another preview is under way: ask again when it is done")
	case errors.Is(err, control.ErrPreview):
		logger.WarnContext(ctx, "graph: there was no preview", "request", idOf(ctx), "error", err)
		e = coded(CodeUnavailable, "what instances have recorded could not be read, or not be judged in time")
	case errors.Is(err, control.ErrUncertain):
		e = coded(CodeUncertain, "nobody knows whether the change was made: ask what holds")
	case errors.Is(err, control.ErrNoWebhooks):
		e = coded(CodeUnavailable, "the daemon knows no Redis, where events are: start it with -redis")
	case errors.Is(err, control.ErrNoBudgets):
		e = coded(CodeUnavailable, "the daemon knows no Redis, where budgets are: start it with -redis")
	default:
		if ctx.Err() == nil {
			logger.ErrorContext(ctx, "graph: a request failed", "request", idOf(ctx), "error", err)
		}
		e = internal(ctx)
	}
	e.Path = graphql.GetPath(ctx)
	return e
}

func conflictOf(c *control.ConflictError) *gqlerror.Error {
	e := coded(CodeConflict, "nothing was changed: another revision is there than the one that was expected")
	e.Extensions["currentRevision"] = c.Current
	if c.Current != 0 {
		e.Extensions["by"], e.Extensions["at"] = c.By, c.At.UTC().Format(time.RFC3339Nano)
	}
	return e
}

func invalidOf(invalid *control.InvalidError) *gqlerror.Error {
	e := coded(CodeInvalid, invalid.Error())
	e.Extensions["field"] = invalid.Field
	var policy *tiers.PolicyError
	if errors.As(invalid.Err, &policy) {
		mistakes := []map[string]any{}
		for _, m := range policy.Mistakes[:min(len(policy.Mistakes), maxMistakes)] {
			mistakes = append(mistakes, map[string]any{"line": m.Line, "column": m.Column, "path": m.Path, "problem": m.Problem})
		}
		e.Message = invalid.Field + ": it has mistakes"
		e.Extensions["mistakes"] = mistakes
	}
	return e
}

// writeResponse writes a response. Who has left reads none.
func writeResponse(w io.Writer, response *graphql.Response) { _ = json.NewEncoder(w).Encode(response) }
