package collect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

// errLeft says that something was left for later, and the rest was done.
var errLeft = errors.New("collect: some counts could not be read")

// round is what one daemon does for as long as it leads.
type round struct {
	*Collector
	known *known
	// since is when it began to lead.
	since time.Time
	// collected is the first minute that is not collected yet, as the database says, 0 before that is known.
	collected atomic.Int64

	// search is when all counts are read next, and gap the beginning of the last gap that was found, by collect alone.
	search time.Time
	gap    int64
	// refused is what was written of the refusals of hours, by collect alone.
	refused map[int64]refusedSight
	// keep is when it is looked next what is old, and removal how far that is removed, by keepWhenDue alone.
	keep    time.Time
	removal store.UsageRemoval
}

func (c *Collector) newRound() *round {
	return &round{Collector: c, known: newKnown(), refused: make(map[int64]refusedSight), since: c.cfg.Now()}
}

const minute = time.Minute

// minuteOf and hourOf are the minute and the hour of a time, counted since 1970.
func minuteOf(at time.Time) int64 { return at.Unix() / int64(minute/time.Second) }

func hourOf(at time.Time) int64 { return at.Unix() / int64(time.Hour/time.Second) }

// startOf is when a minute begins.
func startOf(minutes int64) time.Time { return time.Unix(minutes*int64(minute/time.Second), 0).UTC() }

// collect reads what was counted up to now: of the present hour and the one before, and where that is due of all hours. It returns [errLeft] if
// some of it could not be read: that is read again with the next step, and by the next search.
func (r *round) collect(ctx context.Context) error {
	now, err := r.sourceNow(ctx)
	if err != nil {
		return err
	}
	pass, err := r.begin(ctx, now)
	if err != nil {
		return err
	}
	searches := !r.cfg.Now().Before(r.search)
	left := r.readCounts(ctx, now, searches)
	if left != nil && !errors.Is(left, errLeft) {
		return left
	}
	if err := r.readRefused(ctx, now, searches); err != nil {
		return err
	}
	if searches {
		r.search = r.cfg.Now().Add(r.cfg.Search)
	}
	// What is counted in this minute is not collected.
	if err := r.db.Count(ctx, func(tx *store.UsageTx) error { return tx.PutUsagePass(pass) }); err != nil {
		return err
	}
	r.collected.Store(pass.Collected)
	return left
}

// begin returns of which time counts are collected after this step. It notes a gap where nobody has collected for longer than counts are kept.
func (r *round) begin(ctx context.Context, now time.Time) (store.UsagePass, error) {
	first := minuteOf(now.Add(-usage.CountsLife))
	next := store.UsagePass{Began: first, Collected: minuteOf(now)}
	var is store.UsagePass
	err := r.db.Read(ctx, func(v *store.View) (err error) {
		is, err = v.UsagePass()
		return err
	})
	if err != nil {
		return next, err
	}
	if is, err = r.setBack(ctx, is, now); err != nil {
		return next, err
	}
	if is.Collected < minuteOf(now.Add(-time.Hour)) {
		// Hours that are over may have counts that nobody has read.
		r.search = time.Time{}
	}
	if is.Collected == 0 || is.Collected >= first {
		return next, nil
	}
	return next, r.noteGap(ctx, store.UsageGap{First: is.Collected, Until: first})
}

// noteGap notes a time that nobody has collected. Of one that grows it is said once.
func (r *round) noteGap(ctx context.Context, gap store.UsageGap) error {
	if err := r.db.Count(ctx, func(tx *store.UsageTx) error { return tx.PutUsageGap(gap) }); err != nil {
		return err
	}
	if r.gap != gap.First {
		r.gap = gap.First
		r.told.missed.Add(ctx, gap.Until-gap.First)
		r.cfg.Logger.ErrorContext(ctx, "collect: nobody has collected for longer than counts are kept: what was counted in between may be lost",
			slog.Time("from", startOf(gap.First)), slog.Time("to", startOf(gap.Until)))
	}
	return nil
}

// readCounts reads the counts of the present hour and the one before, or of all hours. Of all it forgets in the store of budgets what is over.
func (r *round) readCounts(ctx context.Context, now time.Time, all bool) error {
	oldest := now.Truncate(time.Hour).Add(-time.Hour)
	over := func(hour time.Time) bool { return all && !now.Before(hour.Add(time.Hour+r.cfg.Settled)) }
	return pages(func(cursor string) (string, error) {
		found, next, err := r.cfg.Source.Found(ctx, cursor)
		if err != nil {
			return "", err
		}
		var hours []bucket.UsageFound
		for _, one := range found {
			if all || !one.Hour.Before(oldest) {
				hours = append(hours, one)
			}
		}
		return next, r.readHours(ctx, hours, now, over)
	})
}

// maxPages is how many pages somebody is asked for: whoever answers without end is wrong.
const maxPages = 10_000_000

// pages reads page after page. What was left in some of them is said at the end.
func pages(read func(cursor string) (next string, err error)) error {
	var left error
	for cursor, n := "", 0; ; n++ {
		next, err := read(cursor)
		if errors.Is(err, errLeft) {
			left, err = err, nil
		}
		if err != nil {
			return err
		}
		if next == "" {
			return left
		}
		if n == maxPages {
			return fmt.Errorf("collect: there are more than %d pages", maxPages)
		}
		cursor = next
	}
}
