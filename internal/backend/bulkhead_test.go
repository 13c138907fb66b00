package backend_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
)

// stuckStore lets no call of one tenant return before it is released.
type stuckStore struct {
	*bucket.Memory

	tenant   string
	entered  chan struct{}
	released chan struct{}
	// stuck is how many calls are in it, and most how many there were at once.
	mu          sync.Mutex
	stuck, most int
}

func newStuckStore(tenant string) *stuckStore {
	return &stuckStore{
		Memory: bucket.NewMemory(bucket.MemoryConfig{}), tenant: tenant,
		entered: make(chan struct{}, 1000), released: make(chan struct{}),
	}
}

func (s *stuckStore) wait(tenant string) {
	if tenant != s.tenant {
		return
	}
	s.count(1)
	s.entered <- struct{}{}
	<-s.released
	s.count(-1)
}

func (s *stuckStore) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stuck += n
	s.most = max(s.most, s.stuck)
}

func (s *stuckStore) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	s.wait(take.Tenant)
	return s.Memory.Take(ctx, take)
}

func (s *stuckStore) Renew(ctx context.Context, tenant string, claim *idempotency.Claim) (bool, error) {
	s.wait(tenant)
	return s.Memory.Renew(ctx, tenant, claim)
}

func TestATenantWhoseCallsAreStuckTakesNoMoreThanItsShareOfThem(t *testing.T) {
	t.Parallel()
	const share = 4
	store := newStuckStore("slow")
	gate := backend.NewGate(store, backend.GateConfig{MaxConcurrent: share, RefusalAge: backend.None})
	buckets := tenPerSecond(t)
	take := func(tenant string) error {
		_, err := ask(gate, context.Background(), bucket.Take{Tenant: tenant, Buckets: buckets, Amounts: points(1)})
		return err
	}

	var calls sync.WaitGroup
	for range share {
		calls.Go(func() { _ = take("slow") })
		<-store.entered
	}
	for range 100 {
		err := take("slow")
		require.ErrorIs(t, err, backend.ErrTenantBusy)
		require.NotErrorIs(t, err, bucket.ErrUnavailable, "no fail mode may make it a free pass")
		require.NoError(t, take("quick"), "other tenants are not held up")
	}

	// What was admitted goes on: its claim is renewed and settled.
	claim := newClaim("in-flight-1")
	calls.Go(func() { _, _ = gate.Renew(context.Background(), "slow", claim) })
	<-store.entered
	_, err := gate.Settle(t.Context(), bucket.Settlement{Claim: &bucket.ClaimSettlement{
		Tenant: "slow", Claim: claim, Outcome: idempotency.Done,
	}})
	require.NoError(t, err)

	close(store.released)
	calls.Wait()
	require.Equal(t, share+1, store.most)
	require.NoError(t, take("slow"), "places come back")
	require.Zero(t, gate.UnderWay())
}

func TestABusyTenantIsNotRememberedAsRefused(t *testing.T) {
	t.Parallel()
	store := newStuckStore("slow")
	gate := backend.NewGate(store, backend.GateConfig{MaxConcurrent: 1})
	take := bucket.Take{Tenant: "slow", Buckets: tenPerSecond(t), Amounts: points(1)}
	var first sync.WaitGroup
	first.Go(func() { _, _ = ask(gate, context.Background(), take) })
	<-store.entered
	_, err := ask(gate, t.Context(), take)
	require.ErrorIs(t, err, backend.ErrTenantBusy)
	close(store.released)
	first.Wait()
	result, err := ask(gate, t.Context(), take)
	require.NoError(t, err)
	require.Equal(t, bucket.Admitted, result.Verdict)
}

// TestOneTakeAsksAgainWhileTheOthersAreRefused holds the take that renews a refusal back in the store.
func TestOneTakeAsksAgainWhileTheOthersAreRefused(t *testing.T) {
	t.Parallel()
	c := newClock()
	store := newStuckStore("stuck")
	store.Memory = bucket.NewMemory(bucket.MemoryConfig{Clock: c.now})
	gate := backend.NewGate(store, backend.GateConfig{Clock: c.now})
	hour := []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "hour", Capacity: 10, Period: time.Hour})}}
	take := bucket.Take{Tenant: "stuck", Buckets: hour, Amounts: points(10)}
	let := func() verdict {
		done := make(chan verdict)
		go func() {
			result, _ := ask(gate, context.Background(), take)
			done <- result
		}()
		<-store.entered
		store.released <- struct{}{}
		return <-done
	}
	require.Equal(t, bucket.Admitted, let().Verdict)
	require.Equal(t, bucket.Limited, let().Verdict)

	c.advance(backend.DefaultRefusalAge / 2)
	renewed := make(chan verdict)
	go func() {
		result, _ := ask(gate, context.Background(), take)
		renewed <- result
	}()
	<-store.entered
	for range 100 {
		result, err := ask(gate, t.Context(), take)
		require.NoError(t, err)
		require.Equal(t, backend.FromMemory, result.Origin)
	}
	store.released <- struct{}{}
	require.Equal(t, backend.FromStore, (<-renewed).Origin)
	result, err := ask(gate, t.Context(), take)
	require.NoError(t, err)
	require.Equal(t, backend.FromMemory, result.Origin)
}

// TestBudgetThatComesBackBehindARefusalIsNotForgotten resets a bucket while a refusal is on its way back.
func TestBudgetThatComesBackBehindARefusalIsNotForgotten(t *testing.T) {
	t.Parallel()
	store := newLateStore()
	gate := backend.NewGate(store, backend.GateConfig{})
	hour := []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "hour", Capacity: 10, Period: time.Hour})}}
	take := bucket.Take{Tenant: "acme", Buckets: hour, Amounts: points(10)}
	_, err := ask(gate, t.Context(), take)
	require.NoError(t, err)
	store.behind = func() {
		require.NoError(t, store.Reset(context.Background(), "acme", hour))
		gate.Forget("acme")
	}
	result, err := ask(gate, t.Context(), take)
	require.NoError(t, err)
	require.Equal(t, bucket.Limited, result.Verdict)
	store.behind = func() {}
	result, err = ask(gate, t.Context(), take)
	require.NoError(t, err)
	require.Equal(t, bucket.Admitted, result.Verdict)
}

// lateStore does something else after it has judged a take and before it answers.
type lateStore struct {
	*bucket.Memory

	behind func()
}

func newLateStore() *lateStore {
	return &lateStore{Memory: bucket.NewMemory(bucket.MemoryConfig{}), behind: func() {}}
}

func (s *lateStore) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	result, err := s.Memory.Take(ctx, take)
	s.behind()
	return result, err
}
