package policy

import (
	"context"
	"errors"
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/internal/follow"
)

// Feed gives revisions. One feed serves one [Follower]; its methods are called by two goroutines at once, Newest and
// Restore by one of them and Hints by the other. They end when their context does. What they return is judged as if a
// stranger had written it.
//
// A feed may be a fmt.Stringer: what it returns then names it in errors and logs.
type Feed interface {
	// Newest returns the newest revision, or nil if that is the one that the follower has: of the same number and hash.
	// It is the truth, in full and never a difference, and the caller's own. A feed without a revision returns [ErrEmpty],
	// and one whose newest revision is none, or larger than any that fits, a [*RefusedError].
	Newest(ctx context.Context, have Head) (*Revision, error)
	// Hints blocks while a subscription stands, and returns why it stands no longer. It calls wake when the
	// subscription stands, so that what came before is read, and then whenever something may have changed. A hint is never the
	// truth: it may come for nothing, and it may not come. wake never blocks.
	//
	// A feed without hints returns [ErrNoHints] at once. Any other error has the follower subscribe again.
	Hints(ctx context.Context, wake func()) error
}

// Errors of feeds.
var (
	// ErrEmpty says that a feed has no revision yet, or none any more.
	ErrEmpty = errors.New("policy: the feed has no revision")
	// ErrNotYet says that a feed has something new and does not give it before it is asked again. It is no failure.
	ErrNotYet = fmt.Errorf("policy: %w", follow.ErrPending)
	// ErrNoHints says that a feed has no hints: it is only asked at intervals.
	ErrNoHints = fmt.Errorf("policy: %w", follow.ErrNoHints)
	// ErrConflict says that a revision was not published, because another one has been published meanwhile: read it,
	// and decide again. It is a [*ConflictError].
	ErrConflict = errors.New("policy: another revision has been published")
)

// Restorer is a [Feed] that can lose what it was given, as a Redis that keeps nothing on disk does. A follower gives it
// back the revision that it had from this feed.
type Restorer interface {
	Feed
	// Restore puts the revision into the feed, as it is, unless the feed has a newer one. It is called at an interval and not
	// at hints, so that of many followers one comes first.
	Restore(ctx context.Context, r *Revision) error
}

// Publisher is what takes revisions for a feed.
type Publisher interface {
	// Publish puts the revision into the feed if the number of the newest one there is the expected one, 0 for none. Of many
	// who expect the same, one wins, and the others have a [*ConflictError]. A repeat of what was published already
	// succeeds: the answer to the first call may have been lost.
	//
	// The number has to be above the expected one. What [Revision.Load] refuses is not published.
	Publish(ctx context.Context, r *Revision, expected uint64) error
}

// ConflictError is an [ErrConflict].
type ConflictError struct {
	// Newest is what the feed has instead of what was expected. Its number is 0 if that is nothing.
	Newest Head
}

// Error says which revision is there.
func (e *ConflictError) Error() string {
	if e.Newest.Number == 0 {
		return "policy: nothing was published: the feed has no revision"
	}
	return fmt.Sprintf("policy: nothing was published: the newest revision is %v", e.Newest)
}

// Is reports whether the target is [ErrConflict].
func (*ConflictError) Is(target error) bool { return target == ErrConflict }
