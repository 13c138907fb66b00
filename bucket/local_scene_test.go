package bucket_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/fleet"
)

// awayStore is a store that goes away.
type awayStore struct {
	*bucket.Memory
	// failure is what calls return, and after says that they do so after they were applied.
	failure atomic.Pointer[error]
	after   atomic.Bool
	settles atomic.Int64
	// gate, if it is not nil, holds settlements up until it is closed.
	gate chan struct{}
}

func (s *awayStore) fail(err error, after bool) {
	s.after.Store(after)
	s.failure.Store(&err)
}

func (s *awayStore) failing() error {
	if err := s.failure.Load(); err != nil {
		return *err
	}
	return nil
}

func (s *awayStore) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	if err := s.failing(); err != nil {
		return bucket.Result{}, err
	}
	return s.Memory.Take(ctx, take)
}

func (s *awayStore) Settle(ctx context.Context, settlement bucket.Settlement) (bucket.Settled, error) {
	s.settles.Add(1)
	if s.gate != nil {
		<-s.gate
	}
	err := s.failing()
	if err != nil && !s.after.Load() {
		return bucket.Settled{}, err
	}
	settled, applied := s.Memory.Settle(ctx, settlement)
	if err != nil {
		return bucket.Settled{}, err
	}
	return settled, applied
}

func (s *awayStore) Beat(ctx context.Context, instance [8]byte) (instances int, before bool, err error) {
	if err := s.failing(); err != nil {
		return 0, false, err
	}
	return s.Memory.Beat(ctx, instance)
}

// replica is one instance of a server as the extension makes it.
type replica struct {
	t     *testing.T
	store bucket.Store
	local *bucket.Local
}

func (r *replica) take(n int64, buckets ...bucket.Bucket) bucket.Result {
	r.t.Helper()
	return r.takeAs("acme", n, buckets...)
}

func (r *replica) takeAs(tenant string, n int64, buckets ...bucket.Bucket) bucket.Result {
	r.t.Helper()
	take := bucket.Take{Tenant: tenant, Buckets: buckets, Amounts: points(n)}
	if r.local.Owes(&take) {
		if _, _, err := r.local.Settle(context.Background(), tenant); err != nil {
			return r.local.Take(&take, false)
		}
	}
	result, err := r.store.Take(context.Background(), take)
	if err != nil {
		require.NotErrorIs(r.t, err, bucket.ErrInvalid)
		return r.local.Take(&take, false)
	}
	owes, beat := r.local.Learn(&take, &result)
	if beat {
		require.NoError(r.t, r.local.Beat(context.Background()))
	}
	if owes {
		_, _, err = r.local.Settle(context.Background(), tenant)
		require.NoError(r.t, err)
	}
	return result
}

// drain takes so much at a time until no more is admitted, and returns how much was.
func (r *replica) drain(each int64, buckets ...bucket.Bucket) int64 {
	r.t.Helper()
	var admitted int64
	for r.take(each, buckets...).Verdict == bucket.Admitted {
		admitted += each
	}
	return admitted
}

// scene is a store and replicas that share it, at a time that the test sets.
type scene struct {
	t        *testing.T
	clock    *clock
	store    *awayStore
	replicas []*replica
}

func newScene(t *testing.T, replicas int, config fleet.Config) *scene {
	t.Helper()
	s := &scene{t: t, clock: newClock()}
	s.store = &awayStore{Memory: bucket.NewMemory(bucket.MemoryConfig{Clock: s.clock.now})}
	config.Clock = s.clock.now
	for range replicas {
		local, err := bucket.NewLocal(s.store, config)
		require.NoError(t, err)
		s.replicas = append(s.replicas, &replica{t: t, store: s.store, local: local})
	}
	return s
}

func (s *scene) goAway() { s.store.fail(bucket.ErrUnavailable, false) }

func (s *scene) comeBack() { s.store.failure.Store(nil) }

func (s *scene) settle() {
	s.t.Helper()
	for _, r := range s.replicas {
		for _, tenant := range r.local.Debtors(100) {
			_, _, err := r.local.Settle(context.Background(), tenant)
			require.NoError(s.t, err)
		}
		require.Zero(s.t, r.local.Owing())
	}
}

// settleAll settles what takes more than one call of a tenant, too.
func (s *scene) settleAll() {
	s.t.Helper()
	for _, r := range s.replicas {
		for r.local.Owing() > 0 {
			for _, tenant := range r.local.Debtors(100) {
				_, _, err := r.local.Settle(context.Background(), tenant)
				require.NoError(s.t, err)
			}
		}
	}
}

func (s *scene) remaining(buckets ...bucket.Bucket) int64 {
	s.t.Helper()
	states, err := s.store.Peek(context.Background(), "acme", buckets)
	require.NoError(s.t, err)
	return states[0].Remaining
}

func localLimit(capacity int64, window bucket.WindowKind) bucket.Limit {
	limit := bucket.Limit{Name: "minute", Capacity: capacity, Period: time.Minute, FailMode: bucket.FailLocal}
	if window != bucket.TokenBucket {
		limit.Window = bucket.Window{Kind: window}
	}
	if limit.Window.Kind.Calendar() {
		limit.Period = 0
	}
	return limit
}
