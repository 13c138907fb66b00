package collect

import (
	"context"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

const (
	// sumsAtOnce is how many sums are computed in one transaction, and removedAtOnce of how many tenants something is removed.
	sumsAtOnce    = 400
	removedAtOnce = 500
	// sumsAfter is for how long what changes is not computed anew, so that an hour is not with each of its minutes.
	sumsAfter = 30 * time.Second
	// keepEvery is how often it is looked what is old.
	keepEvery = time.Hour
	// daysAhead is for how many days there is room in advance.
	daysAhead = 4
)

// rollUp computes what has changed for a while.
func (r *round) rollUp(ctx context.Context) error {
	return r.rollUpBy(ctx, r.cfg.Now().Add(-sumsAfter))
}

// rollUpBy computes what has changed by a time.
func (r *round) rollUpBy(ctx context.Context, by time.Time) error {
	for ctx.Err() == nil {
		found := 0
		err := r.db.Count(ctx, func(tx *store.UsageTx) (err error) {
			found, err = tx.RollUp(by, sumsAtOnce)
			return err
		})
		if err != nil || found == 0 {
			return err
		}
		r.told.wrote(ctx, kindSums, found, 0)
	}
	return ctx.Err()
}

// keepWhenDue makes room for the days to come, and removes what is old. Until there is room for the first time nothing is collected.
func (r *round) keepWhenDue(ctx context.Context) error {
	if now := r.cfg.Now(); !now.Before(r.keep) {
		if err := r.keepAll(ctx); err != nil {
			return err
		}
		r.keep = now.Add(keepEvery)
		r.removal = store.UsageRemoval{}
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

// keepAll says what is kept.
func (r *round) keepAll(ctx context.Context) error {
	now := r.cfg.Now()
	there, err := r.cfg.Source.Now(ctx)
	if err != nil {
		return err
	}
	// A clock that is ahead has nothing forgotten too early, and one that is behind has nothing left out.
	first, last := now, there
	if there.Before(now) {
		first, last = there, now
	}
	if clocks := first.Add(maxClocks); last.After(clocks) {
		last = clocks
	}
	want := store.UsageState{
		MinutesFrom: store.DayOf(first) - int64(r.cfg.Keep.MinuteDays), MinutesUntil: store.DayOf(last) + daysAhead,
		HoursFrom: store.DayOf(first) - int64(r.cfg.Keep.HourDays), DaysFrom: store.MonthOfDay(store.DayOf(first)) - int64(r.cfg.Keep.DayMonths),
	}
	// What waits to be computed is not forgotten, so that it would keep old days.
	if err := r.rollUpBy(ctx, now); err != nil {
		return err
	}
	var is store.UsageState
	err = r.db.Count(ctx, func(tx *store.UsageTx) (err error) {
		is, err = tx.KeepUsage(want)
		return err
	})
	if err != nil {
		return err
	}
	if is.MinutesUntil <= store.DayOf(there) {
		return errClocks
	}
	r.opened.Store(true)
	return nil
}
