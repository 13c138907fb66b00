package ratelimittest

import (
	"context"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

var _ bucket.UsageStore = (*Store)(nil)

// ReadUsage implements [bucket.UsageStore].
func (s *Store) ReadUsage(ctx context.Context, tenant string, hour time.Time, grade bucket.UsageGrade) (*bucket.UsageHour, error) {
	if err := s.failing(); err != nil {
		return nil, err
	}
	return s.memory.ReadUsage(ctx, tenant, hour, grade)
}

// ForgetUsage implements [bucket.UsageStore].
func (s *Store) ForgetUsage(ctx context.Context, read *bucket.UsageHour) (bool, error) {
	if err := s.failing(); err != nil {
		return false, err
	}
	return s.memory.ForgetUsage(ctx, read)
}
