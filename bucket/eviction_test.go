package bucket_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// limitMemory lets the server use so much more than it does.
func limitMemory(t *testing.T, client *redis.Client, more int, policy string) {
	t.Helper()
	ctx := context.Background()
	info, err := client.InfoMap(ctx, "memory").Result()
	require.NoError(t, err)
	used, err := strconv.Atoi(info["Memory"]["used_memory"])
	require.NoError(t, err)
	require.NoError(t, client.ConfigSet(ctx, "maxmemory-policy", policy).Err())
	require.NoError(t, client.ConfigSet(ctx, "maxmemory", strconv.Itoa(used+more)).Err())
}

func TestAServerThatEvictsMakesBudgetsFullAgain(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := patientClient(t, redistest.Start(t).Addr)
	store := newRedisStore(t, client)
	const tenants = 500
	buckets := []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "day", Capacity: 100, Period: 24 * time.Hour})}}
	for i := range tenants {
		_, err := store.Take(ctx, bucket.Take{Tenant: strconv.Itoa(i), Buckets: buckets, Amounts: points(100)})
		require.NoError(t, err)
	}
	limitMemory(t, client, 1<<20, "allkeys-lru")
	for i := range 1000 {
		require.NoError(t, client.Set(ctx, "cache"+strconv.Itoa(i), strings.Repeat("x", 5000), time.Minute).Err())
	}
	full := 0
	for i := range tenants {
		states, err := store.Peek(ctx, strconv.Itoa(i), buckets)
		require.NoError(t, err)
		if states[0].Remaining == 100 {
			full++
		}
	}
	t.Logf("of %d spent budgets %d were full again", tenants, full)
	require.Positive(t, full)
}

func TestAServerThatIsFullAndEvictsNothingIsUnavailableAndChargesNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := patientClient(t, redistest.Start(t).Addr)
	store := newRedisStore(t, client)
	buckets := []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "day", Capacity: 100, Period: 24 * time.Hour})}}
	take := bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(10)}
	first, err := store.Take(ctx, take)
	require.NoError(t, err)
	before, err := client.Dump(ctx, store.BucketKey("acme", bucket.Owner{})).Result()
	require.NoError(t, err)

	limitMemory(t, client, -1, "noeviction")
	for name, call := range map[string]func() error{
		"take": func() error { _, err := store.Take(ctx, take); return err },
		"settle": func() error {
			_, err := store.Settle(ctx, bucket.Settlement{Receipt: first.Receipt, Actual: points(1)})
			return err
		},
		"grant": func() error { _, err := store.Grant(ctx, "acme", buckets, points(5)); return err },
		"override": func() error {
			_, err := store.SetOverride(ctx, "acme", bucket.Override{Limit: "day", Capacity: 5, Reason: "test", Actor: "test"})
			return err
		},
	} {
		err := call()
		require.ErrorIs(t, err, bucket.ErrUnavailable, name)
		require.ErrorContains(t, err, "OOM", name)
	}
	after, err := client.Dump(ctx, store.BucketKey("acme", bucket.Owner{})).Result()
	require.NoError(t, err)
	require.Equal(t, before, after)
	keys, err := client.DBSize(ctx).Result()
	require.NoError(t, err)
	require.EqualValues(t, 1, keys)

	states, err := store.Peek(ctx, "acme", buckets)
	require.NoError(t, err, "reading needs no memory")
	require.EqualValues(t, 90, states[0].Remaining)
	require.NoError(t, client.ConfigSet(ctx, "maxmemory", "0").Err())
	_, err = store.Take(ctx, take)
	require.NoError(t, err)
}
