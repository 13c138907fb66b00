package bucket_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

func TestMemoryIsBoundedWhateverTenantsAreMadeUp(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	const most = 500
	c := newClock()
	store := bucket.NewMemory(bucket.MemoryConfig{Clock: c.now, MaxEntries: most})
	buckets := []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "day", Capacity: 100, Period: 24 * time.Hour})}}
	for i := range 10_000 {
		_, err := store.Take(ctx, bucket.Take{
			Tenant: fmt.Sprint("tenant-", i), Buckets: buckets, Amounts: points(1),
			Claim: &idempotency.Claim{Key: "12345678", Attempt: idempotency.NewAttemptID()},
		})
		require.NoError(t, err)
	}
	// A lock that has nothing to give up lets one call go over.
	require.LessOrEqual(t, store.Entries(), most+2*64)
}

func TestMemoryCountsTheBytesOfAnswers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store := bucket.NewMemory(bucket.MemoryConfig{MaxEntries: 640})
	answer := bytes.Repeat([]byte("x"), 16<<10)
	for i := range 200 {
		claim := &idempotency.Claim{Key: idempotency.Key(fmt.Sprint("key-", i)), Attempt: idempotency.NewAttemptID()}
		_, err := store.Take(ctx, bucket.Take{Tenant: "acme", Claim: claim})
		require.NoError(t, err)
		settled, err := store.Settle(ctx, bucket.Settlement{Claim: &bucket.ClaimSettlement{
			Tenant: "acme", Claim: claim, Outcome: idempotency.Done, Answer: answer,
		}})
		require.NoError(t, err)
		require.True(t, settled.Applied)
	}
	// An answer of 16 KiB takes the room of 64 entries, and its record one.
	require.LessOrEqual(t, store.Entries(), 10)
	require.Positive(t, store.Entries())
}

func TestMemoryEvictsTheOwnerNearestToFull(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := newClock()
	store := bucket.NewMemory(bucket.MemoryConfig{Clock: c.now, MaxEntries: 5})
	user := func(name string) []bucket.Bucket {
		limits := compile(t, bucket.Limit{Name: "day", Capacity: 100, Period: 24 * time.Hour})
		return []bucket.Bucket{{Owner: bucket.Owner{Level: bucket.User, Name: name}, Limits: limits}}
	}
	for _, name := range []string{"spent-1", "spent-2", "spent-3"} {
		_, err := store.Take(ctx, bucket.Take{Tenant: "acme", Buckets: user(name), Amounts: points(90)})
		require.NoError(t, err)
	}
	for i := range 50 {
		_, err := store.Take(ctx, bucket.Take{Tenant: "acme", Buckets: user(fmt.Sprint("light-", i)), Amounts: points(1)})
		require.NoError(t, err)
	}
	for _, name := range []string{"spent-1", "spent-2", "spent-3"} {
		states, err := store.Peek(ctx, "acme", user(name))
		require.NoError(t, err)
		require.EqualValues(t, 10, states[0].Remaining, name)
	}
}

func TestMemoryChargesAnOwnerThatMadeRoomForAnotherOfItsCall(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	// There is room for one bucket, so that the second owner of the call has to give way to the first
	// after its debts were read.
	store := bucket.NewMemory(bucket.MemoryConfig{Clock: newClock().now, MaxEntries: 2})
	day := bucket.Limit{Name: "day", Capacity: 100, Period: 24 * time.Hour}
	hour := bucket.Limit{Name: "hour", Capacity: 100, Period: time.Hour}
	ann := bucket.Owner{Level: bucket.User, Name: "ann"}
	both := []bucket.Bucket{{Owner: ann, Limits: compile(t, day, hour)}}
	one := []bucket.Bucket{{Limits: compile(t, day)}, {Owner: ann, Limits: compile(t, day)}}
	for _, buckets := range [][]bucket.Bucket{both, one} {
		result, err := store.Take(ctx, bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(30)})
		require.NoError(t, err)
		require.Equal(t, bucket.Admitted, result.Verdict)
	}
	states, err := store.Peek(ctx, "acme", both)
	require.NoError(t, err)
	require.EqualValues(t, 40, states[0].Remaining)
	require.EqualValues(t, 70, states[1].Remaining, "a limit that the second call did not know")
}

func TestMemoryForgetsWhatHasExpiredWithoutAGoroutine(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := newClock()
	store := bucket.NewMemory(bucket.MemoryConfig{Clock: c.now})
	buckets := []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "second", Capacity: 100, Period: time.Second})}}
	for i := range 1000 {
		_, err := store.Take(ctx, bucket.Take{Tenant: fmt.Sprint("tenant-", i), Buckets: buckets, Amounts: points(100)})
		require.NoError(t, err)
	}
	require.Equal(t, 1000, store.Entries())
	c.advance(time.Second)
	for i := range 2000 {
		_, err := store.Peek(ctx, fmt.Sprint("other-", i), buckets)
		require.NoError(t, err)
	}
	require.Zero(t, store.Entries())
}

func TestMemoryAdmitsTheCapacityToManyGoroutines(t *testing.T) {
	t.Parallel()
	c := newClock()
	store := bucket.NewMemory(bucket.MemoryConfig{Clock: c.now})
	buckets := []bucket.Bucket{{Limits: fourLimits(t, 1000)}}
	var group sync.WaitGroup
	admitted := make([]int, 64)
	for i := range admitted {
		group.Go(func() {
			for range 100 {
				result, err := store.Take(context.Background(), bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(3)})
				if err == nil && result.Verdict == bucket.Admitted {
					admitted[i]++
				}
			}
		})
	}
	group.Wait()
	total := 0
	for _, n := range admitted {
		total += n
	}
	require.Equal(t, 1000/3, total)
}

func TestAStoreWithoutAClockKeepsTheTimeOfTheSystem(t *testing.T) {
	t.Parallel()
	store := bucket.NewMemory(bucket.MemoryConfig{})
	limits := compile(t, bucket.Limit{Name: "limit", Capacity: 1_000_000, Period: time.Hour, Window: bucket.Window{Kind: bucket.FixedWindow}})
	// The clock is read anew after some milliseconds; this goes on for longer.
	for start := time.Now(); time.Since(start) < 30*time.Millisecond; {
		tenant := fmt.Sprint(rand.Uint64())
		before := time.Now().UnixMilli()
		result, err := store.Take(context.Background(), bucket.Take{Tenant: tenant, Buckets: []bucket.Bucket{{Limits: limits}}, Amounts: points(1)})
		after := time.Now().UnixMilli()
		require.NoError(t, err)
		opened := result.Limits[0].WindowEnd - time.Hour.Milliseconds()
		// A millisecond for what the two halves of the clock may be apart.
		require.GreaterOrEqual(t, opened, before-1)
		require.LessOrEqual(t, opened, after+1)
	}
}

func TestEachCallOfAMemoryOfNegativeSizeSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	store := bucket.NewMemory(bucket.MemoryConfig{MaxEntries: -1})
	_, err := store.Take(t.Context(), bucket.Take{Tenant: "acme", Buckets: tenPerSecond(t), Amounts: points(1)})
	require.ErrorIs(t, err, bucket.ErrInvalid)
	require.ErrorContains(t, err, "MaxEntries is -1")
	_, err = store.ListOverrides(t.Context(), "acme")
	require.ErrorIs(t, err, bucket.ErrInvalid)
}
