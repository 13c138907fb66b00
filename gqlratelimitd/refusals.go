package main

import (
	"context"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/refusals"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
)

// openRefusals has metrics say who is refused much, by what the instances report. Where several daemons have one database each of them says so.
func (d *daemon) openRefusals(context.Context) error {
	if d.redis == nil {
		return nil
	}
	reader, err := report.NewReader(report.Place{Client: d.redis, Namespace: d.options.Namespace})
	if err != nil {
		return err
	}
	tenants := func(ctx context.Context) ([]report.Tenant, error) {
		all, err := reader.Summary(ctx, time.Minute)
		if err != nil {
			return nil, err
		}
		return all.Tenants, nil
	}
	return refusals.Observe(refusals.Config{Tenants: tenants, Blocked: d.blocked, MeterProvider: d.metrics, Now: d.options.now})
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
