package collect

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

// The passes whose progress is stored, in minutes since 1970.
const (
	// toldPass is up to which minute everything was read that was told in it.
	toldPass = "told"
	// searchPass is before which minute everything was counted that a search has found.
	searchPass = "search"
)

// errLeft says that something was left for later, and the rest was done.
var errLeft = errors.New("collect: some counts could not be read")

// errClocks says that there is no room for what the store of budgets counts at this moment.
var errClocks = errors.New("collect: the clocks of the daemon and of the store of budgets differ by days: nothing is collected before they agree")

// round is what one daemon does for as long as it leads.
type round struct {
	*Collector
	known *known
	// since is when it began to lead.
	since time.Time
	// read is up to which minute everything was read that was told, 0 before that is known.
	read atomic.Int64
	// opened says that there are days into which something can be written. Before, all of it would be left out.
	opened atomic.Bool
	// left says that something could not be read, and is to be searched.
	left atomic.Bool

	// fresh is when minutes that are not over are read next, by readMinutes alone.
	fresh time.Time
	// search is when the next search begins, and again how soon after something could not be read, by searchWhenDue alone.
	search time.Time
	again  time.Duration
	// keep is when it is looked next what is old, and removal how far that is removed, by keepWhenDue alone.
	keep    time.Time
	removal store.UsageRemoval
}

func (c *Collector) newRound() *round {
	return &round{Collector: c, known: newKnown(), since: c.cfg.Now(), again: min(soon, c.cfg.Search)}
}

const minute = time.Minute

// noteEvery is after how many minutes it is noted that they were read, where many are read at once.
const noteEvery = 60

// soon is how soon something is searched that could not be read.
const soon = 5 * time.Minute

// minuteOf is the minute of a time, counted since 1970.
func minuteOf(at time.Time) int64 { return at.Unix() / int64(minute/time.Second) }

// startOf is when a minute begins.
func startOf(minutes int64) time.Time { return time.Unix(minutes*int64(minute/time.Second), 0).UTC() }

// readMinutes reads all minutes that were told in full and not read, and then, where that is due, those that are not told in full.
func (r *round) readMinutes(ctx context.Context) error {
	if !r.opened.Load() {
		return nil
	}
	now, err := r.cfg.Source.Now(ctx)
	if err != nil {
		return err
	}
	// The last one that was told in full.
	last := minuteOf(now.Add(-usage.Grace)) - 1
	done, err := r.begin(ctx, last)
	if err != nil {
		return err
	}
	for m := done + 1; m <= last; m++ {
		if err := r.readMinute(ctx, m, startOf(m).Add(usage.CountedLife).Before(now)); err != nil {
			return err
		}
		r.read.Store(m)
		if m < last && m%noteEvery != 0 {
			continue
		}
		if err := r.db.Count(ctx, func(tx *store.UsageTx) error { return tx.PutUsagePass(toldPass, m) }); err != nil {
			return err
		}
	}
	if begun := r.cfg.Now(); !begun.Before(r.fresh) {
		for m := last + 1; m <= minuteOf(now); m++ {
			if err := r.readMinute(ctx, m, false); err != nil {
				return err
			}
		}
		// What takes long is done more seldom.
		const share = 4
		end := r.cfg.Now()
		r.fresh = end.Add(max(r.cfg.Fresh, share*end.Sub(begun)))
	}
	return nil
}

// begin returns the last minute that was read. It is one before which nothing is there any more if nothing was ever read, or not for long.
func (r *round) begin(ctx context.Context, last int64) (int64, error) {
	done := r.read.Load()
	if done == 0 {
		err := r.db.Read(ctx, func(v *store.View) (err error) {
			done, err = v.UsagePass(toldPass)
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	done = max(done, last-int64(usage.ReportLife/minute))
	r.read.Store(done)
	return done, nil
}

// readMinute reads what was told in a minute. Of an old one it is not known any more who has counted.
func (r *round) readMinute(ctx context.Context, told int64, old bool) error {
	if !old {
		if err := pages(func(cursor string) (string, error) {
			counted, next, err := r.cfg.Source.Counted(ctx, startOf(told), cursor)
			if err != nil {
				return "", err
			}
			return next, r.readHours(ctx, counted, told, nil)
		}); err != nil && !errors.Is(err, errLeft) {
			return err
		}
	}
	return pages(func(cursor string) (string, error) {
		reports, next, err := r.cfg.Source.Reports(ctx, startOf(told), cursor)
		if err != nil {
			return "", err
		}
		return next, r.putReports(ctx, reports)
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

// searchWhenDue searches at the beginning, from time to time, and soon after something could not be read.
func (r *round) searchWhenDue(ctx context.Context) error {
	if !r.opened.Load() {
		return nil
	}
	if r.left.Swap(false) {
		if next := r.cfg.Now().Add(r.again); next.Before(r.search) {
			r.search = next
		}
	}
	if r.cfg.Now().Before(r.search) {
		return nil
	}
	err := r.searchAll(ctx)
	if err != nil && !errors.Is(err, errLeft) {
		return err
	}
	now := r.cfg.Now()
	if err == nil {
		r.again, r.search = min(soon, r.cfg.Search), now.Add(r.cfg.Search)
		return nil
	}
	// What cannot be read for long is searched less and less soon.
	r.left.Store(false)
	r.again = min(2*r.again, r.cfg.Search)
	r.search = now.Add(r.again)
	return err
}

// searchAll reads everything that the store of budgets has counted, and forgets there what is over.
func (r *round) searchAll(ctx context.Context) error {
	begun, err := r.cfg.Source.Now(ctx)
	if err != nil {
		return err
	}
	over := func(hour time.Time) bool { return !begun.Before(hour.Add(time.Hour + r.cfg.Settled)) }
	err = pages(func(cursor string) (string, error) {
		found, next, err := r.cfg.Source.Found(ctx, cursor)
		if err != nil {
			return "", err
		}
		return next, r.readHours(ctx, found, minuteOf(begun), over)
	})
	if err != nil {
		return err
	}
	return r.db.Count(ctx, func(tx *store.UsageTx) error { return tx.PutUsagePass(searchPass, minuteOf(begun)) })
}
