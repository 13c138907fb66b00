package control

import (
	"context"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// NearTenants is how many tenants have used a limit of their own up to 80 % on most of the last seven days, today included: those that
// [Control.NearLimits] tells by default. Of more than [store.MaxPage] such limits it looks at so many. some is false as long as nothing was collected.
func (c *Control) NearTenants(ctx context.Context) (tenants int, some bool, _ error) {
	in := NearInput{N: 1}
	if err := in.complete(); err != nil {
		return 0, false, err
	}
	q := &store.NearQuery{Level: in.Level, To: store.DayOf(c.now()) + 1, Days: in.AtLeast, Least: in.Threshold}
	q.From = q.To - int64(in.Days)
	err := c.cfg.Store.Read(ctx, func(v *store.View) error {
		span, err := v.UsageSpan(usagePass)
		if err != nil {
			return err
		}
		since, _ := spanTimes(&span)
		some = !since.IsZero()
		found, err := v.FindNear(q, store.MaxPage)
		names := make(map[string]bool, len(found))
		for i := range found {
			names[found[i].Tenant] = true
		}
		tenants = len(names)
		return err
	})
	return tenants, some, err
}
