package collect

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

// maxClocks is how much the clocks of the daemon and of the store of budgets differ at most, and setBackBy by how much that of the store goes back without being set.
const (
	maxClocks = 3 * 24 * time.Hour
	setBackBy = 10 * time.Minute
)

// errClocks says that there is no room for what the store of budgets counts at this moment, or that nobody knows which moment it is.
var errClocks = errors.New("collect: the clocks of the daemon and of the store of budgets differ by days: nothing is collected before they agree")

// sourceNow is the time of the store of budgets. One that is ahead by days is not believed: what is noted by it would say that all until then was collected.
func (r *round) sourceNow(ctx context.Context) (time.Time, error) {
	now, err := r.cfg.Source.Now(ctx)
	if err == nil && now.Sub(r.cfg.Now()) > maxClocks {
		err = errClocks
	}
	return now, err
}

// setBack notes that a pass has only come up to a minute, if more was noted by a clock that was ahead and is not any more. It returns up to where the pass has come.
func (r *round) setBack(ctx context.Context, pass string, done, now, to int64) (int64, error) {
	if done <= now+int64(setBackBy/minute) {
		return done, nil
	}
	r.cfg.Logger.WarnContext(ctx, "collect: the clock of the store of budgets was ahead: what it may have hidden is read again",
		slog.String("pass", pass), slog.Duration("ahead", time.Duration(done-now)*minute))
	return to, r.db.Count(ctx, func(tx *store.UsageTx) error { return tx.SetBackUsagePass(pass, to) })
}

// believe returns up to which minute was read what was told, which is not later than the last one that was. What was searched by a clock that was ahead says nothing either.
func (r *round) believe(ctx context.Context, done, last int64) (int64, error) {
	is, err := r.setBack(ctx, toldPass, done, last, last-int64(usage.ReportLife/minute))
	if err != nil || is == done {
		return done, err
	}
	r.searched.Store(0)
	r.unsearched = 0
	r.noted.Store(is)
	r.read.Store(is)
	return is, nil
}

// noteSearch notes that everything is in the database that was counted before a minute.
func (r *round) noteSearch(ctx context.Context, begun int64) error {
	var before int64
	err := r.db.Read(ctx, func(v *store.View) (err error) {
		before, err = v.UsagePass(searchPass)
		return err
	})
	if err == nil {
		_, err = r.setBack(ctx, searchPass, before, begun, begun)
	}
	if err != nil {
		return err
	}
	return r.db.Count(ctx, func(tx *store.UsageTx) error { return tx.PutUsagePass(searchPass, begun) })
}
