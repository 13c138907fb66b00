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

// Keep makes room and removes what is old.
func (r Round) Keep(ctx context.Context) error {
	r.r.keep, r.r.removal = time.Time{}, store.UsageRemoval{}
	return r.r.keepWhenDue(ctx)
}

// ReadMinutes reads what was told.
func (r Round) ReadMinutes(ctx context.Context) error { return r.r.readMinutes(ctx) }

// Search searches.
func (r Round) Search(ctx context.Context) error {
	r.r.search = time.Time{}
	return r.r.searchWhenDue(ctx)
}

// SearchWhenDue searches if that is due.
func (r Round) SearchWhenDue(ctx context.Context) error { return r.r.searchWhenDue(ctx) }

// RollUp computes all that was marked by a time.
func (r Round) RollUp(ctx context.Context, by time.Time) error { return r.r.rollUpBy(ctx, by) }
