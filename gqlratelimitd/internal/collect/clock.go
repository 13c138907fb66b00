package collect

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// maxClocks is how much the clocks of the daemon and of the store of budgets differ at most, and setBackBy by how much that of the store goes back without being set.
const (
	maxClocks = 3 * 24 * time.Hour
	setBackBy = 10 * time.Minute
)

// errClocks says that nobody knows which moment it is.
var errClocks = errors.New("collect: the clocks of the daemon and of the store of budgets differ by days: nothing is collected before they agree")

// sourceNow is the time of the store of budgets. One that differs by days is not believed: what is noted by it would say that all until then was
// collected, or that nothing was for long.
func (r *round) sourceNow(ctx context.Context) (time.Time, error) {
	now, err := r.cfg.Source.Now(ctx)
	if err == nil && now.Sub(r.cfg.Now()).Abs() > maxClocks {
		err = errClocks
	}
	return now, err
}

// setBack notes that counts are collected up to now only, if more was noted by a clock that was ahead and is not any more. All counts are read then.
func (r *round) setBack(ctx context.Context, is store.UsagePass, now time.Time) (store.UsagePass, error) {
	if is.Collected <= minuteOf(now.Add(setBackBy)) {
		return is, nil
	}
	r.cfg.Logger.WarnContext(ctx, "collect: the clock of the store of budgets was ahead: what it may have hidden is read again",
		slog.Duration("ahead", startOf(is.Collected).Sub(now).Round(time.Second)))
	r.search = time.Time{}
	is.Collected = minuteOf(now)
	return is, r.db.Count(ctx, func(tx *store.UsageTx) error { return tx.SetBackUsagePass(is.Collected) })
}
