package usage

import (
	"context"
	"errors"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// CountsLife is for how long counts are kept after their hour, in the store and beside it. A collector that was away for longer has missed some.
const CountsLife = 48 * time.Hour

// ErrCursor says that a cursor is none that the source has returned.
var ErrCursor = errors.New("usage: this is no cursor of the source")

// Source is where a collector reads. It is safe for concurrent use, and its contract is usagetest.RunSource.
//
// What it has is returned page by page: the cursor is empty for the first page, and then what came with the page before. It is empty after the last.
// A page may have nothing and others follow. What is there from the first page to the last is returned, some of it more than once perhaps.
// Anybody who can write where it reads can have written what instances report: what cannot be read is left out, and what is returned is bounded.
type Source interface {
	// A collector reads the counts of a tenant and hour here, and has them forgotten when they are stored elsewhere.
	bucket.UsageStore

	// Now is the time of the clock by which the store counts.
	Now(ctx context.Context) (time.Time, error)

	// Found returns the hours of tenants of which the store has counts. It looks at all keys of the store.
	Found(ctx context.Context, cursor string) (found []bucket.UsageFound, next string, err error)

	// Refused returns what instances have refused in the hour of a time. One run of an instance has one row for each tenant and limit.
	Refused(ctx context.Context, hour time.Time, cursor string) (refused []Refused, next string, err error)
}
