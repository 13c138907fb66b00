package bucket_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

func TestFewRightsInRedisAreEnough(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	addr := redistest.Start(t).Addr
	require.NoError(t, patientClient(t, addr).Do(ctx, "acl", "setuser", "limiter", "on", ">pw", "resetkeys", "~rl:*",
		"-@all", "+evalsha", "+eval", "+time", "+get", "+set", "+setrange", "+getrange", "+del", "+unlink", "+pttl").Err())
	options := patientOptions(addr)
	options.Username, options.Password = "limiter", "pw"
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	store := newRedisStore(t, client)

	hour := bucket.Limit{Name: "hour", Capacity: 1000, Period: time.Hour}
	day := bucket.Limit{Name: "day", Capacity: 1000, Period: 24 * time.Hour}
	one, both := []bucket.Bucket{{Limits: compile(t, hour)}}, []bucket.Bucket{{Limits: compile(t, hour, day)}}
	claim := &idempotency.Claim{Key: "12345678", Attempt: idempotency.NewAttemptID()}
	for _, buckets := range [][]bucket.Bucket{both, one} {
		result, err := store.Take(ctx, bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(10)})
		require.NoError(t, err)
		settled, err := store.Settle(ctx, bucket.Settlement{Receipt: result.Receipt, Actual: points(5)})
		require.NoError(t, err)
		require.True(t, settled.Applied)
	}
	_, err := store.Take(ctx, bucket.Take{Tenant: "acme", Claim: claim})
	require.NoError(t, err)
	held, err := store.Renew(ctx, "acme", claim)
	require.NoError(t, err)
	require.True(t, held)
	_, err = store.Settle(ctx, bucket.Settlement{Claim: &bucket.ClaimSettlement{
		Tenant: "acme", Claim: claim, Outcome: idempotency.Released,
	}})
	require.NoError(t, err)
	states, err := store.Peek(ctx, "acme", both)
	require.NoError(t, err)
	require.EqualValues(t, 990, states[0].Remaining)
	_, err = store.Grant(ctx, "acme", both, points(1000))
	require.NoError(t, err)
	require.NoError(t, store.Reset(ctx, "acme", both))
}
