package ratelimittest

import (
	"context"
	"slices"
	"sync"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// Store is a bucket.Store in memory that remembers what it was asked. It decides as every store does, and is always
// asked: the extension remembers none of its refusals.
// It is safe for concurrent use.
type Store struct {
	memory *bucket.Memory

	mu          sync.Mutex
	failure     error
	takes       []Take
	settlements []Settlement
}

var _ bucket.Store = (*Store)(nil)

// Take is one take that a store was asked for, and what it answered.
type Take struct {
	bucket.Take
	Result bucket.Result
	Err    error
}

// Settlement is one settlement that a store was asked for, and what it answered.
type Settlement struct {
	bucket.Settlement
	Settled bucket.Settled
	Err     error
}

// NewStore returns an empty store that reads the clock. A nil clock means the system's.
func NewStore(clock *Clock) *Store {
	config := bucket.MemoryConfig{}
	if clock != nil {
		config.Clock = clock.Now
	}
	return &Store{memory: bucket.NewMemory(config)}
}

// Fail makes every call from now on return the error and do nothing, until Fail(nil). Use an error
// that matches bucket.ErrUnavailable or bucket.ErrAmbiguous, as those of real stores do.
func (s *Store) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
}

// Takes returns what the store was asked to take so far, failed calls included, oldest first.
func (s *Store) Takes() []Take {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.takes)
}

// Settlements returns what the store was asked to settle so far, failed calls included, oldest first.
func (s *Store) Settlements() []Settlement {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.settlements)
}

func (s *Store) failing() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// Take implements bucket.Store.
func (s *Store) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	// The caller may use these again; what is remembered must not change with them.
	remembered := take
	remembered.Buckets, remembered.Amounts = slices.Clone(take.Buckets), slices.Clone(take.Amounts)
	remembered.Owners, remembered.States = slices.Clone(take.Owners), nil
	for i := range remembered.Buckets {
		remembered.Buckets[i].Amounts = slices.Clone(remembered.Buckets[i].Amounts)
	}
	if take.Candidate != nil {
		candidate := *take.Candidate
		candidate.Buckets = slices.Clone(candidate.Buckets)
		remembered.Candidate = &candidate
	}
	if take.Claim != nil {
		claim := *take.Claim
		remembered.Claim = &claim
	}
	if take.Usage != nil {
		remembered.Usage = &bucket.Usage{Fields: slices.Clone(take.Usage.Fields)}
	}
	var result bucket.Result
	err := s.failing()
	if err == nil {
		result, err = s.memory.Take(ctx, take)
		// Whoever remembers refusals goes by another clock than that of the test.
		result.HoldsFor = 0
	}
	recorded := result
	recorded.Limits = slices.Clone(result.Limits)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takes = append(s.takes, Take{Take: remembered, Result: recorded, Err: err})
	return result, err
}

// Settle implements bucket.Store.
func (s *Store) Settle(ctx context.Context, settlement bucket.Settlement) (bucket.Settled, error) {
	remembered := settlement
	remembered.Actual = slices.Clone(settlement.Actual)
	if settlement.Claim != nil {
		claim := *settlement.Claim
		claim.Answer = slices.Clone(claim.Answer)
		remembered.Claim = &claim
	}
	var settled bucket.Settled
	err := s.failing()
	if err == nil {
		settled, err = s.memory.Settle(ctx, settlement)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settlements = append(s.settlements, Settlement{Settlement: remembered, Settled: settled, Err: err})
	return settled, err
}

// Renew implements bucket.Store.
func (s *Store) Renew(ctx context.Context, tenant string, claim *idempotency.Claim) (bool, error) {
	if err := s.failing(); err != nil {
		return false, err
	}
	return s.memory.Renew(ctx, tenant, claim)
}

// Peek implements bucket.Store.
func (s *Store) Peek(ctx context.Context, tenant string, buckets []bucket.Bucket) ([]bucket.LimitState, error) {
	if err := s.failing(); err != nil {
		return nil, err
	}
	return s.memory.Peek(ctx, tenant, buckets)
}

// Grant implements bucket.Store.
func (s *Store) Grant(ctx context.Context, tenant string, buckets []bucket.Bucket, amounts bucket.Amounts) ([]bucket.LimitState, error) {
	if err := s.failing(); err != nil {
		return nil, err
	}
	return s.memory.Grant(ctx, tenant, buckets, amounts)
}

// Reset implements bucket.Store.
func (s *Store) Reset(ctx context.Context, tenant string, buckets []bucket.Bucket) error {
	if err := s.failing(); err != nil {
		return err
	}
	return s.memory.Reset(ctx, tenant, buckets)
}

// Beat counts instances, as other stores do.
func (s *Store) Beat(ctx context.Context, instance [8]byte) (instances int, before bool, err error) {
	if err := s.failing(); err != nil {
		return 0, false, err
	}
	return s.memory.Beat(ctx, instance)
}
