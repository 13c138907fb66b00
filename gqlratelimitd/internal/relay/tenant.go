package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/policy/directory"
)

// tries is how often what others change at the same time is tried again.
const tries = 5

// bringTenant brings the record of a tenant to Redis, or removes it there. Redis is read before the database, and replaces only what was
// read: so nobody who stood still in between writes an older record over a newer one.
func (r *Relay) bringTenant(ctx context.Context, tenant string) (c carried, _ error) {
	there, expected, err := r.thereOf(ctx, tenant)
	if err == nil && there == nil {
		if err = r.refill(ctx); err == nil {
			there, expected, err = r.thereOf(ctx, tenant)
		}
	}
	if err != nil {
		return c, err
	}
	for range tries {
		last, err := r.lastTenant(ctx, tenant)
		if err != nil || last == nil {
			return c, err
		}
		c.note = func(tx *store.Tx) (bool, error) {
			is, err := tx.LastTenant(tenant)
			return is != nil && is.Revision == last.Revision, err
		}
		if there != nil && bytes.Equal(*there, last.Record) {
			return c, nil
		}
		if c.refused = directory.CheckPut(tenant, last.Record); c.refused != nil {
			return c, nil //nolint:nilerr // It is part of what is returned.
		}
		_, err = r.put(ctx, tenant, last.Record, expected)
		conflict := (*directory.ConflictError)(nil)
		if err == nil {
			r.told.wrote(ctx, store.TenantMessage)
			return c, nil
		}
		if !errors.As(err, &conflict) {
			return c, err
		}
		there, expected = nil, conflict.There
	}
	return c, fmt.Errorf("relay: the record of a tenant: %w", directory.ErrConflict)
}

// thereOf returns what Redis has of a tenant, empty for no record, and its revision.
func (r *Relay) thereOf(ctx context.Context, tenant string) (there *[]byte, revision uint64, _ error) {
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	record, err := r.directory.Tenant(ctx, tenant)
	switch {
	case errors.Is(err, directory.ErrEmpty):
		return nil, 0, nil
	case err != nil:
		return nil, 0, err
	case record == nil:
		return new([]byte), 0, nil
	}
	return &record.Document, record.Revision, nil
}

func (r *Relay) put(ctx context.Context, tenant string, document []byte, expected uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	return r.directory.Put(ctx, tenant, document, expected)
}

func (r *Relay) lastTenant(ctx context.Context, tenant string) (last *store.Tenant, _ error) {
	err := r.cfg.Store.Read(ctx, func(v *store.View) (err error) {
		last, err = v.LastTenant(tenant)
		return err
	})
	return last, err
}
