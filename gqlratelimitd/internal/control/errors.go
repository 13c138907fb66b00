package control

import (
	"errors"
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// Errors of the package. Besides, there are those of package access where an actor may not.
var (
	// ErrInvalid says that what was asked for cannot be done. It is an [*InvalidError].
	ErrInvalid = errors.New("control: invalid")
	// ErrNotFound says that there is no such thing.
	ErrNotFound = errors.New("control: there is no such thing")
	// ErrKeyReused says that the idempotency key was used for something else.
	ErrKeyReused = errors.New("control: the idempotency key was used for another request")
	// ErrTooManyTokens says that [access.MaxTokens] hold which the same person has issued. It is an [ErrInvalid].
	ErrTooManyTokens = errors.New("control: too many tokens hold")
	// ErrUncertain says that nobody knows whether a change was made.
	ErrUncertain = store.ErrUncertain
	// ErrConflict says that there is another revision than the expected one. It is a [*ConflictError].
	ErrConflict = store.ErrConflict
	// ErrPolicyChanged says that nothing was changed, because another policy was published each time that this was checked against the newest one. It is an
	// [ErrConflict] that is over by itself: the same request may be sent again.
	ErrPolicyChanged = fmt.Errorf("%w: the policy was replaced each time that this was checked against it: send it again", ErrConflict)
	// ErrNoRedis says that the daemon knows no Redis, where budgets, mode switches and events are.
	ErrNoRedis = errors.New("control: the daemon knows no Redis")
)

// ConflictError is an [ErrConflict]. It is that of the store, which those above control do not know.
type ConflictError = store.ConflictError

// InvalidError is an [ErrInvalid].
type InvalidError struct {
	// Field is what is wrong, and Problem how, and what would do.
	Field, Problem string
	// Err is the cause, if it says more: a *tiers.PolicyError has all mistakes of a document.
	Err error
}

// Error says what is wrong.
func (e *InvalidError) Error() string {
	if e.Problem == "" && e.Err != nil {
		return fmt.Sprintf("control: %s: %v", e.Field, e.Err)
	}
	return fmt.Sprintf("control: %s: %s", e.Field, e.Problem)
}

// Is reports whether the target is [ErrInvalid].
func (*InvalidError) Is(target error) bool { return target == ErrInvalid }

// Unwrap returns the cause.
func (e *InvalidError) Unwrap() error { return e.Err }

func invalid(field, format string, args ...any) error {
	return &InvalidError{Field: field, Problem: fmt.Sprintf(format, args...)}
}
