package backend_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
)

// TestTheGateGivesTheAnswersOfTheStore runs random takes against a bare store and a gated one on one
// clock, where budget comes back by time, and by settlements and grants of which the gate is told.
func TestTheGateGivesTheAnswersOfTheStore(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	kinds := []bucket.WindowKind{bucket.TokenBucket, bucket.FixedWindow, bucket.SlidingWindow, bucket.HourWindow}
	var spared int
	for range 200 {
		c := newGated(t, backend.GateConfig{RefusalAge: time.Duration(1+random.IntN(20)) * 100 * time.Millisecond})
		bare := bucket.NewMemory(bucket.MemoryConfig{Clock: c.clock.now})
		var buckets []bucket.Bucket
		for _, owner := range []bucket.Owner{{}, {Level: bucket.User, Name: "ann"}} {
			limits := make([]bucket.Limit, 1+random.IntN(3))
			for i := range limits {
				limits[i] = randomLimit(random, kinds, i)
			}
			buckets = append(buckets, bucket.Bucket{Owner: owner, Limits: compile(t, limits...)})
		}
		// What takes of other owners were charged is not shown, so that only the verdicts are the same.
		mixed := 1 + random.IntN(2)
		var receipts [][2]bucket.Receipt
		var charged []int64
		for range 60 {
			switch random.IntN(12) {
			case 0:
				c.clock.advance(time.Duration(random.IntN(2000)) * time.Millisecond)
			case 1:
				_, err := c.store.Grant(t.Context(), "acme", buckets, points(3))
				c.Forget("acme")
				require.NoError(t, err)
				_, err = bare.Grant(t.Context(), "acme", buckets, points(3))
				require.NoError(t, err)
			case 2:
				if len(receipts) > 0 {
					both, actual := receipts[0], points(random.Int64N(1+charged[0]))
					receipts, charged = receipts[1:], charged[1:]
					_, err := c.Settle(t.Context(), bucket.Settlement{Receipt: both[0], Actual: actual})
					require.NoError(t, err)
					_, err = bare.Settle(t.Context(), bucket.Settlement{Receipt: both[1], Actual: actual})
					require.NoError(t, err)
				}
			default:
				c.clock.advance(time.Duration(random.IntN(50)) * time.Millisecond)
				take := bucket.Take{Tenant: "acme", Buckets: buckets[random.IntN(mixed):], Amounts: points(random.Int64N(25))}
				want, err := bare.Take(t.Context(), take)
				require.NoError(t, err)
				got := c.take(take)
				if got.Verdict == bucket.Admitted && !got.Receipt.IsZero() {
					receipts = append(receipts, [2]bucket.Receipt{got.Receipt, want.Receipt})
					charged = append(charged, take.Amounts[0].N)
				}
				if got.Origin == backend.FromCap {
					// What it does not know it does not show.
					require.NotEqual(t, bucket.Admitted, want.Verdict)
					spared++
					continue
				}
				if got.Origin == backend.FromMemory {
					spared++
				}
				require.Equal(t, want.Verdict, got.Verdict)
				if got.Origin == backend.FromMemory {
					if mixed == 1 {
						sameStates(t, &want, &got.Result)
					}
					continue
				}
				got.Receipt, want.Receipt = bucket.Receipt{}, bucket.Receipt{}
				require.Equal(t, want, got.Result)
			}
		}
	}
	t.Logf("%d takes did not reach the store", spared)
	require.Greater(t, spared, 1000)
}

// sameStates compares an answer from memory with that of the store: times to the millisecond and amounts to what comes back in
// one. Of a window that slides only what it asked for last is known.
func sameStates(t *testing.T, want, got *bucket.Result) {
	t.Helper()
	require.Len(t, got.Limits, len(want.Limits))
	slides := false
	for i := range want.Limits {
		w, g := &want.Limits[i], &got.Limits[i]
		require.Equal(t, w.Limit, g.Limit)
		require.Equal(t, w.Owner, g.Owner)
		require.Equal(t, w.Asked, g.Asked)
		require.Equal(t, w.Never, g.Never)
		if w.Limit.Window.Kind == bucket.SlidingWindow {
			slides = true
			require.LessOrEqual(t, g.Remaining, w.Remaining)
			continue
		}
		require.InDelta(t, w.Remaining, g.Remaining, 1)
		require.InDelta(t, w.ResetAfter, g.ResetAfter, float64(time.Millisecond))
		require.InDelta(t, w.RetryAfter, g.RetryAfter, float64(time.Millisecond))
	}
	if !slides {
		require.InDelta(t, want.RetryAfter, got.RetryAfter, float64(time.Millisecond))
	}
}

func randomLimit(random *rand.Rand, kinds []bucket.WindowKind, i int) bucket.Limit {
	limit := bucket.Limit{Name: strconv.Itoa(i), Capacity: 5 + random.Int64N(30), Window: bucket.Window{Kind: kinds[random.IntN(len(kinds))]}}
	if !limit.Window.Kind.Calendar() {
		limit.Period = time.Duration(100+random.IntN(3000)) * time.Millisecond
	}
	if limit.Window.Kind == bucket.TokenBucket {
		limit.Refill = 1 + random.Int64N(40)
	}
	switch random.IntN(6) {
	case 0:
		limit.Mode = bucket.Shadow
	case 1:
		limit.Soft = true
	}
	return limit
}
