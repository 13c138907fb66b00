package bucket

import (
	"context"
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// decorator hands every call on to another store. What stands before a store embeds it and has methods of
// its own for the calls that it changes.
type decorator struct {
	next Store
}

var (
	_ Store         = decorator{}
	_ OverrideStore = decorator{}
)

// Unwrap returns the store behind this one.
func (d decorator) Unwrap() Store { return d.next }

// Take implements [Store].
func (d decorator) Take(ctx context.Context, take Take) (Result, error) {
	return d.next.Take(ctx, take)
}

// Settle implements [Store].
func (d decorator) Settle(ctx context.Context, settlement Settlement) (Settled, error) {
	return d.next.Settle(ctx, settlement)
}

// Renew implements [Store].
func (d decorator) Renew(ctx context.Context, tenant string, claim *idempotency.Claim) (bool, error) {
	return d.next.Renew(ctx, tenant, claim)
}

// Peek implements [Store].
func (d decorator) Peek(ctx context.Context, tenant string, buckets []Bucket) ([]LimitState, error) {
	return d.next.Peek(ctx, tenant, buckets)
}

// Grant implements [Store].
func (d decorator) Grant(ctx context.Context, tenant string, buckets []Bucket, amounts Amounts) ([]LimitState, error) {
	return d.next.Grant(ctx, tenant, buckets, amounts)
}

// Reset implements [Store].
func (d decorator) Reset(ctx context.Context, tenant string, buckets []Bucket) error {
	return d.next.Reset(ctx, tenant, buckets)
}

// SetOverride implements [OverrideStore].
func (d decorator) SetOverride(ctx context.Context, tenant string, override Override) (*Override, error) {
	overrides, err := d.overrides()
	if err != nil {
		return nil, err
	}
	return overrides.SetOverride(ctx, tenant, override)
}

// GetOverride implements [OverrideStore].
func (d decorator) GetOverride(ctx context.Context, tenant string, owner Owner, limit string) (*Override, error) {
	overrides, err := d.overrides()
	if err != nil {
		return nil, err
	}
	return overrides.GetOverride(ctx, tenant, owner, limit)
}

// ListOverrides implements [OverrideStore].
func (d decorator) ListOverrides(ctx context.Context, tenant string) ([]Override, error) {
	overrides, err := d.overrides()
	if err != nil {
		return nil, err
	}
	return overrides.ListOverrides(ctx, tenant)
}

// DeleteOverride implements [OverrideStore].
func (d decorator) DeleteOverride(ctx context.Context, tenant string, owner Owner, limit string) (*Override, error) {
	overrides, err := d.overrides()
	if err != nil {
		return nil, err
	}
	return overrides.DeleteOverride(ctx, tenant, owner, limit)
}

// ClearOverrides implements [OverrideStore].
func (d decorator) ClearOverrides(ctx context.Context, tenant string) ([]Override, error) {
	overrides, err := d.overrides()
	if err != nil {
		return nil, err
	}
	return overrides.ClearOverrides(ctx, tenant)
}

func (d decorator) overrides() (OverrideStore, error) {
	overrides, ok := d.next.(OverrideStore)
	if !ok {
		return nil, fmt.Errorf("%w: %T keeps no override records", ErrInvalid, d.next)
	}
	return overrides, nil
}
