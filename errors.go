package ratelimit

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// The codes of refusals, in errors[].extensions.code: those of package ratelimitclient, which Go
// clients use.
const (
	// CodeRateLimited (429): the budget is used up for now; retryAfter says how long.
	CodeRateLimited = ratelimitclient.CodeRateLimited
	// CodeCostLimitExceeded (400): the operation costs more than it ever may.
	CodeCostLimitExceeded = ratelimitclient.CodeCostLimitExceeded
	// CodeQueryLimitExceeded (400): the operation breaks a rule of shape.
	CodeQueryLimitExceeded = ratelimitclient.CodeQueryLimitExceeded
	// CodeTenantBlocked (403): the tenant may not use the API.
	CodeTenantBlocked = ratelimitclient.CodeTenantBlocked
	// CodeUnavailable (503): the store is away, and the operation must not run unjudged.
	CodeUnavailable = ratelimitclient.CodeUnavailable
	// CodeSubjectUnknown (401): nobody could be found who pays.
	CodeSubjectUnknown = ratelimitclient.CodeSubjectUnknown
	// CodeKeyInvalid (400): the idempotency key is malformed.
	CodeKeyInvalid = ratelimitclient.CodeKeyInvalid
	// CodeKeyReused (422): the idempotency key was used for something else.
	CodeKeyReused = ratelimitclient.CodeKeyReused
	// CodeInFlight (409): another attempt under the idempotency key is running.
	CodeInFlight = ratelimitclient.CodeInFlight
	// CodeAnswerUnavailable (409): the operation ran under this key and its answer was not stored.
	CodeAnswerUnavailable = ratelimitclient.CodeAnswerUnavailable
	// CodeOutcomeUnknown (409): an attempt under this key broke off, nobody knows how far it came, and
	// Idempotency.RefuseAbandoned lets no other run after it.
	CodeOutcomeUnknown = ratelimitclient.CodeOutcomeUnknown
	// CodeCostRequestInvalid (400): the client asked about the price in words that nobody understands.
	CodeCostRequestInvalid = ratelimitclient.CodeCostRequestInvalid
	// CodeCostRequestForbidden (403): the client may not have operations priced without running them.
	CodeCostRequestForbidden = ratelimitclient.CodeCostRequestForbidden
)

// ErrRefused is matched by every [RefusedError].
var ErrRefused = errors.New("ratelimit: refused")

// RefusedError says why an operation, or a [Charge] inside it, was refused. It is wrapped by the
// GraphQL error that the client sees, so an error presenter finds it with errors.As.
type RefusedError struct {
	// Code is one of the Code constants.
	Code string
	// ID names the refusal, for the client as extensions.refusalId, and for the operator in events, spans and
	// log lines: 26 letters and digits drawn at random. It is empty for what refused nothing
	// ([Decision.WouldRefuse]).
	ID string
	// Outcome is the same for telemetry.
	Outcome Outcome
	// Message is what the client reads: without the numbers that are hidden from it.
	Message string
	// Status is the HTTP status that belongs to Code.
	Status int
	// RetryAfter is when the operation can pass. Zero means that waiting does not help, or that
	// nobody knows.
	RetryAfter time.Duration
	// Limit is the limit that refused, with its owner. Nil means that it was not a limit.
	Limit *bucket.Limit
	Owner bucket.Owner
	// Cost and MaxCost are what the operation costs and what it may cost, where that is the reason.
	Cost    int64
	MaxCost int64
	// Query is the limit or rule of shape that the operation breaks. Nil means that it was not that.
	Query *cost.LimitError
	// Mode is what was done about it: [bucket.Enforce] for what was refused, and for what would have
	// been the mode that let it pass.
	Mode bucket.Mode
	// EnforceFrom is when mode [bucket.Warn] becomes enforced here. It is zero if nobody knows.
	EnforceFrom time.Time

	// needed is how much of the limit was asked for, and remaining what was left.
	needed    int64
	remaining int64
	// presented is the error as its user wants the client to see it.
	presented *gqlerror.Error
	telling   telling
}

// Error returns the message for the client.
func (e *RefusedError) Error() string { return e.Message }

// Is matches [ErrRefused].
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }

// admittedAs returns the outcome of an operation that runs although this would have refused it.
func (e *RefusedError) admittedAs() Outcome {
	if e.Mode == bucket.Warn {
		return Warned
	}
	return Shadowed
}

