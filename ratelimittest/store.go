package ratelimittest

import (
	"context"
	"slices"
	"sync"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// Store is a bucket.Store in memory that records its calls and can be made to fail. It is safe for
// concurrent use.
type Store struct {
	memory *bucket.Memory

	mu          sync.Mutex
	failure     error
	takes       []TakeCall
	settlements []bucket.Settlement
}

var _ bucket.Store = (*Store)(nil)

// TakeCall is one recorded call of Take.
type TakeCall struct {
	Take   bucket.Take
	Result bucket.Result
}

// NewStore returns an empty store whose time is that of the clock. A nil clock means the system's.
func NewStore(clock *Clock) *Store {
	config := bucket.MemoryConfig{}
	if clock != nil {
		config.Clock = clock.Now
	}
	return &Store{memory: bucket.NewMemory(config)}
}

// Fail makes every call return err from now on, and do nothing else. Use bucket.ErrUnavailable for a
// store that is away; nil ends it.
func (s *Store) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
}

// Takes returns the calls of Take that did not fail, in the order in which they returned.
func (s *Store) Takes() []TakeCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.takes)
}

// Settlements returns what was settled, in the order in which the calls returned.
func (s *Store) Settlements() []bucket.Settlement {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.settlements)
}

func (s *Store) failing() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// Take implements [bucket.Store].
func (s *Store) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	if err := s.failing(); err != nil {
		return bucket.Result{}, err
	}
	result, err := s.memory.Take(ctx, take)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.takes = append(s.takes, TakeCall{Take: take, Result: result})
	}
	return result, err
}

// Settle implements [bucket.Store].
func (s *Store) Settle(ctx context.Context, settlement bucket.Settlement) (bucket.Settled, error) {
	if err := s.failing(); err != nil {
		return bucket.Settled{}, err
	}
	settled, err := s.memory.Settle(ctx, settlement)
	if err == nil && settled.Applied {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.settlements = append(s.settlements, settlement)
	}
	return settled, err
}

// Renew implements [bucket.Store].
func (s *Store) Renew(ctx context.Context, tenant string, claim *idempotency.Claim) (bool, error) {
	if err := s.failing(); err != nil {
		return false, err
	}
	return s.memory.Renew(ctx, tenant, claim)
}

// Peek implements [bucket.Store].
func (s *Store) Peek(ctx context.Context, tenant string, buckets []bucket.Bucket) ([]bucket.LimitState, error) {
	if err := s.failing(); err != nil {
		return nil, err
	}
	return s.memory.Peek(ctx, tenant, buckets)
}

// Grant implements [bucket.Store].
func (s *Store) Grant(
	ctx context.Context, tenant string, buckets []bucket.Bucket, amounts bucket.Amounts,
) ([]bucket.LimitState, error) {
	if err := s.failing(); err != nil {
		return nil, err
	}
	return s.memory.Grant(ctx, tenant, buckets, amounts)
}

// Reset implements [bucket.Store].
func (s *Store) Reset(ctx context.Context, tenant string, buckets []bucket.Bucket) error {
	if err := s.failing(); err != nil {
		return err
	}
	return s.memory.Reset(ctx, tenant, buckets)
}
