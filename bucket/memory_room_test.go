package bucket_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// fourSlow are four token buckets whose debts last for days.
func fourSlow(t *testing.T) []bucket.Bucket {
	t.Helper()
	var limits []bucket.Limit
	for _, name := range []string{"a", "b", "c", "d"} {
		limits = append(limits, bucket.Limit{Name: name, Capacity: 1000, Refill: 1, Period: time.Hour})
	}
	return []bucket.Bucket{{Limits: compile(t, limits...)}}
}

// It measures the heap of the process, so that no other test runs beside it.
func TestAHundredThousandTenantsTake128BytesEachAndFewObjects(t *testing.T) {
	const tenants = 100_000
	take := bucket.Take{Buckets: fourSlow(t), Amounts: points(1), States: make([]bucket.LimitState, 4)}
	names := newTenantNames(tenants)
	bytes, objects := heap()
	store := bucket.NewMemory(bucket.MemoryConfig{Clock: newClock().now})
	for i := range tenants {
		take.Tenant = names.name(i)
		_, err := store.Take(t.Context(), take)
		require.NoError(t, err)
	}
	bytesAfter, objectsAfter := heap()
	require.Equal(t, tenants, store.Entries())
	each := float64(bytesAfter-bytes) / tenants
	t.Logf("%.1f bytes and %.4f objects for each", each, float64(objectsAfter-objects)/tenants)
	require.LessOrEqual(t, each, 128.0)
	// Each had two. A block doubles with the entries, and a leaf has some hundred.
	require.Less(t, objectsAfter-objects, int64(tenants/20))
}

// No other test runs beside this one either.
func TestAMemoryTakesTheBytesThatItMayWhateverNamesAndAnswersAreMadeUp(t *testing.T) {
	const most = 8 << 20
	random, buckets := rand.New(rand.NewPCG(7, 8)), fourSlow(t)
	limits := buckets[0].Limits
	before, _ := heap()
	store := bucket.NewMemory(bucket.MemoryConfig{Clock: newClock().now, MaxBytes: most, MaxEntries: 10_000_000})
	name := func(i int) string { return fmt.Sprint(i) + strings.Repeat("n", random.IntN(100)) }
	for i := range 20_000 {
		take := bucket.Take{
			Tenant: name(i), Buckets: []bucket.Bucket{{Limits: limits}, {Owner: bucket.Owner{Level: bucket.User, Name: name(i)}, Limits: limits}},
			Amounts: points(1),
		}
		if i%4 == 0 {
			take.Claim = &idempotency.Claim{Key: idempotency.Key(fmt.Sprintf("key-%06d", i)), Attempt: idempotency.NewAttemptID()}
		}
		if i%7 == 0 {
			take.Candidate = &bucket.Candidate{ID: strings.Repeat("c", 64), Buckets: take.Buckets}
		}
		_, err := store.Take(t.Context(), take)
		require.NoError(t, err)
		if take.Claim != nil {
			_, err = store.Settle(t.Context(), bucket.Settlement{Claim: &bucket.ClaimSettlement{
				Tenant: take.Tenant, Claim: take.Claim, Outcome: idempotency.Done, Answer: make([]byte, random.IntN(20_000)),
			}})
			require.NoError(t, err)
		}
	}
	require.Positive(t, store.Evicted())
	after, _ := heap()
	t.Logf("%d entries take %d bytes", store.Entries(), after-before)
	// Of each size and shard a page may be used in part.
	const pages = 3 << 20
	require.LessOrEqual(t, after-before, int64(most+pages))
	require.GreaterOrEqual(t, after-before, int64(most/2), "room that is there is used")
}

func TestWhatHasExpiredGivesItsBytesBackThoughItsTenantsNeverComeAgain(t *testing.T) {
	c := newClock()
	store := bucket.NewMemory(bucket.MemoryConfig{Clock: c.now})
	take := bucket.Take{Buckets: fourSlow(t), Amounts: points(1)}
	before, _ := heap()
	for i := range 20_000 {
		take.Tenant = fmt.Sprint("tenant-", i)
		_, err := store.Take(t.Context(), take)
		require.NoError(t, err)
	}
	full, _ := heap()
	c.advance(2 * time.Hour)
	for range 80_000 {
		take.Tenant = "the only one"
		_, err := store.Take(t.Context(), take)
		require.NoError(t, err)
	}
	require.Equal(t, 1, store.Entries())
	after, _ := heap()
	t.Logf("%d bytes of %d are left", after-before, full-before)
	require.Less(t, after-before, (full-before)/5)
	require.Zero(t, store.Evicted())
}

func TestAFullBudgetMakesRoomBeforeThoseOfTheTenantWithMost(t *testing.T) {
	t.Parallel()
	c := newClock()
	// There is room for nine owners.
	store := bucket.NewMemory(bucket.MemoryConfig{Clock: c.now, MaxEntries: 11})
	few := "few-0"
	for i := 1; store.ShardOf(few) != store.ShardOf("many"); i++ {
		few = fmt.Sprint("few-", i)
	}
	users := func(tenant string, n int, period time.Duration) {
		limits := compile(t, bucket.Limit{Name: "limit", Capacity: 1, Period: period})
		for i := range n {
			_, err := store.Take(t.Context(), bucket.Take{
				Tenant: tenant, Buckets: []bucket.Bucket{{Owner: bucket.Owner{Level: bucket.User, Name: fmt.Sprint(i)}, Limits: limits}}, Amounts: points(1),
			})
			require.NoError(t, err)
		}
	}
	users("many", 5, 24*time.Hour)
	users(few, 4, time.Second)
	c.advance(2 * time.Second)
	users("new", 4, time.Hour)
	require.Zero(t, store.Evicted(), "of what made room all was full")
}