// exceededIn chooses the limits of a refusal: those of the mode that did not have the amount. A soft
// limit reports, whatever its mode.
func exceededIn(mode bucket.Mode) func(*bucket.LimitState) bool {
	return func(l *bucket.LimitState) bool { return l.Exceeded && !l.Limit.Soft && l.Limit.Mode == mode }
}

var enforced, warned, shadowed = exceededIn(bucket.Enforce), exceededIn(bucket.Warn), exceededIn(bucket.Shadow)

// wouldRefuse returns what the limits that refuse nothing would have refused, nil if there is nothing:
// first what clients are warned of, and of that what is enforced first.
func wouldRefuse(rules *tiers.Rules, limits []bucket.LimitState, amounts bucket.Amounts) *RefusedError {
	if day, found := firstDay(rules, limits); found {
		refusal := refusedByLimits(limits, amounts, func(l *bucket.LimitState) bool {
			return warned(l) && limitEnforcedFrom(rules, l).Equal(day)
		})
		refusal.Mode, refusal.EnforceFrom = bucket.Warn, day
		return refusal
	}
	refusal := refusedByLimits(limits, amounts, shadowed)
	if refusal != nil {
		refusal.Mode = bucket.Shadow
	}
	return refusal
}

// limitEnforcedFrom returns when the policy has the limit enforced, zero if nobody knows. An override record
// beats the policy on its day too: of a limit that has one no day is promised.
func limitEnforcedFrom(rules *tiers.Rules, l *bucket.LimitState) time.Time {
	if l.Overridden {
		return time.Time{}
	}
	return rules.LimitEnforcedFrom(l.Owner, l.Limit.Name)
}

// firstDay returns the earliest day on which a limit that clients are warned of is enforced, zero if nobody
// knows one of any. It returns false if there is no such limit.
func firstDay(rules *tiers.Rules, limits []bucket.LimitState) (day time.Time, found bool) {
	for i := range limits {
		l := &limits[i]
		if !warned(l) {
			continue
		}
		if from := limitEnforcedFrom(rules, l); !found || sooner(from, day) {
			day, found = from, true
		}
	}
	return day, found
}

// sooner reports whether enforcement begins earlier on day a than on day b, where zero is a day that nobody
// knows: it comes last.
func sooner(a, b time.Time) bool {
	return !a.IsZero() && (b.IsZero() || a.Before(b))
}

// refusedByLimits names the limit that stands most in the way: one that can never pass before one
// that can, and of these the one with the longest wait. The amounts are what was asked for. It returns nil
// if none was chosen.
func refusedByLimits(limits []bucket.LimitState, amounts bucket.Amounts, chosen func(*bucket.LimitState) bool) *RefusedError {
	var worst *bucket.LimitState
	for i := range limits {
		l := &limits[i]
		if !chosen(l) {
			continue
		}
		if worst == nil || (l.Never && !worst.Never) || (l.Never == worst.Never && l.RetryAfter > worst.RetryAfter) {
			worst = l
		}
	}
	if worst == nil {
		return nil
	}
	refusal := &RefusedError{
		Code: CodeRateLimited, Outcome: Limited, Status: http.StatusTooManyRequests,
		RetryAfter: worst.RetryAfter, Limit: worst.Limit, Owner: worst.Owner,
		needed: amounts.Of(worst.Limit.Unit), remaining: worst.Remaining,
	}
	if worst.Never {
		refusal.Code, refusal.Outcome, refusal.Status = CodeCostLimitExceeded, TooExpensive, http.StatusBadRequest
		refusal.RetryAfter = 0
	}
	refusal.Message = refusal.text(tiers.Hide{})
	return refusal
}

func refusedTooExpensive(points, maxCost int64) *RefusedError {
	refusal := &RefusedError{
		Code: CodeCostLimitExceeded, Outcome: TooExpensive, Status: http.StatusBadRequest,
		Cost: points, MaxCost: maxCost,
	}
	refusal.Message = refusal.text(tiers.Hide{})
	return refusal
}

func refusedQuery(err error) *RefusedError {
	refusal := &RefusedError{
		Code: CodeQueryLimitExceeded, Outcome: QueryLimited, Status: http.StatusBadRequest,
		// Clients need not know the name of a package.
		Message: strings.TrimPrefix(err.Error(), "cost: "),
	}
	// What is too large to be priced breaks no single rule.
	errors.As(err, &refusal.Query)
	return refusal
}

