package collect

import (
	"context"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// Database is what a collector writes into.
type Database = database

// Round is what a daemon does while it leads, a step at a time.
type Round struct{ r *round }

// NewRound begins to lead, on another database if that is not nil.
func NewRound(c *Collector, db Database) Round {
	if db != nil {
		c.db = db
	}
	r := c.newRound()
	c.leading.Store(r)
	return Round{r}
}

// Keep removes what is old.
func (r Round) Keep(ctx context.Context) error {
	r.r.keep, r.r.removal = time.Time{}, store.UsageRemoval{}
	return r.r.keepWhenDue(ctx)
}

// Collect reads what was counted.
func (r Round) Collect(ctx context.Context) error { return r.r.collect(ctx) }

// Search reads all that was counted.
func (r Round) Search(ctx context.Context) error {
	r.r.search = time.Time{}
	return r.r.collect(ctx)
}

// ErrLeft says that something was left for later.
var ErrLeft = errLeft
