package usage

import (
	"context"
	"errors"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// ErrCursor says that a cursor is none that the source has returned.
var ErrCursor = errors.New("usage: this is no cursor of the source")

// Source is where a collector reads. It is safe for concurrent use, and its contract is usagetest.RunSource.
//
// What it has is returned page by page: the cursor is empty for the first page, and then what came with the page before. It is empty after the last.
// A page may have nothing and others follow. What is there from the first page to the last is returned, some of it more than once perhaps.
// Anybody who can write where it reads can have written what instances tell: what cannot be read is left out, and what is returned is bounded.
type Source interface {
	// A collector reads the counts of a tenant and hour here, and has them forgotten when they stand.
	bucket.UsageStore

	// Now is the time of the clock by which minutes are told.
	Now(ctx context.Context) (time.Time, error)

	// Counted returns the hours of tenants that were told in a minute: those in which something was counted or corrected, in that minute or
	// shortly before. So whoever has read all minutes and the hours that they tell has everything that was told.
	Counted(ctx context.Context, told time.Time, cursor string) (counted []Counted, next string, err error)

	// Found returns the hours of tenants of which the store has counts, whoever has told of them. It looks at all keys of the store, so that
	// it is for once an hour, and for a collector that was away for long.
	Found(ctx context.Context, cursor string) (found []Counted, next string, err error)

	// Reports returns what instances have told of themselves in a minute. That is about this minute or an earlier one, and of each tenant and
	// minute in it everything that was counted by then. Several reports may be of one instance.
	Reports(ctx context.Context, told time.Time, cursor string) (reports []Report, next string, err error)
}

// Batch is what an instance tells at once.
type Batch struct {
	// Counted are hours of tenants in which the store has counted.
	Counted []Counted
	// Decisions and Reached have everything that was counted of the tenants and minutes in them.
	Decisions []Decisions
	Reached   []Reached
}