func refusedBlocked() *RefusedError {
	return &RefusedError{
		Code: CodeTenantBlocked, Outcome: Blocked, Status: http.StatusForbidden,
		Message: "this account may not use the API: contact support",
	}
}

// retryUnavailable is how long a client should wait for a store that is away.
const retryUnavailable = time.Second

func refusedUnavailable() *RefusedError {
	return &RefusedError{
		Code: CodeUnavailable, Outcome: Unavailable, Status: http.StatusServiceUnavailable,
		Message:    "rate limiting is temporarily unavailable: nothing was run, try again",
		RetryAfter: retryUnavailable,
	}
}

// retryBusy is how long a client should wait whose tenant has too many calls under way: they end within the
// timeout of the store.
const retryBusy = time.Second

func refusedBusy() *RefusedError {
	return &RefusedError{
		Code: CodeRateLimited, Outcome: Busy, Status: http.StatusTooManyRequests,
		Message:    "too many operations of this account are being judged at the same time: nothing was run, try again",
		RetryAfter: retryBusy,
	}
}

func refusedReplay(left time.Duration) *RefusedError {
	return &RefusedError{
		Code: CodeRateLimited, Outcome: Limited, Status: http.StatusTooManyRequests,
		Message:    "this account has asked for too many answers again: the operation ran before and was not run now, ask for its answer later",
		RetryAfter: left,
	}
}

func refusedSubject(err error) *RefusedError {
	var presented *gqlerror.Error
	if errors.As(err, &presented) {
		return &RefusedError{
			Code: CodeSubjectUnknown, Outcome: SubjectUnknown, Status: http.StatusUnauthorized,
			Message: presented.Message, presented: presented,
		}
	}
	if errors.Is(err, ErrNoSubject) {
		return &RefusedError{
			Code: CodeSubjectUnknown, Outcome: SubjectUnknown, Status: http.StatusUnauthorized,
			Message: "the caller could not be identified: send valid credentials",
		}
	}
	return refusedUnavailable()
}

func refusedKeyInvalid(err error) *RefusedError {
	return &RefusedError{
		Code: CodeKeyInvalid, Outcome: KeyInvalid, Status: http.StatusBadRequest,
		Message: "invalid idempotency key: " + strings.TrimPrefix(err.Error(), idempotency.ErrKeyInvalid.Error()+": "),
	}
}

// refusedByClaim returns the refusal of a verdict about an idempotency key.
func refusedByClaim(result *bucket.Result) *RefusedError {
	switch result.Verdict {
	case bucket.KeyReused:
		return &RefusedError{
			Code: CodeKeyReused, Outcome: KeyReused, Status: http.StatusUnprocessableEntity,
			Message: "this idempotency key was used for another operation or other variables: use a new key",
		}
	case bucket.InFlight:
		return &RefusedError{
			Code: CodeInFlight, Outcome: InFlight, Status: http.StatusConflict,
			Message:    "an operation with this idempotency key is still running: try again with the same key",
			RetryAfter: max(result.RetryAfter, time.Second),
		}
	case bucket.OutcomeUnknown:
		return &RefusedError{
			Code: CodeOutcomeUnknown, Outcome: OutcomeUnknown, Status: http.StatusConflict,
			Message: "an operation with this idempotency key was broken off, and nobody knows how far it came: " +
				"read its effect before you send it again with a new key",
		}
	default:
		return &RefusedError{
			Code: CodeAnswerUnavailable, Outcome: AnswerUnavailable, Status: http.StatusConflict,
			Message: "the operation ran under this idempotency key, but its answer was not kept: " +
				"read its effect before you send it again with a new key",
		}
	}
}

var errKeyMissing = fmt.Errorf("%w: a mutation needs one, and there is none; a UUID fits", idempotency.ErrKeyInvalid)

var errUploadKey = fmt.Errorf("%w: it cannot be used with file uploads", idempotency.ErrKeyInvalid)

// roundUp rounds up to whole milliseconds.
func roundUp(d time.Duration) time.Duration {
	whole := d.Truncate(time.Millisecond)
	if whole < d {
		whole += time.Millisecond
	}
	return whole
}
