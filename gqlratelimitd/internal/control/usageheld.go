package control

import (
	"context"
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// readLeases tells what instances lease of budgets apart from what is used, and names them if that is asked for. It reads those of the tenant
// itself, which are those that instances lease, or of the backstop.
func (c *Control) readLeases(ctx context.Context, budgets []Budget, tenant string, buckets []bucket.Bucket, names bool) error {
	own := slices.DeleteFunc(slices.Clone(buckets), func(b bucket.Bucket) bool {
		return tenant != everybody && b.Owner.Level != bucket.Tenant
	})
	if len(own) == 0 {
		return nil
	}
	leases, err := c.cfg.Budgets.Leases(ctx, tenant, own)
	if err != nil {
		return err
	}
	for i := range leases {
		l := &leases[i]
		at := slices.IndexFunc(budgets, func(b Budget) bool { return b.Owner == l.Free.Owner && b.Limit.Name == l.Free.Limit.Name })
		if at < 0 {
			continue
		}
		b := &budgets[at]
		if b.setHeld(l); names {
			b.HeldBy = l.Parts
		}
	}
	return nil
}

// setHeld takes what is held from what the store counts as spent. What is left and what is held are of one reading, so that they add up.
func (b *Budget) setHeld(l *bucket.LimitLeases) {
	spent := l.Free.Limit.Capacity - l.Free.Remaining + l.Free.Overdraft
	b.Remaining, b.Overdraft, b.Holders = l.Free.Remaining, l.Free.Overdraft, l.Holders
	// An exchange between the two parts of the reading may have given more than was spent before it.
	b.Held = min(l.Level, spent)
	b.Used = spent - b.Held
}
