package bucket_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

func TestWhatNobodyWroteUnderTheKeyOfACountIsNoneAndWhatIsChargedIsCounted(t *testing.T) {
	t.Parallel()
	client := patientClient(t, redistest.Start(t).Addr)
	store := newRedisStore(t, client)
	clock := newClock()
	require.NoError(t, store.SetTestClock(clock.unixMilli))
	limits := compile(t, bucket.Limit{Name: "minute", Capacity: 1000, Period: time.Minute})
	take := bucket.Take{
		Tenant: "acme", Buckets: []bucket.Bucket{{Limits: limits}}, Amounts: points(5),
		Usage: &bucket.Usage{Fields: []bucket.FieldUsage{{Name: "Query.me", Points: 5, Calls: 1}}},
	}
	for _, spoil := range []string{"list", "short"} {
		_, err := store.Take(t.Context(), take)
		require.NoError(t, err)
		keys, err := client.Keys(t.Context(), "*:n2:*").Result()
		require.NoError(t, err)
		require.Len(t, keys, 2)
		for _, key := range keys {
			require.NoError(t, client.Del(t.Context(), key).Err())
			if spoil == "list" {
				require.NoError(t, client.RPush(t.Context(), key, "something else").Err())
			} else {
				require.NoError(t, client.Set(t.Context(), key, "something else", 0).Err())
			}
		}
		for range 2 {
			_, err = store.Take(t.Context(), take)
			require.NoError(t, err, spoil)
		}
		require.Equal(t, map[string]int64{"points": 10, "requests": 0, "pointsQuery.me": 10},
			counted(t, store, "acme", clock.now(), bucket.UsageExact), spoil)
	}
}

func TestACountIsMadeInTheSizeInWhichItStaysSoThatItTakesNoMoreMemoryThanItHas(t *testing.T) {
	t.Parallel()
	client := patientClient(t, redistest.Start(t).Addr)
	store := newRedisStore(t, client)
	clock := newClock()
	require.NoError(t, store.SetTestClock(clock.unixMilli))
	clock.advance(time.Hour - time.Duration(clock.unixMilli()%time.Hour.Milliseconds())*time.Millisecond)
	for range 60 {
		_, err := store.Take(t.Context(), bucket.Take{Tenant: "acme", Amounts: points(5), Usage: &bucket.Usage{}})
		require.NoError(t, err)
		clock.advance(time.Minute)
	}
	keys, err := client.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.Len(t, keys, 1)
	require.EqualValues(t, 940, client.StrLen(t.Context(), keys[0]).Val())
	used, err := client.MemoryUsage(t.Context(), keys[0]).Result()
	require.NoError(t, err)
	require.Less(t, used, int64(1200))
	require.EqualValues(t, 300, counted(t, store, "acme", clock.now(), bucket.UsageExact)["points"])
}
