package store

import (
	"errors"
	"fmt"
	"time"
)

// Errors of the package.
var (
	// ErrUncertain says that the connection was lost while a change was committed: it holds as a whole or not at all, and nobody
	// knows which.
	ErrUncertain = errors.New("store: nobody knows whether the change was committed")
	// ErrConflict says that a change was not made, because there is another revision than the expected one. It is a
	// [*ConflictError].
	ErrConflict = errors.New("store: another revision is there")
)

// ConflictError is an [ErrConflict].
type ConflictError struct {
	// Current is the revision that is there, 0 for none.
	Current uint64
	// By is who has made it, and At when. They are zero if there is none.
	By string
	At time.Time
}

// Error names the revision and who has made it.
func (e *ConflictError) Error() string {
	if e.Current == 0 {
		return "store: nothing was changed: there is no revision"
	}
	return fmt.Sprintf("store: nothing was changed: revision %d is there, by %s at %s", e.Current, e.By, e.At.UTC().Format(time.RFC3339))
}

// Is reports whether the target is [ErrConflict].
func (*ConflictError) Is(target error) bool { return target == ErrConflict }
