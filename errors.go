package ratelimit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/internal/show"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// ErrRefused is matched by every [RefusedError].
var ErrRefused = errors.New("ratelimit: refused")

// RefusedError says why an operation, or a [Charge] inside it, was refused. It is wrapped by the
// GraphQL error that the client sees, so an error presenter finds it with errors.As.
type RefusedError struct {
	// Code is one of the Code constants of package ratelimitclient, which says what each means.
	Code string
	// ID names the refusal, for the client as extensions.refusalId, and for the operator in events, spans and
	// log lines: 26 letters and digits drawn at random. It is empty for what refused nothing ([Decision.WouldRefuse]),
	// and for a refusal that is in none of these, because there were too many ([ObserveConfig]).
	ID string
	// Outcome is the same in the words of spans and metrics.
	Outcome Outcome
	// Message is what the client reads: without the numbers that are hidden from it.
	Message string
	// Status is the HTTP status that belongs to Code.
	Status int
	// RetryAfter is when the operation can pass, as the client is told: where a window ends for many clients in one
	// moment, some are told a later one, by up to a twentieth of the window and a minute. Zero means that waiting
	// does not help, or that nobody knows.
	RetryAfter time.Duration
	// Limit is the limit that refused, with its owner. Nil means that it was not a limit.
	Limit *bucket.Limit
	Owner bucket.Owner
	// Cost and MaxCost are what the operation costs and what it may cost, where that is the reason.
	Cost    int64
	MaxCost int64
	// Shape is the limit or rule of shape that the operation breaks. Nil means that it was not that.
	Shape *cost.ShapeError
	// ShedShare is the share of operations of the tier that is shed, from 0 to 1, where the adaptive throttle has refused.
	ShedShare float64
	// Mode is what was done about it: [bucket.Enforce] for what was refused, and for what would have
	// been the mode that let it pass.
	Mode bucket.Mode
	// EnforceFrom is when mode [bucket.Warn] becomes enforced here. It is zero if nobody knows.
	EnforceFrom time.Time
}

// Error returns the message for the client.
func (e *RefusedError) Error() string { return e.Message }

// Is matches [ErrRefused].
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }

// graphQLError returns the error that the client of a refused decision sees.
func (e *Extension) graphQLError(d *decision.Decision) *gqlerror.Error {
	shown := show.Error(d, d.Refusal, e.cfg.Response.HelpURL)
	if d.Refusal.Presented == nil {
		// What the server's own code presents keeps the error that it is about.
		shown.Err = refusedError(d, d.Refusal, shown.Message)
	}
	return shown
}

// refusedError returns a refusal as users know it.
func refusedError(d *decision.Decision, r *decision.Refusal, message string) *RefusedError {
	code := r.Outcome.Code()
	return &RefusedError{
		Code: code, ID: r.ID, Outcome: Outcome(r.Outcome), Message: message, Status: ratelimitclient.Status(code),
		RetryAfter: show.RetryAfter(d, r), Limit: r.Limit, Owner: r.Owner, Cost: r.Cost, MaxCost: r.MaxCost,
		Shape: r.Shape, ShedShare: r.ShedShare, Mode: r.Mode, EnforceFrom: r.EnforceFrom,
	}
}

const (
	// retrySoon is how long a client should wait for a store that is away, or for the other calls of its tenant, which
	// end within the timeout of the store.
	retrySoon = time.Second
	// retryBusy is how long a client should wait for a busy process at least, and busySpread by how much more at most:
	// those who are refused together must not come back together.
	retryBusy  = 50 * time.Millisecond
	busySpread = 200 * time.Millisecond
)

func refusedUnavailable() *decision.Refusal {
	return &decision.Refusal{Outcome: decision.Unavailable, RetryAfter: retrySoon}
}

// refusedUnjudged refuses what the store has not judged, because of the error.
func refusedUnjudged(err error) *decision.Refusal {
	if !errors.Is(err, bucket.ErrBusy) {
		return refusedUnavailable()
	}
	wait := retryBusy + rand.N(busySpread) //nolint:gosec // It spreads load and is no secret.
	return &decision.Refusal{Outcome: decision.Overloaded, RetryAfter: wait.Truncate(time.Millisecond)}
}

func refusedTenantBusy() *decision.Refusal {
	return &decision.Refusal{Outcome: decision.Busy, RetryAfter: retrySoon}
}

func refusedQuery(err error) *decision.Refusal {
	// Clients need not know the name of a package.
	refusal := &decision.Refusal{Outcome: decision.QueryLimited, Detail: strings.TrimPrefix(err.Error(), "cost: ")}
	// What is too large to be priced breaks no single rule.
	errors.As(err, &refusal.Shape)
	return refusal
}

func refusedSubject(err error) *decision.Refusal {
	refusal := &decision.Refusal{Outcome: decision.SubjectUnknown}
	switch {
	case errors.As(err, &refusal.Presented):
		refusal.Detail = refusal.Presented.Message
	case !errors.Is(err, ErrNoSubject):
		refusal = refusedUnavailable()
		refusal.Cause = fmt.Errorf("Config.Subject failed: %w", err)
	}
	return refusal
}

// refusedBy returns what the verdict of a store refuses, nil if the operation runs or has run.
func refusedBy(result *bucket.Result) *decision.Refusal {
	switch result.Verdict {
	case bucket.Admitted, bucket.Replayed:
		return nil
	case bucket.Limited, bucket.Never:
		if by := decision.RefusedBy(result.Limits); by != nil {
			return by
		}
		// A store of the server's own contradicts itself.
		return refusedUnavailable()
	case bucket.Blocked:
		return &decision.Refusal{Outcome: decision.Blocked, BlockedBy: result.BlockedBy()}
	case bucket.KeyReused:
		return &decision.Refusal{Outcome: decision.KeyReused}
	case bucket.InFlight:
		return &decision.Refusal{Outcome: decision.InFlight, RetryAfter: max(result.RetryAfter, time.Second)}
	case bucket.OutcomeUnknown:
		return &decision.Refusal{Outcome: decision.OutcomeUnknown}
	default:
		return &decision.Refusal{Outcome: decision.AnswerUnavailable}
	}
}
