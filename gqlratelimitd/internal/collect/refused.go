package collect

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/internal/number"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

const (
	// maxRefused is how many rows of runs, tenants and limits are added up of an hour, some 40 MiB, and maxRefusedNames how many limits a tenant has. Who
	// can write where instances write can have written more: the rest is left out.
	maxRefused      = 200_000
	maxRefusedNames = 100
)

// refusedSight is what was written of an hour. Each number only grows, so that another sum says that something has changed.
type refusedSight struct {
	rows int
	sum  int64
}

// readRefused reads how many operations instances have refused in the present hour and the one before, or in all hours: an instance stores
// what it has refused when the Redis is there again.
func (r *round) readRefused(ctx context.Context, now time.Time, all bool) error {
	oldest := now.Add(-time.Hour)
	if all {
		oldest = now.Add(-usage.CountsLife)
	}
	for hour := oldest.Truncate(time.Hour); !hour.After(now); hour = hour.Add(time.Hour) {
		counts, seen, err := r.sumRefused(ctx, hour)
		if err != nil {
			return err
		}
		if r.refused[hourOf(hour)] == seen {
			continue
		}
		for batch := range slices.Chunk(counts, batchRows) {
			if err := r.put(ctx, kindRefused, len(batch), func(tx *store.UsageTx) (int, error) { return tx.PutRefused(batch) }); err != nil {
				return err
			}
		}
		r.refused[hourOf(hour)] = seen
	}
	maps.DeleteFunc(r.refused, func(hour int64, _ refusedSight) bool { return hour < hourOf(now.Add(-usage.CountsLife)) })
	return nil
}

// sumRefused adds up what all instances have refused in an hour. A row that comes twice is one.
func (r *round) sumRefused(ctx context.Context, hour time.Time) ([]store.RefusedCount, refusedSight, error) {
	rows, left := make(map[usage.Refused]int64), 0
	err := pages(func(cursor string) (string, error) {
		refused, next, err := r.cfg.Source.Refused(ctx, hour, cursor)
		for _, row := range refused {
			n := row.N
			row.N = 0
			if _, known := rows[row]; !known && len(rows) >= maxRefused {
				left++
				continue
			}
			rows[row] = max(rows[row], n)
		}
		return next, err
	})
	if err != nil {
		return nil, refusedSight{}, err
	}
	r.told.wrote(ctx, kindRefused, 0, left)
	seen := refusedSight{rows: len(rows)}
	for _, n := range rows {
		seen.sum = number.Sum(seen.sum, n)
	}
	return sumsOf(rows, hour), seen, nil
}

// sumsOf adds up rows by tenant and limit. Of the limits of a tenant those that refuse most have a sum of their own.
func sumsOf(rows map[usage.Refused]int64, hour time.Time) []store.RefusedCount {
	tenants := make(map[string]map[string]int64)
	for row, n := range rows {
		if tenants[row.Tenant] == nil {
			tenants[row.Tenant] = make(map[string]int64)
		}
		tenants[row.Tenant][row.Limit] = number.Sum(tenants[row.Tenant][row.Limit], n)
	}
	var counts []store.RefusedCount
	for tenant, limits := range tenants {
		var of []store.RefusedCount
		for limit, n := range limits {
			of = append(of, store.RefusedCount{Tenant: tenant, Hour: hourOf(hour), Name: limit, Refused: n})
		}
		slices.SortFunc(of, func(a, b store.RefusedCount) int {
			return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Name, b.Name))
		})
		counts = append(counts, of[:min(len(of), maxRefusedNames)]...)
	}
	return counts
}
