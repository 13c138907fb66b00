package bucket_test

import (
	"fmt"
	"strconv"
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

func TestWhoComesWithLittleIntoAFullMemoryDoesNotGiveWayToWhoFillsIt(t *testing.T) {
	t.Parallel()
	const many, few = 10_000, 800
	store := bucket.NewMemory(bucket.MemoryConfig{MaxBytes: 1 << 20})
	limits := compile(t, bucket.Limit{Name: "day", Capacity: 10, Period: 24 * time.Hour})
	take := func(tenant string, i int) int64 {
		owner := bucket.Owner{Level: bucket.User, Name: strconv.Itoa(i)}
		result, err := store.Take(t.Context(), bucket.Take{Tenant: tenant, Buckets: []bucket.Bucket{{Owner: owner, Limits: limits}}, Amounts: points(1)})
		require.NoError(t, err)
		return result.Limits[0].Remaining
	}
	for i := range many {
		take("attacker", i)
	}
	victim := neighbour(store, "attacker")
	for i := range few {
		take(victim, i)
	}
	left := 0
	for i := range few {
		if take(victim, i) == 8 {
			left++
		}
	}
	require.GreaterOrEqual(t, left, few*9/10, "a sample can tell the two apart but for chance")
	require.Greater(t, store.Evicted(), uint64(few))
}
