package bucket_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// spend takes a point of as many tenants, each of which then lacks it for a day.
func spend(t *testing.T, store *bucket.Memory, name string, tenants int) {
	t.Helper()
	limits := compile(t, bucket.Limit{Name: "day", Capacity: 1, Period: 24 * time.Hour})
	for i := range tenants {
		_, err := store.Take(t.Context(), bucket.Take{
			Tenant: fmt.Sprint(name, i), Buckets: []bucket.Bucket{{Limits: limits}}, Amounts: points(1),
		})
		require.NoError(t, err)
	}
}

func TestAMemoryCountsTheBudgetsThatItForgetsBeforeTheyAreFull(t *testing.T) {
	t.Parallel()
	c := newClock()
	store := bucket.NewMemory(bucket.MemoryConfig{MaxEntries: 400, Clock: c.now})
	// A quarter of the room is for records.
	const room = 300
	spend(t, store, "early", room)
	require.Zero(t, store.Evicted())
	spend(t, store, "late", 7)
	require.EqualValues(t, 7, store.Evicted())

	// A budget that is full again is no loss, whoever makes room for another.
	c.ms.Add((25 * time.Hour).Milliseconds())
	spend(t, store, "tomorrow", 7)
	require.EqualValues(t, 7, store.Evicted())
}

func TestRecordsThatMakeRoomAreNoBudgets(t *testing.T) {
	t.Parallel()
	store := bucket.NewMemory(bucket.MemoryConfig{MaxEntries: 16})
	for i := range 100 {
		claim := &idempotency.Claim{Key: idempotency.Key(fmt.Sprintf("record-%06d", i)), Attempt: idempotency.NewAttemptID()}
		_, err := store.Take(t.Context(), bucket.Take{Tenant: "acme", Claim: claim})
		require.NoError(t, err)
	}
	require.Zero(t, store.Evicted())
}
