package ratelimittest

import (
	"context"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

var _ bucket.OverrideStore = (*Store)(nil)

// SetOverride implements bucket.OverrideStore.
func (s *Store) SetOverride(ctx context.Context, tenant string, override bucket.Override) (*bucket.Override, error) {
	if err := s.failing(); err != nil {
		return nil, err
	}
	return s.memory.SetOverride(ctx, tenant, override)
}

// GetOverride implements bucket.OverrideStore.
func (s *Store) GetOverride(ctx context.Context, tenant string, owner bucket.Owner, limit string) (*bucket.Override, error) {
	if err := s.failing(); err != nil {
		return nil, err
	}
	return s.memory.GetOverride(ctx, tenant, owner, limit)
}

// ListOverrides implements bucket.OverrideStore.
func (s *Store) ListOverrides(ctx context.Context, tenant string) ([]bucket.Override, error) {
	if err := s.failing(); err != nil {
		return nil, err
	}
	return s.memory.ListOverrides(ctx, tenant)
}

// DeleteOverride implements bucket.OverrideStore.
func (s *Store) DeleteOverride(ctx context.Context, tenant string, owner bucket.Owner, limit string) (*bucket.Override, error) {
	if err := s.failing(); err != nil {
		return nil, err
	}
	return s.memory.DeleteOverride(ctx, tenant, owner, limit)
}

// ClearOverrides implements bucket.OverrideStore.
func (s *Store) ClearOverrides(ctx context.Context, tenant string) ([]bucket.Override, error) {
	if err := s.failing(); err != nil {
		return nil, err
	}
	return s.memory.ClearOverrides(ctx, tenant)
}
