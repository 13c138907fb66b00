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

// everything returns each key of the server with its bytes and when it expires.
func everything(ctx context.Context, t *testing.T, client *redis.Client) map[string]string {
	t.Helper()
	keys, err := client.Keys(ctx, "*").Result()
	require.NoError(t, err)
	all := map[string]string{}
	for _, key := range keys {
		value, err := client.Get(ctx, key).Result()
		require.NoError(t, err)
		expiry, err := client.PExpireTime(ctx, key).Result()
		require.NoError(t, err)
		all[key] = value + expiry.String()
	}
	return all
}

func TestAnOwnerThatCannotBeReadLeavesEveryByteAsItWas(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := patientClient(t, redistest.Start(t).Addr)
	store := newRedisStore(t, client)
	limits := compile(t, bucket.Limit{Name: "day", Capacity: 100, Refill: 1, Period: 24 * time.Hour})
	// The last owner that a script comes to is the one that it cannot read.
	buckets := []bucket.Bucket{{Limits: limits}, {Owner: bucket.Owner{Level: bucket.User, Name: "ann"}, Limits: limits}}
	claim := &idempotency.Claim{Key: "12345678", Attempt: idempotency.NewAttemptID()}
	take := bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(30)}
	plain, err := store.Take(ctx, take)
	require.NoError(t, err)
	take.Claim = claim
	keyed, err := store.Take(ctx, take)
	require.NoError(t, err)
	end := func(outcome idempotency.Outcome) *bucket.ClaimSettlement {
		return &bucket.ClaimSettlement{Tenant: "acme", Claim: claim, Outcome: outcome, Answer: []byte("x")}
	}
	settle := func(receipt bucket.Receipt, end *bucket.ClaimSettlement) error {
		settled, err := store.Settle(ctx, bucket.Settlement{Receipt: receipt, Actual: points(10), Claim: end})
		require.Equal(t, err == nil, settled.Applied)
		return err
	}
	key := store.BucketKey("acme", buckets[1].Owner)
	readable, err := client.Get(ctx, key).Result()
	require.NoError(t, err)
	require.NoError(t, client.Set(ctx, key, "\x09"+readable[1:], time.Hour).Err())
	before := everything(ctx, t, client)
	for name, call := range map[string]func() error{
		"take": func() error {
			_, err := store.Take(ctx, bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(1)})
			return err
		},
		"grant":          func() error { _, err := store.Grant(ctx, "acme", buckets, points(20)); return err },
		"settle":         func() error { return settle(plain.Receipt, nil) },
		"settle done":    func() error { return settle(keyed.Receipt, end(idempotency.Done)) },
		"settle release": func() error { return settle(keyed.Receipt, end(idempotency.Released)) },
	} {
		require.ErrorIs(t, call(), bucket.ErrUnavailable, name)
		require.Equal(t, before, everything(ctx, t, client), name)
	}

	// Neither the marker nor the claim was spent: both settle once the owner can be read again.
	require.NoError(t, client.Set(ctx, key, readable, time.Hour).Err())
	require.NoError(t, settle(plain.Receipt, nil))
	require.NoError(t, settle(keyed.Receipt, end(idempotency.Done)))
	states, err := store.Peek(ctx, "acme", buckets)
	require.NoError(t, err)
	require.EqualValues(t, 80, states[0].Remaining)
	require.EqualValues(t, 80, states[1].Remaining)
}

func TestARecordThatCannotBeReadLeavesEveryByteAsItWas(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := patientClient(t, redistest.Start(t).Addr)
	store := newRedisStore(t, client)
	buckets := []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "day", Capacity: 100, Refill: 1, Period: 24 * time.Hour})}}
	claim := &idempotency.Claim{Key: "12345678", Attempt: idempotency.NewAttemptID()}
	result, err := store.Take(ctx, bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(30), Claim: claim})
	require.NoError(t, err)
	keys, err := client.Keys(ctx, "*:i:*").Result()
	require.NoError(t, err)
	require.Len(t, keys, 1)
	require.NoError(t, client.SetRange(ctx, keys[0], 0, "\x09").Err())
	before := everything(ctx, t, client)
	_, err = store.Settle(ctx, bucket.Settlement{Receipt: result.Receipt, Actual: points(0), Claim: &bucket.ClaimSettlement{
		Tenant: "acme", Claim: claim, Outcome: idempotency.Done,
	}})
	require.ErrorIs(t, err, bucket.ErrUnavailable)
	require.Equal(t, before, everything(ctx, t, client))
}
