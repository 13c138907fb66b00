package collect

import (
	"context"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

const (
	// keepEvery is how often it is looked what is old, and removedAtOnce of how many tenants something is removed in one transaction.
	keepEvery     = time.Hour
	removedAtOnce = 500
)

// keepWhenDue forgets what is old, once an hour.
func (r *round) keepWhenDue(ctx context.Context) error {
	if now := r.cfg.Now(); !now.Before(r.keep) {
		if err := r.raise(ctx, now); err != nil {
			return err
		}
		r.keep, r.removal = now.Add(keepEvery), store.UsageRemoval{}
	}
	for !r.removal.Done && ctx.Err() == nil {
		err := r.db.Count(ctx, func(tx *store.UsageTx) (err error) {
			r.removal, err = tx.RemoveUsage(r.removal, removedAtOnce)
			return err
		})
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// raise says from when on usage is kept. A clock that is ahead of the other one has nothing forgotten too early.
func (r *round) raise(ctx context.Context, now time.Time) error {
	there, err := r.sourceNow(ctx)
	if err != nil {
		return err
	}
	if there.Before(now) {
		now = there
	}
	return r.db.Count(ctx, func(tx *store.UsageTx) error {
		_, err := tx.KeepUsage(store.UsageState{
			MinutesFrom: minuteOf(now.Add(-MinuteLife)), HoursFrom: hourOf(now.AddDate(0, 0, -r.cfg.HourDays).Truncate(24 * time.Hour)),
		})
		return err
	})
}
