package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// problem is why something was not done, and what would do: application/problem+json, RFC 9457.
type problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail,omitempty"`
	// Request names the request in the log of the daemon.
	Request string `json:"request,omitempty"`
	// Field is what is wrong with the request, and Mistakes are all that are wrong with a document.
	Field    string          `json:"field,omitempty"`
	Mistakes []tiers.Mistake `json:"mistakes,omitempty"`
	// Current is the revision that is there, By who has made it, and At when, where another one was expected.
	Current *uint64    `json:"current,omitempty"`
	By      string     `json:"by,omitempty"`
	At      *time.Time `json:"at,omitempty"`
	// Roles are those that would do.
	Roles []access.Role `json:"roles,omitempty"`
	// retryAfter is when it is worth asking again. Zero says nothing.
	retryAfter time.Duration
}

func (p *problem) Error() string { return p.Title }

func badRequest(format string, args ...any) error {
	return &problem{Status: http.StatusBadRequest, Title: "The request cannot be read", Detail: fmt.Sprintf(format, args...)}
}

// fail answers with why a request failed.
func (c *call) fail(ctx context.Context, err error) {
	p := problemOf(err)
	p.Request = c.id
	if p.Status >= http.StatusInternalServerError && ctx.Err() == nil && !toldElsewhere(err) {
		c.s.cfg.Logger.LogAttrs(ctx, slog.LevelError, "a request failed", slog.String("request", c.id), slog.Any("error", err))
	}
	header := c.w.Header()
	header.Set(headerID, c.id)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Type", "application/problem+json")
	header.Del("ETag")
	if p.Status == http.StatusUnauthorized {
		header.Set("WWW-Authenticate", `Bearer realm="gqlratelimitd"`)
	}
	if p.retryAfter > 0 {
		header.Set("Retry-After", strconv.FormatInt(int64(math.Ceil(p.retryAfter.Seconds())), 10))
	}
	if p.Current != nil {
		header.Set("ETag", tag(*p.Current))
	}
	p.Detail = control.Plain(p.Detail)
	// It is made of texts and numbers.
	body, _ := json.Marshal(p)
	c.send(p.Status, append(body, '\n'))
}

// toldElsewhere reports whether an error need not be logged: strangers can ask as often as they like while nobody can be authenticated, of
// which the authenticator tells now and then, and that there is no Redis is no failure.
func toldElsewhere(err error) bool {
	return errors.Is(err, access.ErrUnauthenticated) || errors.Is(err, control.ErrNoRedis)
}

// problemOf says an error in the words of HTTP. It repeats nothing of one that is not for clients.
func problemOf(err error) *problem {
	var (
		known       *problem
		stranger    *access.UnauthenticatedError
		denied      *access.DeniedError
		conflict    *control.ConflictError
		invalidOnes *control.InvalidError
	)
	switch {
	case errors.As(err, &known):
		copied := *known
		return &copied
	case errors.As(err, &stranger):
		return strangerProblem(stranger)
	case errors.As(err, &denied):
		return &problem{Status: http.StatusForbidden, Title: "You may not do this", Detail: denied.Error(), Roles: denied.Roles}
	case errors.As(err, &conflict):
		return conflictProblem(conflict)
	case errors.Is(err, control.ErrPolicyChanged):
		return &problem{
			Status: http.StatusPreconditionFailed, Title: "Other policies were published meanwhile", retryAfter: time.Second,
			Detail: "Nothing was changed, because it could not be checked against a policy that holds. Send it again as it is.",
		}
	case errors.As(err, &invalidOnes):
		return invalidProblem(invalidOnes)
	case errors.Is(err, control.ErrNotFound):
		return &problem{Status: http.StatusNotFound, Title: "There is no such thing", Detail: "It was never there, or is not there any more."}
	case errors.Is(err, control.ErrKeyReused):
		return &problem{
			Status: http.StatusUnprocessableEntity, Title: "The Idempotency-Key was used for another request",
			Detail: "Use a new key for each thing that is to be done, and the same one only to repeat it.",
		}
	}
	return awayProblem(err)
}

// awayProblem says what the daemon needs and does not reach, or that it has failed.
func awayProblem(err error) *problem {
	switch {
	case errors.Is(err, control.ErrUncertain):
		return &problem{
			Status: http.StatusServiceUnavailable, Title: "Nobody knows whether it was done", retryAfter: time.Second,
			Detail: "The connection to the database was lost at the end. Repeat the request with the same Idempotency-Key, or read what is there.",
		}
	case errors.Is(err, control.ErrAway):
		return &problem{
			Status: http.StatusServiceUnavailable, Title: "Redis does not answer", retryAfter: time.Second,
			Detail: "Nothing is known meanwhile of what is there. Instances do what their fail modes say.",
		}
	case errors.Is(err, control.ErrNoRedis):
		return &problem{
			Status: http.StatusServiceUnavailable, Title: "The daemon knows no Redis",
			Detail: "Budgets, mode switches and events are there. Start it with -redis.",
		}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &problem{Status: http.StatusServiceUnavailable, Title: "It took too long", Detail: "The database is slow or away. Ask again.", retryAfter: time.Second}
	}
	return &problem{Status: http.StatusInternalServerError, Title: "Something failed", Detail: "The log of the daemon has more, under the request."}
}

// strangerProblem says why it is not known who asks.
func strangerProblem(e *access.UnauthenticatedError) *problem {
	p := &problem{Status: http.StatusUnauthorized, Title: "It is not known who asks", Detail: e.Error(), retryAfter: e.RetryAfter}
	switch e.Reason {
	case access.ReasonUnavailable:
		p.Status = http.StatusServiceUnavailable
	case access.ReasonMissing, access.ReasonMalformed:
		p.Detail += ". Send Authorization: Bearer with a token that POST /v1/tokens has issued."
	case access.ReasonUnknown, access.ReasonAudience, access.ReasonExpired, access.ReasonRevoked, access.ReasonSpent:
	}
	return p
}

// conflictProblem says what is there instead of what was expected.
func conflictProblem(e *control.ConflictError) *problem {
	p := &problem{
		Status: http.StatusPreconditionFailed, Title: "Something else is there than you have seen", Current: &e.Current, By: e.By,
		Detail: "Nothing was changed. Read what is there, decide again, and send its ETag as If-Match.",
	}
	if !e.At.IsZero() {
		p.At = &e.At
	}
	if e.Current == 0 {
		p.Detail = "Nothing was changed. There is nothing to replace: send If-None-Match: *."
	}
	return p
}

// invalidProblem says what is wrong with what was asked for.
func invalidProblem(e *control.InvalidError) *problem {
	p := &problem{Status: http.StatusUnprocessableEntity, Title: "This cannot be done", Detail: e.Error(), Field: e.Field}
	var document *tiers.PolicyError
	if errors.As(e.Err, &document) {
		p.Title, p.Detail = "The document is no policy", "Every instance would refuse it. Nothing was changed."
		p.Mistakes = document.Mistakes
	}
	return p
}
