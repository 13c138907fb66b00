package collect

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
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
	counted usage.Counted
	read    *bucket.UsageHour
	// rows are those that may have changed, and seen says what they are.
	rows []store.UsageCount
	seen sight
	err  error
}

// readHours reads hours of tenants, and writes what they have. What is over is forgotten then, if over is not nil. It returns [errLeft] if some could not
// be read and others can.
func (r *round) readHours(ctx context.Context, counted []usage.Counted, told int64, over func(time.Time) bool) error {
	if len(counted) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	found := make(chan *hour)
	var reading sync.WaitGroup
	defer reading.Wait()
	defer cancel()
	var next atomic.Int64
	for range min(readers, len(counted)) {
		reading.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(counted); i = next.Add(1) - 1 {
				h := r.readHour(ctx, counted[i], told, over != nil && over(counted[i].Hour))
				select {
				case found <- h:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	var left error
	var batch []*hour
	rows := 0
	for range counted {
		var h *hour
		select {
		case h = <-found:
		case <-ctx.Done():
			return ctx.Err()
		}
		if h.err != nil {
			// Is it this one, or is everything away?
			if _, err := r.cfg.Source.Now(ctx); err != nil {
				return err
			}
			r.left.Store(true)
			r.told.failed(ctx)
			left = fmt.Errorf("%w: %w", errLeft, h.err)
			continue
		}
		if h.read == nil {
			continue
		}
		batch, rows = append(batch, h), rows+len(h.rows)
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
func (r *round) readHour(ctx context.Context, counted usage.Counted, told int64, over bool) *hour {
	h := &hour{counted: counted}
	for range readTries {
		if h.read, h.err = r.cfg.Source.ReadUsage(ctx, counted.Tenant, counted.Hour, counted.Grade); h.err == nil {
			break
		}
	}
	if h.err != nil || h.read == nil {
		return h
	}
	from := 0
	if !over {
		from, h.seen = r.known.look(counted, h.read, int(told-minuteOf(counted.Hour)))
	}
	h.rows = rowsOf(h.read, from)
	return h
}

// rowsOf returns the rows of the minutes of an hour from one on.
func rowsOf(h *bucket.UsageHour, from int) (rows []store.UsageCount) {
	first := minuteOf(h.Hour)
	for i := range h.Counts {
		c := &h.Counts[i]
		for j := from; j < len(c.Minutes); j++ {
			m := &c.Minutes[j]
			if *m == (bucket.UsageMinute{}) {
				continue
			}
			rows = append(rows, store.UsageCount{
				Tenant: h.Tenant, Minute: first + int64(j), Grade: h.Grade, Unit: string(c.Unit), Field: c.Field, Generation: c.Generation,
				Charged: m.Charged, GivenBack: m.GivenBack, Calls: m.Calls,
			})
		}
	}
	return rows
}

// putHours writes hours in one transaction. Only what is surely written is known or forgotten.
func (r *round) putHours(ctx context.Context, batch []*hour, over func(time.Time) bool) error {
	var rows []store.UsageCount
	for _, h := range batch {
		rows = append(rows, h.rows...)
	}
	if len(rows) > 0 {
		if err := r.put(ctx, kindUsage, len(rows), func(tx *store.UsageTx) (int, error) { return tx.PutUsage(rows) }); err != nil {
			return err
		}
	}
	var forget []*hour
	for _, h := range batch {
		if over != nil && over(h.counted.Hour) {
			forget = append(forget, h)
		} else {
			r.known.note(h.counted, h.seen)
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

// putReports writes what instances have told of themselves.
func (r *round) putReports(ctx context.Context, reports []usage.Report) error {
	var decided []store.DecisionCount
	var reached []store.ReachedCount
	flush := func(least int) error {
		if len(decided) >= least {
			if err := r.put(ctx, kindDecisions, len(decided), func(tx *store.UsageTx) (int, error) { return tx.PutDecisions(decided) }); err != nil {
				return err
			}
			decided = nil
		}
		if len(reached) >= least {
			if err := r.put(ctx, kindReached, len(reached), func(tx *store.UsageTx) (int, error) { return tx.PutReached(reached) }); err != nil {
				return err
			}
			reached = nil
		}
		return nil
	}
	for i := range reports {
		from := &reports[i]
		for j := range from.Decisions {
			d := &from.Decisions[j]
			decided = append(decided, store.DecisionCount{
				Tenant: d.Tenant, Minute: minuteOf(d.Minute), Dimension: d.By.String(), Name: d.Name, Instance: from.Instance, Boot: from.Boot,
				Admitted: d.Admitted, Refused: d.Refused, WouldRefuse: d.WouldRefuse, Points: d.Points,
			})
		}
		for j := range from.Reached {
			d := &from.Reached[j]
			reached = append(reached, store.ReachedCount{
				Tenant: d.Tenant, Minute: minuteOf(d.Minute), Level: d.Level, Owner: d.Owner, Limit: d.Limit, Threshold: d.Threshold,
				Instance: from.Instance, Boot: from.Boot, Times: d.Times,
			})
		}
		if err := flush(batchRows); err != nil {
			return err
		}
	}
	return flush(1)
}
