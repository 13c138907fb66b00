package collect

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/internal/number"
)

const (
	// readers is how many hours are read at once.
	readers = 16
	// batchRows is how many rows one transaction has, and those of one hour at most more.
	batchRows = 2000
	// readTries is how often an hour is read that cannot be.
	readTries = 2
)

// hour is one that was read.
type hour struct {
	found bucket.UsageFound
	read  *bucket.UsageHour
	// minutes are those that may have changed, and seen says what they are. sums are the counts of the whole hour, of which there are none if no minute
	// may have changed.
	minutes, sums []store.UsageCount
	seen          sight
	err           error
}

// readHours reads hours of tenants, and writes what they have. What is over is forgotten then. It returns [errLeft] if some could not be read and others can.
func (r *round) readHours(ctx context.Context, found []bucket.UsageFound, now time.Time, over func(time.Time) bool) error {
	if len(found) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan *hour)
	var reading sync.WaitGroup
	defer reading.Wait()
	defer cancel()
	var next atomic.Int64
	for range min(readers, len(found)) {
		reading.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(found); i = next.Add(1) - 1 {
				h := r.readHour(ctx, found[i], now, over(found[i].Hour))
				select {
				case done <- h:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	var left error
	var batch []*hour
	rows := 0
	for range found {
		var h *hour
		select {
		case h = <-done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if h.err != nil {
			// Is it this one, or is everything away?
			if _, err := r.cfg.Source.Now(ctx); err != nil {
				return err
			}
			r.told.failed(ctx)
			left = fmt.Errorf("%w: %w", errLeft, h.err)
			continue
		}
		if h.read == nil {
			continue
		}
		batch, rows = append(batch, h), rows+len(h.minutes)
		if rows >= batchRows {
			if err := r.putHours(ctx, batch, over); err != nil {
				return err
			}
			batch, rows = nil, 0
		}
	}
	if err := r.putHours(ctx, batch, over); err != nil {
		return err
	}
	return left
}

// readHour reads one. Of one that is over all rows are written.
func (r *round) readHour(ctx context.Context, found bucket.UsageFound, now time.Time, over bool) *hour {
	h := &hour{found: found}
	for range readTries {
		if h.read, h.err = r.cfg.Source.ReadUsage(ctx, found.Tenant, found.Hour, found.Grade); h.err == nil {
			break
		}
	}
	if h.err != nil || h.read == nil {
		return h
	}
	from := 0
	if !over {
		from, h.seen = r.known.look(found, h.read, int(minuteOf(now)-minuteOf(found.Hour)))
	}
	if h.minutes = minutesOf(h.read, from); len(h.minutes) > 0 {
		h.sums = sumsOfHour(h.read)
	}
	return h
}

// minutesOf returns the counts of the minutes of an hour from one on.
func minutesOf(h *bucket.UsageHour, from int) (rows []store.UsageCount) {
	first := minuteOf(h.Hour)
	for i := range h.Counts {
		c := &h.Counts[i]
		for j := from; j < len(c.Minutes); j++ {
			m := &c.Minutes[j]
			if *m == (bucket.UsageMinute{}) {
				continue
			}
			rows = append(rows, store.UsageCount{
				Tenant: h.Tenant, At: first + int64(j), Grade: h.Grade, Unit: string(c.Unit), Field: c.Field, Generation: c.Generation,
				Charged: m.Charged, GivenBack: m.GivenBack, Calls: m.Calls,
			})
		}
	}
	return rows
}

// sumsOfHour returns the counts of an hour.
func sumsOfHour(h *bucket.UsageHour) (sums []store.UsageCount) {
	for i := range h.Counts {
		c := &h.Counts[i]
		sum := store.UsageCount{
			Tenant: h.Tenant, At: hourOf(h.Hour), Grade: h.Grade, Unit: string(c.Unit), Field: c.Field, Generation: c.Generation,
		}
		for j := range c.Minutes {
			m := &c.Minutes[j]
			sum.Charged, sum.GivenBack, sum.Calls = number.Sum(sum.Charged, m.Charged), number.Sum(sum.GivenBack, m.GivenBack), number.Sum(sum.Calls, m.Calls)
		}
		sums = append(sums, sum)
	}
	return sums
}

// putHours writes hours in one transaction. Only what is surely written is known or forgotten.
func (r *round) putHours(ctx context.Context, batch []*hour, over func(time.Time) bool) error {
	var minutes, sums []store.UsageCount
	for _, h := range batch {
		minutes, sums = append(minutes, h.minutes...), append(sums, h.sums...)
	}
	if len(minutes) > 0 {
		if err := r.put(ctx, kindUsage, len(minutes)+len(sums), func(tx *store.UsageTx) (int, error) {
			of, err := tx.PutUsage(store.UsageMinutes, minutes)
			if err != nil {
				return 0, err
			}
			left, err := tx.PutUsage(store.UsageHours, sums)
			return of + left, err
		}); err != nil {
			return err
		}
	}
	var forget []*hour
	for _, h := range batch {
		if over(h.found.Hour) {
			forget = append(forget, h)
		} else {
			r.known.note(h.found, h.seen)
		}
	}
	return r.forget(ctx, forget)
}

// forget has the store of budgets forget what was written.
func (r *round) forget(ctx context.Context, hours []*hour) error {
	var all sync.WaitGroup
	var next atomic.Int64
	var failed atomic.Pointer[error]
	for range min(readers, len(hours)) {
		all.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(hours); i = next.Add(1) - 1 {
				// What has changed meanwhile is found by the next search.
				if _, err := r.cfg.Source.ForgetUsage(ctx, hours[i].read); err != nil {
					failed.Store(&err)
					return
				}
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// put writes rows in one transaction, and counts them.
func (r *round) put(ctx context.Context, kind string, rows int, put func(tx *store.UsageTx) (left int, err error)) error {
	left := 0
	err := r.db.Count(ctx, func(tx *store.UsageTx) (err error) {
		left, err = put(tx)
		return err
	})
	if err != nil {
		return err
	}
	r.told.wrote(ctx, kind, rows-left, left)
	return nil
}
