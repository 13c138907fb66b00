package bucket_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// tokenBuckets are token buckets of one unit each or of points, of numbers that fit a state of one date if they are small.
func tokenBuckets(t *testing.T, random *rand.Rand, small bool) *bucket.Limits {
	t.Helper()
	var limits []bucket.Limit
	for i := range 1 + random.IntN(4) {
		limit := bucket.Limit{Name: strconv.Itoa(i), Capacity: 1 + random.Int64N(50), Period: time.Duration(1+random.IntN(1000)) * time.Millisecond}
		if !small {
			limit.Refill, limit.Period = 1_000_003, 24*time.Hour
		}
		if random.IntN(4) == 0 {
			limit.Unit = bucket.Requests
		}
		if random.IntN(4) == 0 {
			limit.Mode = bucket.Shadow
		}
		limits = append(limits, limit)
	}
	return compile(t, limits...)
}

func TestTheFastTakeOfAMemoryAnswersAndStoresWhatTheGeneralOneDoes(t *testing.T) {
	t.Parallel()
	random, c := rand.New(rand.NewPCG(1, 2)), newClock()
	fast, general := bucket.NewMemory(bucket.MemoryConfig{Clock: c.now}), bucket.NewMemory(bucket.MemoryConfig{Clock: c.now})
	const calls = 20_000
	done, refused := 0, 0
	var buckets []bucket.Bucket
	for i := range calls {
		if i%100 == 0 {
			buckets = []bucket.Bucket{
				{Limits: tokenBuckets(t, random, i%300 > 0)},
				{Owner: bucket.Owner{Level: bucket.User, Name: "ann"}, Limits: tokenBuckets(t, random, i%200 > 0)},
			}
		}
		c.ms.Add(random.Int64N(200))
		if random.IntN(100) == 0 {
			c.ms.Add(-random.Int64N(10_000))
		}
		take := bucket.Take{Tenant: strconv.Itoa(i / 300), Buckets: buckets[:1+random.IntN(2)], Amounts: points(random.Int64N(4))}
		if random.IntN(2) == 0 {
			take.Amounts = append(take.Amounts, bucket.Amount{Unit: bucket.Requests, N: 1})
		}
		is, ok := fast.TakeFast(take)
		var err error
		if ok {
			if done++; is.Verdict != bucket.Admitted {
				refused++
			}
		} else {
			is, err = fast.Take(t.Context(), take)
			require.NoError(t, err)
		}
		want, err := general.TakeByCall(t.Context(), take)
		require.NoError(t, err)
		require.Equal(t, want.Verdict, is.Verdict)
		require.Equal(t, want.Limits, is.Limits)
		require.Equal(t, want.Receipt.IsZero(), is.Receipt.IsZero())
		// To look at what has expired forgets it, so that a clock that is set back finds the same in both.
		for _, b := range buckets {
			require.Equal(t, general.StoredBytes(take.Tenant, b.Owner), fast.StoredBytes(take.Tenant, b.Owner), "call %d", i)
		}
	}
	t.Logf("%d of %d takes were fast ones, and %d of these refused", done, calls, refused)
	require.Greater(t, done-refused, calls/4)
	require.Greater(t, refused, calls/20)
}

func TestATakeOfABudgetThatIsFullAgainAllocatesNothing(t *testing.T) { //nolint:paralleltest // It counts what the process allocates.
	const most = 1_000_000_000
	large := []bucket.Limit{
		{Name: "second", Capacity: most, Period: time.Second},
		{Name: "minute", Capacity: most, Period: time.Minute},
		{Name: "hour", Capacity: most, Period: time.Hour},
		{Name: "requests", Unit: bucket.Requests, Capacity: most, Period: time.Second},
	}
	for _, test := range []struct {
		name   string
		limits []bucket.Limit
	}{
		{"an entry for each", large},
		{"one that is not asked", append([]bucket.Limit{{Name: "exports", Unit: "exports", Capacity: 5, Period: time.Hour}}, large...)},
		{"one of few points", append([]bucket.Limit{{Name: "few", Capacity: 100, Period: 5 * time.Millisecond}}, large...)},
		{"one date", []bucket.Limit{{Name: "second", Capacity: 20_000, Period: time.Second}, {Name: "few", Capacity: 100, Period: 5 * time.Millisecond}}},
	} {
		c := newClock()
		store := bucket.NewMemory(bucket.MemoryConfig{Clock: c.now})
		take := bucket.Take{
			Tenant: "acme", Buckets: []bucket.Bucket{{Limits: compile(t, test.limits...)}},
			Amounts: bucket.Amounts{{Unit: bucket.Points, N: 12}, {Unit: bucket.Requests, N: 1}}, States: make([]bucket.LimitState, 5),
		}
		for _, apart := range []int64{1, 2, 1000} {
			require.Zero(t, testing.AllocsPerRun(200, func() {
				c.ms.Add(apart)
				result, err := store.Take(t.Context(), take)
				if err != nil || result.Verdict != bucket.Admitted {
					t.Fatal(result.Verdict, err)
				}
			}), "%s, %d ms apart", test.name, apart)
		}
	}
}
