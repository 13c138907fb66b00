package collect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// round is what one daemon does for as long as it leads.
type round struct {
	*Collector
	known *known
	// since is when it began to lead.
	since time.Time
	// read is up to which minute was read what was told, 0 before that is known, and noted up to which the database says that all of it is there.
	read, noted atomic.Int64
	// searched is before which minute a search of this round has found everything, and unsearched the last minute of which only a search finds who has
	// counted, by readMinutes alone.
	searched   atomic.Int64
	unsearched int64
	// opened says that there are days into which something can be written. Before, all of it would be left out.
	opened atomic.Bool
	// left says that something could not be read, and is to be searched.
	left atomic.Bool

	// fresh is when minutes that are not over are read next, and gap the beginning of the last gap that was found, by readMinutes alone.
	fresh time.Time
	gap   int64
	// began is the first minute that anybody has collected, by readMinutes alone.
	began int64
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

// maxFirstSearch is for how many minutes the first search of a database may take: what is lost meanwhile is of the time before anybody collected.
const maxFirstSearch = 60

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
	now, err := r.sourceNow(ctx)
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
		if err := r.readTold(ctx, m, last); err != nil {
			return err
		}
	}
	if err := r.noteRead(ctx); err != nil {
		return err
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

// readTold reads a minute that was told in full. What it says of the past is kept for hours only, and it may take as long to come so far.
func (r *round) readTold(ctx context.Context, m, last int64) error {
	now, err := r.cfg.Source.Now(ctx)
	if err != nil {
		return err
	}
	old := startOf(m).Add(usage.CountedLife).Before(now)
	if err := r.readMinute(ctx, m, old); err != nil {
		return err
	}
	if old {
		r.unsearched = m
	}
	r.read.Store(m)
	if m > last-int64(usage.ReportLife/minute) {
		r.told.minutes.Add(ctx, 1)
	} else {
		r.told.missed.Add(ctx, 1)
	}
	if m < last && m%noteEvery != 0 {
		return nil
	}
	return r.noteRead(ctx)
}

// noteRead notes up to which minute everything is in the database that was told. Of minutes of which nobody knows any more who has counted in them that is
// only so once a search is done that has begun after them.
func (r *round) noteRead(ctx context.Context) error {
	m := r.read.Load()
	if m == r.noted.Load() || r.unsearched > 0 && r.searched.Load() <= r.unsearched {
		return nil
	}
	return r.note(ctx, m)
}

func (r *round) note(ctx context.Context, m int64) error {
	if err := r.db.Count(ctx, func(tx *store.UsageTx) error { return tx.PutUsagePass(toldPass, m) }); err != nil {
		return err
	}
	r.noted.Store(m)
	return nil
}

// begin returns the last minute that was read. It is one before which nothing is there any more if nothing was ever read, or not for long: what was counted
// between may be lost, and so that it is noted.
func (r *round) begin(ctx context.Context, last int64) (int64, error) {
	first, done := last-int64(usage.ReportLife/minute), r.read.Load()
	var err error
	if done == 0 {
		done, err = r.goOn(ctx, last, first)
	} else {
		done, err = r.believe(ctx, done, last)
	}
	if err != nil {
		return 0, err
	}
	// Who begins has no gap for as long as the first search takes. Afterwards each minute counts.
	gap, least := store.UsageGap{First: r.noted.Load() + 1, Until: first + 1}, int64(1)
	if r.noted.Load() == r.began {
		least = maxFirstSearch
	}
	if gap.Until-gap.First >= least {
		if err := r.noteGap(ctx, gap); err != nil {
			return 0, err
		}
	}
	r.read.Store(done)
	return done, nil
}

// goOn returns the last minute that was read by who has led before, or a first one.
func (r *round) goOn(ctx context.Context, last, first int64) (done int64, _ error) {
	err := r.db.Read(ctx, func(v *store.View) error {
		span, err := v.UsageSpan(toldPass)
		r.began, done = span.Began, max(0, span.Collected-1)
		return err
	})
	if err != nil {
		return 0, err
	}
	if r.noted.Store(done); done == 0 {
		// From here on counts are collected.
		r.began = first
		if err := r.note(ctx, first); err != nil {
			return 0, err
		}
	}
	if done, err = r.believe(ctx, done, last); err != nil {
		return 0, err
	}
	if done > 0 && done < first {
		// Where nothing was ever read nothing is missed.
		r.told.missed.Add(ctx, first-done)
	}
	return max(done, first), nil
}

// noteGap notes a time that nobody has collected. Of one that grows it is said once.
func (r *round) noteGap(ctx context.Context, gap store.UsageGap) error {
	if err := r.db.Count(ctx, func(tx *store.UsageTx) error { return tx.PutUsageGap(gap) }); err != nil {
		return err
	}
	if r.gap != gap.First {
		r.gap = gap.First
		r.cfg.Logger.ErrorContext(ctx, "collect: nobody has collected for longer than counts are kept: what was counted in between may be lost",
			slog.Time("from", startOf(gap.First)), slog.Time("to", startOf(gap.Until)))
	}
	return nil
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
	begun, err := r.sourceNow(ctx)
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
		if errors.Is(err, errLeft) {
			// What cannot be read holds back nothing here either: it is searched again.
			r.searched.Store(minuteOf(begun))
		}
		return err
	}
	if err := r.noteSearch(ctx, minuteOf(begun)); err != nil {
		return err
	}
	r.searched.Store(minuteOf(begun))
	return nil
}
