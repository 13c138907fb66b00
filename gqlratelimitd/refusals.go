package main

import (
	"context"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/digest/redisdigest"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/refusals"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// openRefusals has metrics say who is refused much, by the digests of the instances. Where several daemons have one database each of them says so.
func (d *daemon) openRefusals(context.Context) error {
	if d.redis == nil {
		return nil
	}
	digests, err := redisdigest.NewReader(redisdigest.Config{Client: d.redis, Namespace: d.options.Namespace})
	if err != nil {
		return err
	}
	return refusals.Observe(refusals.Config{Digests: digests.Digests, Blocked: d.blocked, MeterProvider: d.metrics, Now: d.options.now})
}

// blocked returns which of the tenants are blocked as a whole.
func (d *daemon) blocked(ctx context.Context, tenants []string) (map[string]bool, error) {
	now := time.Now()
	if d.options.now != nil {
		now = d.options.now()
	}
	blocked := make(map[string]bool)
	err := d.db.Read(ctx, func(v *store.View) error {
		for _, tenant := range tenants {
			o, err := v.Override(store.OverrideKey{Tenant: tenant, Owner: bucket.Owner{Level: bucket.Tenant}})
			if err != nil {
				return err
			}
			if o.Holds(now) && o.Blocked {
				blocked[tenant] = true
			}
		}
		return nil
	})
	return blocked, err
}
