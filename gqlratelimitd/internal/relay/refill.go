package relay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/policy/directory"
)

// refillPatience is for how long a directory may be refilled.
const refillPatience = 2 * time.Minute

// refill writes the records of all tenants into a Redis that has none. They appear at once, so that no instance takes a tenant whose record is
// not back yet for one that has none.
func (r *Relay) refill(ctx context.Context) error {
	one, cancel := context.WithTimeout(ctx, callPatience)
	_, err := r.directory.Changes(one, directory.Mark{})
	cancel()
	if err == nil || !errors.Is(err, directory.ErrEmpty) {
		return err
	}
	ctx, cancel = context.WithTimeout(ctx, refillPatience)
	defer cancel()
	written, err := r.directory.Refill(ctx, r.allTenants(ctx))
	if err != nil {
		return fmt.Errorf("relay: the records of tenants: %w", err)
	}
	if written > 0 {
		r.cfg.Logger.InfoContext(ctx, "relay: Redis had no records of tenants: all were written", slog.Int("tenants", written))
	}
	return nil
}

// allTenants are the records of all tenants, a page at a time.
func (r *Relay) allTenants(ctx context.Context) iter.Seq2[directory.Record, error] {
	return func(yield func(directory.Record, error) bool) {
		for after := ""; ; {
			var page []store.Tenant
			err := r.cfg.Store.Read(ctx, func(v *store.View) (err error) {
				page, err = v.Tenants(after, tenantsPage)
				return err
			})
			if err != nil {
				yield(directory.Record{}, err)
				return
			}
			if len(page) == 0 {
				return
			}
			after = page[len(page)-1].Name
			for i := range page {
				if directory.CheckPut(page[i].Name, page[i].Record) == nil && !yield(directory.Record{Tenant: page[i].Name, Document: page[i].Record}, nil) {
					return
				}
			}
		}
	}
}
