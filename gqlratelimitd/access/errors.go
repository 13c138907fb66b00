package access

import (
	"errors"
	"fmt"
	"time"
)

// ErrUnauthenticated is what every [*UnauthenticatedError] is.
var ErrUnauthenticated = errors.New("access: not authenticated")

// Reason is why it is not known who asks.
type Reason string

// The reasons.
const (
	// ReasonMissing: the request shows nothing.
	ReasonMissing Reason = "missing"
	// ReasonMalformed: what it shows is no token, or none that was made here, or it was cut, or there is more than one.
	ReasonMalformed Reason = "malformed"
	// ReasonUnknown: there is no such token, issuer or key.
	ReasonUnknown Reason = "unknown"
	// ReasonAudience: the token is for somebody else.
	ReasonAudience Reason = "audience"
	// ReasonExpired: it holds no longer, or not yet.
	ReasonExpired Reason = "expired"
	// ReasonRevoked: it was revoked.
	ReasonRevoked Reason = "revoked"
	// ReasonSpent: it is a bootstrap token that was exchanged.
	ReasonSpent Reason = "spent"
	// ReasonUnavailable: what would tell does not answer. It says nothing against who asks.
	ReasonUnavailable Reason = "unavailable"
)

// UnauthenticatedError says why it is not known who asks. It repeats nothing of what was shown.
type UnauthenticatedError struct {
	Reason Reason
	// RetryAfter is when it is worth to ask again. Zero: not with the same.
	RetryAfter time.Duration
	// Err is what failed where the reason is [ReasonUnavailable]: it is for the log, and not for who asks.
	Err error
}

// texts say each reason.
var texts = map[Reason]string{
	ReasonMissing:     "the request shows no token",
	ReasonMalformed:   "this is not one whole bearer token",
	ReasonUnknown:     "the token is not known",
	ReasonAudience:    "the token is for somebody else",
	ReasonExpired:     "the token does not hold at this time",
	ReasonRevoked:     "the token was revoked",
	ReasonSpent:       "the bootstrap token was exchanged already",
	ReasonUnavailable: "who asks cannot be found out at the moment",
}

// Error says why, and nothing that a stranger should not know.
func (e *UnauthenticatedError) Error() string {
	return fmt.Sprintf("access: %s", texts[e.Reason])
}

// Is reports whether the target is [ErrUnauthenticated].
func (*UnauthenticatedError) Is(target error) bool { return target == ErrUnauthenticated }

// Unwrap returns what failed.
func (e *UnauthenticatedError) Unwrap() error { return e.Err }

// refuse returns the error for a reason.
func refuse(reason Reason) error { return &UnauthenticatedError{Reason: reason} }

// unavailable returns the error where something does not answer.
func unavailable(err error) error {
	return &UnauthenticatedError{Reason: ReasonUnavailable, RetryAfter: time.Second, Err: err}
}