func TestAnswersOfAnySizeAreReplayedAsTheyWereStored(t *testing.T) {
	t.Parallel()
	store := bucket.NewMemory(bucket.MemoryConfig{Clock: newClock().now})
	random := rand.New(rand.NewPCG(9, 10))
	claims, answers := map[int]*idempotency.Claim{}, map[int][]byte{}
	for i := range 5000 {
		n := random.IntN(300)
		if claim := claims[n]; claim != nil {
			again := *claim
			again.Attempt = idempotency.NewAttemptID()
			result, err := store.Take(t.Context(), bucket.Take{Tenant: "acme", Claim: &again})
			require.NoError(t, err)
			require.Equal(t, bucket.Replayed, result.Verdict)
			require.Equal(t, answers[n], result.Answer)
		}
		// The record of another key is put into the place of one that is gone.
		claim := &idempotency.Claim{Key: idempotency.Key(fmt.Sprintf("key-%06d", i)), Attempt: idempotency.NewAttemptID()}
		_, err := store.Take(t.Context(), bucket.Take{Tenant: "acme", Claim: claim})
		require.NoError(t, err)
		outcome := idempotency.Done
		if i%3 == 0 {
			outcome = idempotency.Released
		} else {
			claims[n], answers[n] = claim, make([]byte, 1+random.IntN(4096))
			for j := range answers[n] {
				answers[n][j] = byte(random.Uint32())
			}
		}
		_, err = store.Settle(t.Context(), bucket.Settlement{Claim: &bucket.ClaimSettlement{
			Tenant: "acme", Claim: claim, Outcome: outcome, Answer: answers[n],
		}})
		require.NoError(t, err)
	}
}

func TestOverrideRecordsHaveABoundInBytes(t *testing.T) {
	t.Parallel()
	store := bucket.NewMemory(bucket.MemoryConfig{MaxBytes: 1 << 20})
	set := func(i int) error {
		_, err := store.SetOverride(t.Context(), fmt.Sprint("tenant-", i), bucket.Override{
			Blocked: true, Reason: strings.Repeat("r", 200), Actor: "a",
		})
		return err
	}
	n := 0
	for set(n) == nil {
		n++
	}
	require.ErrorIs(t, set(n), bucket.ErrOverridesFull)
	// An eighth of a MiB, of 300 to 500 bytes each.
	require.InDelta(t, 350, n, 100)
	_, err := store.ClearOverrides(t.Context(), "tenant-0")
	require.NoError(t, err)
	require.NoError(t, set(n))
}

func TestEveryMistakeInTheSizeOfAMemoryIsToldAtOnce(t *testing.T) {
	t.Parallel()
	store := bucket.NewMemory(bucket.MemoryConfig{MaxEntries: -5, MaxBytes: 1000})
	_, err := store.Take(t.Context(), bucket.Take{Tenant: "acme", Buckets: tenPerSecond(t), Amounts: points(1)})
	require.ErrorIs(t, err, bucket.ErrInvalid)
	require.ErrorContains(t, err, "MaxEntries is -5")
	require.ErrorContains(t, err, "MaxBytes is 1000; 1048576 or more fits")
}

// TestAnOwnerIsChargedThatMovedBecauseAnotherOfItsTakeHadExpired has the first entry of a slab expire, whose place the last one takes
// after it was found.
func TestAnOwnerIsChargedThatMovedBecauseAnotherOfItsTakeHadExpired(t *testing.T) {
	t.Parallel()
	c := newClock()
	store := bucket.NewMemory(bucket.MemoryConfig{Clock: c.now})
	day := compile(t, bucket.Limit{Name: "day", Capacity: 100, Period: 24 * time.Hour})
	second := compile(t, bucket.Limit{Name: "second", Capacity: 100, Period: time.Second})
	team := bucket.Bucket{Owner: bucket.Owner{Level: bucket.Team, Name: "ops"}, Limits: day}
	user := bucket.Bucket{Owner: bucket.Owner{Level: bucket.User, Name: "ann"}, Limits: second}
	take := func(buckets ...bucket.Bucket) {
		result, err := store.Take(t.Context(), bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(10)})
		require.NoError(t, err)
		require.Equal(t, bucket.Admitted, result.Verdict)
	}
	take(user)
	take(team)
	// What is due to be looked at has been, so that the take itself finds what has expired.
	take(team)
	c.advance(2 * time.Second)
	take(team, user)
	states, err := store.Peek(t.Context(), "acme", []bucket.Bucket{team, user})
	require.NoError(t, err)
	require.EqualValues(t, 70, states[0].Remaining)
	require.EqualValues(t, 90, states[1].Remaining)
}
