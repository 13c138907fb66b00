package backend_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
)

func TestARefusalIsForeseenUntilItIsTooOld(t *testing.T) {
	t.Parallel()
	c := newGated(t, backend.GateConfig{})
	take := bucket.Take{Tenant: "acme", Buckets: tenPerSecond(t), Amounts: points(10)}
	_, _, known := c.Foresee(t.Context(), &take)
	require.False(t, known, "nobody was refused")
	c.take(take)
	_, _, known = c.Foresee(t.Context(), &take)
	require.False(t, known, "what was admitted is not known to be refused")
	require.Equal(t, bucket.Limited, c.take(take).Verdict)

	require.Zero(t, c.asked(func() {
		for range 100 {
			result, origin, known := c.Foresee(t.Context(), &take)
			require.True(t, known)
			require.Equal(t, bucket.Limited, result.Verdict)
			require.Equal(t, time.Second, result.RetryAfter)
			require.Equal(t, backend.FromMemory, origin)
		}
	}))
	fewer := take
	fewer.Amounts = points(0)
	_, _, known = c.Foresee(t.Context(), &fewer)
	require.False(t, known, "less may pass")
	other := take
	other.Tenant = "globex"
	_, _, known = c.Foresee(t.Context(), &other)
	require.False(t, known)

	c.clock.advance(backend.DefaultRefusalAge)
	_, _, known = c.Foresee(t.Context(), &take)
	require.False(t, known, "the store is to say whether it still holds")
	require.Equal(t, int64(1), c.asked(func() { c.take(take) }), "and foreseeing did not count as asking it")
}

func TestOneUnderAKeyIsForeseenOnceItsCallsAreUsedUp(t *testing.T) {
	t.Parallel()
	c := newGated(t, backend.GateConfig{CappedCalls: 2})
	take := bucket.Take{Tenant: "acme", Buckets: tenPerSecond(t), Amounts: points(10)}
	c.take(take)
	c.take(take)
	take.Claim = &idempotency.Claim{Key: "k"}
	for range 2 {
		_, _, known := c.Foresee(t.Context(), &take)
		require.False(t, known, "it may be a replay")
		require.Equal(t, backend.FromStore, c.take(take).Origin)
	}
	result, origin, known := c.Foresee(t.Context(), &take)
	require.True(t, known)
	require.Equal(t, backend.FromCap, origin)
	require.LessOrEqual(t, result.RetryAfter, time.Second)
}

func TestACallOfSharedBudgetsCountsAsOneOfThePayer(t *testing.T) {
	t.Parallel()
	store := newStuckStore("")
	gate := backend.NewGate(store, backend.GateConfig{MaxConcurrent: 1, RefusalAge: backend.None})
	take := bucket.Take{Buckets: tenPerSecond(t), Amounts: points(1)}
	done := make(chan error, 2)
	for _, payer := range []string{"acme", "globex"} {
		go func() {
			_, _, err := gate.Take(context.Background(), take, backend.Caller{Payer: payer})
			done <- err
		}()
		<-store.entered
	}
	_, origin, err := gate.Take(t.Context(), take, backend.Caller{Payer: "acme"})
	require.ErrorIs(t, err, backend.ErrTenantBusy)
	require.Equal(t, backend.FromBulkhead, origin)
	close(store.released)
	require.NoError(t, <-done)
	require.NoError(t, <-done, "another payer has a bound of its own")
	require.Zero(t, gate.UnderWay())
}
