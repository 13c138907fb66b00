package bucket_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

func TestASkewedClientOpensNoWindowOfTheCalendarEarly(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := patientClient(t, redistest.Start(t).Addr)
	day := bucket.Window{Kind: bucket.DayWindow, Zone: "Europe/Berlin"}
	buckets := []bucket.Bucket{{Limits: compile(t,
		bucket.Limit{Name: "day", Capacity: 10, Window: day}, bucket.Limit{Name: "minute", Capacity: 100, Period: time.Minute})}}
	c := newClock()
	store := newRedisStore(t, client)
	require.NoError(t, store.SetTestClock(c.unixMilli))
	result, err := store.Take(ctx, bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(10)})
	require.NoError(t, err)
	want := result.Limits[0].WindowEnd
	for _, skew := range []time.Duration{-72 * time.Hour, -time.Hour, time.Hour, 24 * time.Hour, 366 * 24 * time.Hour} {
		store.SetTestSkew(skew.Milliseconds())
		refused, err := store.Take(ctx, bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(1)})
		require.NoError(t, err, skew)
		require.Equal(t, bucket.Limited, refused.Verdict, skew)
		require.Equal(t, want, refused.Limits[0].WindowEnd, skew)
		states, err := store.Peek(ctx, "acme", buckets)
		require.NoError(t, err, skew)
		require.Equal(t, refused.Limits[0].ResetAfter, states[0].ResetAfter, skew)
		settled, err := store.Settle(ctx, bucket.Settlement{Receipt: result.Receipt, Actual: points(10)})
		require.NoError(t, err, skew)
		require.Equal(t, skew == -72*time.Hour, settled.Applied, "once, and not once a try")
		states, err = store.Grant(ctx, "acme", buckets, points(0))
		require.NoError(t, err, skew)
		require.Equal(t, want, states[0].WindowEnd, skew)
	}
}

func TestTheWindowOfTheCalendarIsThatOfTheServersClock(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := patientClient(t, redistest.Start(t).Addr)
	store := newRedisStore(t, client)
	limits := compile(t, bucket.Limit{Name: "hour", Capacity: 10, Window: bucket.Window{Kind: bucket.HourWindow}})
	for i, skew := range []int64{0, 0, 3_600_000, -3_600_000} {
		store.LearnOffset(skew)
		result, err := store.Take(ctx, bucket.Take{Tenant: "acme", Buckets: []bucket.Bucket{{Limits: limits}}, Amounts: points(1)})
		require.NoError(t, err)
		now, err := client.Time(ctx).Result()
		require.NoError(t, err)
		require.InDelta(t, now.Truncate(time.Hour).Add(time.Hour).UnixMilli(), result.Limits[0].WindowEnd, 3_600_000, "take %d", i)
		require.LessOrEqual(t, result.Limits[0].ResetAfter, time.Hour)
	}
}

func TestAProcessWhoseClockIsWrongSendsTheRightWindowOnceItHasBeenTold(t *testing.T) {
	t.Parallel()
	ctx, client := context.Background(), patientClient(t, redistest.Start(t).Addr)
	limits := compile(t, bucket.Limit{Name: "hour", Capacity: 10, Window: bucket.Window{Kind: bucket.HourWindow}})
	take := bucket.Take{Tenant: "acme", Buckets: []bucket.Bucket{{Limits: limits}}, Amounts: points(1)}
	for i, skew := range []time.Duration{0, 3 * time.Hour, -3 * time.Hour} {
		asked := 0
		store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: patience, Clock: func() time.Time {
			asked++
			return time.Now().Add(skew)
		}})
		require.NoError(t, err)
		for range 3 {
			result, err := store.Take(ctx, take)
			require.NoError(t, err)
			now, err := client.Time(ctx).Result()
			require.NoError(t, err)
			require.InDelta(t, now.Truncate(time.Hour).Add(time.Hour).UnixMilli(), result.Limits[0].WindowEnd, 3_600_000, "process %d", i)
		}
		require.Equal(t, 1, asked)
	}
}

func TestARecordExpiresByTheClockOfTheStore(t *testing.T) {
	t.Parallel()
	ctx, client := context.Background(), patientClient(t, redistest.Start(t).Addr)
	for name, skew := range map[string]int64{"fast": 3_600_000, "slow": -3_600_000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, tenant := newClock(), t.Name()
			store := newRedisStore(t, client)
			require.NoError(t, store.SetTestClock(c.unixMilli))
			store.SetTestSkew(skew)
			_, err := store.SetOverride(ctx, tenant, bucket.Override{
				Limit: "day", Capacity: 1000, Expires: c.now().Add(time.Minute), Reason: "test", Actor: "test",
			})
			require.NoError(t, err)
			take := bucket.Take{
				Tenant: tenant, Amounts: points(1),
				Buckets: []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "day", Capacity: 100, Period: 24 * time.Hour})}},
			}
			for _, step := range []struct{ wait, capacity int64 }{{0, 1000}, {59_999, 1000}, {1, 100}, {-1, 1000}, {3_600_000, 100}} {
				c.ms.Add(step.wait)
				result, err := store.Take(ctx, take)
				require.NoError(t, err)
				require.Equal(t, step.capacity, result.Limits[0].Limit.Capacity, "after %d ms", step.wait)
			}
		})
	}
}
