package e2e_test

import (
	"context"
	"sync/atomic"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
)

// faultyStore is a store whose single calls go wrong.
type faultyStore struct {
	*ratelimittest.Store
	// settleFailures and renewFailures are how many of the next calls fail.
	settleFailures, renewFailures atomic.Int64
	// settleLost is of how many of the next settlements the reply is lost.
	settleLost atomic.Int64
	// answer replaces what replays are answered with. Empty replaces nothing.
	answer atomic.Pointer[string]
}

func (s *faultyStore) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	result, err := s.Store.Take(ctx, take)
	if answer := s.answer.Load(); answer != nil && result.Verdict == bucket.Replayed {
		result.Answer = []byte(*answer)
	}
	return result, err
}

func (s *faultyStore) Settle(ctx context.Context, settlement bucket.Settlement) (bucket.Settled, error) {
	if s.settleFailures.Add(-1) >= 0 {
		return bucket.Settled{}, bucket.ErrUnavailable
	}
	settled, err := s.Store.Settle(ctx, settlement)
	if s.settleLost.Add(-1) >= 0 {
		return bucket.Settled{}, bucket.ErrAmbiguous
	}
	return settled, err
}

func (s *faultyStore) Renew(ctx context.Context, tenant string, claim *idempotency.Claim) (bool, error) {
	if s.renewFailures.Add(-1) >= 0 {
		return false, bucket.ErrUnavailable
	}
	return s.Store.Renew(ctx, tenant, claim)
}
