package backend_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
	"github.com/gqlgen-ratelimit/ratelimit/internal/fleet"
)

// Otherwise each of several regions whose stores are away would admit what all of them may.
func TestAnInstanceOfARegionWhoseStoreIsAwayAdmitsNoMoreThanItsPartOfTheShareOfTheRegion(t *testing.T) {
	t.Parallel()
	region, err := bucket.NewRegional(bucket.NewMemory(bucket.MemoryConfig{}), bucket.NewMemory(bucket.MemoryConfig{}),
		bucket.RegionalConfig{Region: "eu", Shares: map[string]int{"eu": 30, "us": 30}})
	require.NoError(t, err)
	stores, err := backend.New(backend.Config{
		Stores: map[string]bucket.Store{"": region}, Local: fleet.Config{Instances: 1, Percent: 50}, MaxWaiting: 10,
		Logger: slog.New(slog.DiscardHandler), Watcher: &settlements{results: map[string]int{}},
	})
	require.NoError(t, err)
	limits := compile(t, bucket.Limit{Name: "month", Capacity: 1000, Period: 30 * 24 * time.Hour, FailMode: bucket.FailLocal})
	take := bucket.Take{Tenant: "acme", Buckets: []bucket.Bucket{{Limits: limits}}, Amounts: points(0)}
	_, err = stores.Named("").Take(t.Context(), &take, &bucket.Result{})
	require.NoError(t, err)
	admitted := int64(0)
	for take.Amounts = points(10); stores.Named("").TakeLocally(&take, bucket.ErrUnavailable).Verdict == bucket.Admitted; admitted += 10 {
		require.Less(t, admitted, int64(1000))
	}
	require.Equal(t, int64(40), admitted, "half of 30 %% of the 300 that were left, in tens")
}
