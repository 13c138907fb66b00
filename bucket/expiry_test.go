package bucket_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// TestAKeyThatExpiresWhileItIsTakenFromNeverFillsABucketTwice lets the key of an owner expire every few
// milliseconds, under takes that come all the time.
func TestAKeyThatExpiresWhileItIsTakenFromNeverFillsABucketTwice(t *testing.T) {
	t.Parallel()
	client := patientClient(t, redistest.Start(t).Addr)
	for name, limit := range map[string]bucket.Limit{
		"token":   {Name: "limit", Capacity: 3, Period: 3 * time.Millisecond},
		"sliding": {Name: "limit", Capacity: 3, Period: 3 * time.Millisecond, Window: bucket.Window{Kind: bucket.SlidingWindow}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := newRedisStore(t, client)
			buckets := []bucket.Bucket{{Limits: compile(t, limit)}}
			var mu sync.Mutex
			var history []admission
			var callers sync.WaitGroup
			stop := time.Now().Add(*envelopeTime)
			expired := 0
			for range 2 {
				callers.Go(func() {
					for time.Now().Before(stop) {
						result, err := store.Take(context.Background(), bucket.Take{Tenant: t.Name(), Buckets: buckets, Amounts: points(2)})
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						if result.Verdict == bucket.Admitted {
							history = append(history, admission{at: bucket.TakenAt(result.Receipt), amount: 2})
						}
						if result.Limits[0].Remaining == 1 && result.Limits[0].Charged == 2 {
							// It was full: the key had expired.
							expired++
						}
						mu.Unlock()
					}
				})
			}
			callers.Wait()
			require.NotZero(t, expired)
			sortHistory(history)
			require.LessOrEqual(t, steepest(history, 3, 3), int64(9))
		})
	}
}

func TestTheMarkerOfASettlementLivesUntilItsReceiptIsTooOld(t *testing.T) {
	t.Parallel()
	ctx, client := context.Background(), patientClient(t, redistest.Start(t).Addr)
	store := newRedisStore(t, client)
	buckets := []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "day", Capacity: 100, Period: 24 * time.Hour})}}
	result, err := store.Take(ctx, bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(10)})
	require.NoError(t, err)
	before, err := client.Time(ctx).Result()
	require.NoError(t, err)
	settled, err := store.Settle(ctx, bucket.Settlement{Receipt: result.Receipt, Actual: points(1)})
	require.NoError(t, err)
	require.True(t, settled.Applied)
	keys, err := client.Keys(ctx, "*").Result()
	require.NoError(t, err)
	require.Len(t, keys, 2, "the owner and the marker")
	for _, key := range keys {
		if key != store.BucketKey("acme", bucket.Owner{}) {
			until, err := client.PExpireTime(ctx, key).Result()
			require.NoError(t, err)
			require.GreaterOrEqual(t, until.Milliseconds()-before.UnixMilli(), maxReceiptAge.Milliseconds())
		}
	}
}
