package backend_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
)

// perHour is a bucket of the tenant, or of another owner, with so many points that come back in an hour.
func perHour(t *testing.T, capacity int64, owner bucket.Owner) bucket.Bucket {
	t.Helper()
	return bucket.Bucket{Owner: owner, Limits: compile(t, bucket.Limit{Name: "hour", Capacity: capacity, Period: time.Hour})}
}

func TestWhoWasRefusedStaysRefusedWithoutTheStoreUntilTheBudgetIsBackWithTime(t *testing.T) {
	t.Parallel()
	g := newGated(t, backend.GateConfig{})
	take := bucket.Take{Tenant: "acme", Buckets: []bucket.Bucket{perHour(t, 3600, bucket.Owner{})}, Amounts: points(600)}
	known := func(n int64) bool {
		take.Amounts = points(n)
		result, known := g.Known(&take)
		if known {
			require.Equal(t, bucket.Limited, result.Verdict)
			require.Positive(t, result.RetryAfter)
		}
		return known
	}
	require.False(t, known(600), "nobody has asked")
	for range 6 {
		require.Equal(t, bucket.Admitted, g.take(take).Verdict)
	}
	require.False(t, known(600), "nobody was refused")
	take.Amounts = points(600)
	require.Equal(t, bucket.Limited, g.take(take).Verdict)
	require.True(t, known(600))
	g.clock.advance(9 * time.Minute)
	require.True(t, known(600), "however old the refusal is")
	require.False(t, known(500), "as much has come back")
	g.clock.advance(time.Minute + time.Second)
	require.False(t, known(600), "it has come back with time")
}

func TestAnAdmissionEndsWhatIsKnownOfAnOlderRefusal(t *testing.T) {
	t.Parallel()
	g := newGated(t, backend.GateConfig{})
	take := bucket.Take{Tenant: "acme", Buckets: []bucket.Bucket{perHour(t, 100, bucket.Owner{})}, Amounts: points(100)}
	g.take(take)
	require.Equal(t, bucket.Limited, g.take(take).Verdict)
	g.clock.advance(2 * time.Second)
	_, known := g.Known(&take)
	require.True(t, known)
	require.NoError(t, g.store.Reset(t.Context(), "acme", take.Buckets), "another replica gives it back")
	require.Equal(t, bucket.Admitted, g.take(take).Verdict, "an old refusal is the ground of none while the store answers")
	_, known = g.Known(&take)
	require.False(t, known)
	require.Zero(t, g.Entries())
}

func TestWhatIsKnownOfATenantRefusesItsUsersWithoutTheStore(t *testing.T) {
	t.Parallel()
	g := newGated(t, backend.GateConfig{})
	tenant := perHour(t, 100, bucket.Owner{})
	user := func(name string) bucket.Take {
		return bucket.Take{
			Tenant: "acme", Amounts: points(100),
			Buckets: []bucket.Bucket{tenant, perHour(t, 1000, bucket.Owner{Level: bucket.User, Name: name})},
		}
	}
	g.take(user("ada"))
	require.Equal(t, bucket.Limited, g.take(user("ada")).Verdict)
	g.clock.advance(time.Minute)
	other := user("bob")
	_, known := g.Known(&other)
	require.True(t, known)
	other.Tenant = "another"
	_, known = g.Known(&other)
	require.False(t, known)
}

func TestAKeyIsToldToComeBackSoonWithoutTheStore(t *testing.T) {
	t.Parallel()
	g := newGated(t, backend.GateConfig{})
	take := bucket.Take{Tenant: "acme", Buckets: []bucket.Bucket{perHour(t, 100, bucket.Owner{})}, Amounts: points(100)}
	g.take(take)
	g.take(take)
	take.Claim = &idempotency.Claim{Subject: "s", Key: "12345678", TTL: time.Hour, Lease: time.Minute}
	result, known := g.Known(&take)
	require.True(t, known)
	require.Equal(t, time.Second, result.RetryAfter, "it may be a repeat that is answered")
}

func TestWhatIsKnownOfOldRefusalsIsBounded(t *testing.T) {
	t.Parallel()
	g := newGated(t, backend.GateConfig{MaxRefusals: 640})
	b := []bucket.Bucket{perHour(t, 1, bucket.Owner{})}
	for i := range 3000 {
		take := bucket.Take{Tenant: fmt.Sprint("tenant", i), Buckets: b, Amounts: points(1)}
		g.take(take)
		g.take(take)
		g.clock.advance(100 * time.Millisecond)
	}
	require.LessOrEqual(t, g.Entries(), 640)
	require.Positive(t, g.Entries())
}

func TestWhatATenantIsChargedForItsShareIsNoReasonToAdmitMoreWithoutTheStore(t *testing.T) {
	t.Parallel()
	g := newGated(t, backend.GateConfig{})
	take := bucket.Take{Tenant: "acme", Buckets: []bucket.Bucket{perHour(t, 100, bucket.Owner{})}, Amounts: points(100)}
	g.take(take)
	require.Equal(t, bucket.Limited, g.take(take).Verdict)
	require.Zero(t, g.asked(func() { g.take(take) }))
	g.Doubt("acme")
	_, known := g.Known(&take)
	require.True(t, known)
	require.EqualValues(t, 1, g.asked(func() { require.Equal(t, bucket.Limited, g.take(take).Verdict) }), "the store is asked while it answers")
	require.Zero(t, g.asked(func() { g.take(take) }))
}
