package bucket_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// slowCounter is a store that takes up to a fifth of a second for each settlement, and does nothing of a third of them.
type slowCounter struct {
	*bucket.Memory
	random *rand.Rand
	well   bool
}

// Settle implements [bucket.Store].
func (s *slowCounter) Settle(ctx context.Context, settlement bucket.Settlement) (bucket.Settled, error) {
	if s.well {
		return s.Memory.Settle(ctx, settlement)
	}
	fails := s.random.IntN(3) == 0
	time.Sleep(time.Duration(s.random.IntN(200)) * time.Millisecond) //nolint:forbidigo // the clock of a synctest bubble
	if fails {
		return bucket.Settled{}, fmt.Errorf("%w: slow", bucket.ErrUnavailable)
	}
	return s.Memory.Settle(ctx, settlement)
}

func TestUsageOfALeasedTenantIsCountedWhoeverTellsASlowStoreMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &slowCounter{Memory: bucket.NewMemory(bucket.MemoryConfig{}), random: rand.New(rand.NewPCG(1, 2))}
		leased := bucket.NewLeased(store, bucket.LeasedConfig{})
		leased.Allow(true)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			leased.Run(ctx)
		}()
		take := bucket.Take{
			Tenant: "acme", Buckets: []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "second", Capacity: 100_000, Refill: 100_000, Period: time.Second})}},
			Amounts: points(10), Lease: bucket.LeaseAlways, Usage: &bucket.Usage{},
		}
		used := int64(0)
		for i := range 20_000 {
			// What is asked for changes, so that beats come early.
			take.Amounts = points(1 + int64(i/20%2)*300)
			result, err := leased.Take(t.Context(), take)
			require.NoError(t, err)
			require.Equal(t, bucket.Admitted, result.Verdict)
			used += take.Amounts[0].N
			time.Sleep(7 * time.Millisecond) //nolint:forbidigo // the clock of a synctest bubble
		}
		store.well = true
		require.NoError(t, leased.Shutdown(t.Context()))
		cancel()
		<-ended
		sum := int64(0)
		// The take that began to lease was counted by the store as it came.
		for _, grade := range []bucket.UsageGrade{bucket.UsageExact, bucket.UsageLocal} {
			sum += counted(t, store, "acme", time.Now(), grade)[string(bucket.Points)]
		}
		require.Equal(t, used, sum)
		require.Zero(t, leased.Stats().Uncounted)
	})
}
