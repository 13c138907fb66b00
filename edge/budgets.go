package edge

import (
	"context"
	"math"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// budgets are those of all that the door limits, in the memory of this process. What has one is a tenant there.
type budgets struct{ store *bucket.Memory }

// budgetShare is what [bucket.MemoryConfig.MaxEntries] has for owners, three of four, and budgetBytes what bounds the bytes so that
// they bind no sooner: a name, and up to four limits.
const (
	budgetShare = 4.0 / 3
	budgetBytes = 512
)

func newBudgets(cfg *Config) *budgets {
	entries := int(float64(cfg.MaxBudgets)*budgetShare) + 1
	return &budgets{store: bucket.NewMemory(bucket.MemoryConfig{
		Clock: cfg.Clock, MaxEntries: entries, MaxBytes: max(1<<20, min(entries, math.MaxInt/budgetBytes)*budgetBytes),
	})}
}

// take takes an amount from the limits of a name, and returns the refusal if there is not as much left.
func (d *Door) take(
	ctx context.Context, a *arrival, name, layer string, limits *bucket.Limits, unit bucket.Unit, n int64,
) *refusal {
	if limits.Len() == 0 || n <= 0 {
		return nil
	}
	var states [4]bucket.LimitState
	result, err := d.budgets.store.Take(context.WithoutCancel(ctx), bucket.Take{
		Tenant: name, Buckets: []bucket.Bucket{{Limits: limits}}, Amounts: bucket.Amounts{{Unit: unit, N: n}}, States: states[:0],
	})
	if err != nil {
		// The store has no way to fail but a mistake of this package.
		d.reporter.failed(ctx, err)
		return overloaded("the server cannot judge the request now")
	}
	if d.budgets.store.Evicted() > 0 {
		d.reporter.evicts(ctx)
	}
	refused := result.Verdict != bucket.Admitted
	for i := range result.Limits {
		l := &result.Limits[i]
		if !l.Exceeded || refused && l.Limit.Mode != bucket.Enforce {
			continue
		}
		r := limited(layer, l)
		if refused {
			return r
		}
		d.reporter.told(ctx, a, r, l.Limit.Mode)
	}
	if refused {
		return overloaded("the server cannot judge the request now")
	}
	return nil
}

// retrySoon is when to come again where nobody knows how long something takes.
const retrySoon = time.Second
