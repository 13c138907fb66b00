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

// Two regions with a Redis each, and a third Redis as home, which dies. By the clock of this process, nothing is admitted before begin and
// nothing after end.
func TestTwoRegionsOnRealServersKeepTheLimitAndGoOnByTheirSharesWhenHomeDies(t *testing.T) {
	t.Parallel()
	home := redistest.Start(t)
	limits := compile(t, perSecond)
	shares := map[string]int{"eu": 30, "us": 20}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	var mu sync.Mutex
	var admitted int64
	begin := time.Now()
	for region := range shares {
		server := redistest.Start(t)
		for range 2 {
			store, err := bucket.NewRegional(newRedisStore(t, patientClient(t, server.Addr)), newRedisStore(t, patientClient(t, home.Addr)),
				bucket.RegionalConfig{Region: region, Shares: shares, Lease: 2 * time.Second})
			require.NoError(t, err)
			leased := bucket.NewLeased(store, bucket.LeasedConfig{})
			leased.Allow(true)
			running.Go(func() { leased.Run(ctx) })
			running.Go(func() {
				for ctx.Err() == nil {
					result, err := leased.Take(ctx, bucket.Take{
						Tenant: "acme", Buckets: []bucket.Bucket{{Limits: limits}}, Amounts: points(5), Lease: bucket.LeaseAlways,
					})
					// What is not known to have been refused may be charged, and was admitted to nobody.
					if err == nil && result.Verdict == bucket.Admitted {
						mu.Lock()
						admitted += 5
						mu.Unlock()
					}
					time.Sleep(time.Millisecond) //nolint:forbidigo // The servers have a time of their own.
				}
			})
		}
	}
	// phase counts for a while what is admitted, and asks whether all so far is within the limit.
	phase := func(d time.Duration) (int64, time.Duration) {
		mu.Lock()
		was := admitted
		mu.Unlock()
		from := time.Now()
		time.Sleep(d) //nolint:forbidigo // The servers have a time of their own.
		mu.Lock()
		defer mu.Unlock()
		require.LessOrEqual(t, admitted, perSecond.Capacity+int64(time.Since(begin).Seconds()*float64(perSecond.Refill))+1)
		return admitted - was, time.Since(from)
	}
	phase(2 * time.Second)
	full, took := phase(2 * time.Second)
	home.Kill()
	phase(2500 * time.Millisecond)
	alone, tookAlone := phase(2 * time.Second)
	t.Logf("%d points in %v with home, %d in %v without", full, took, alone, tookAlone)
	require.Greater(t, full, int64(took.Seconds()*float64(perSecond.Refill)*0.8))
	// Their shares are half of the limit.
	most := int64(0.5 * (float64(perSecond.Capacity) + tookAlone.Seconds()*float64(perSecond.Refill)))
	require.LessOrEqual(t, alone, most+1)
	require.Greater(t, alone, int64(tookAlone.Seconds()*float64(perSecond.Refill)*0.25))
}
