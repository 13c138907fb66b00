package ratelimittest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/buckettest"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
)

func TestStoreKeepsTheContract(t *testing.T) {
	t.Parallel()
	buckettest.Run(t, func(*testing.T) buckettest.Harness {
		clock := &ratelimittest.Clock{}
		return buckettest.Harness{Store: ratelimittest.NewStore(clock), Advance: clock.Advance}
	})
}

func TestStoreRemembersAndFails(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	limits, err := bucket.Compile(bucket.Limit{Name: "minute", Capacity: 10, Period: time.Minute})
	require.NoError(t, err)
	buckets := []bucket.Bucket{{Limits: limits}}
	store := ratelimittest.NewStore(nil)
	amounts := bucket.Amounts{{Unit: bucket.Points, N: 4}}
	take := bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: amounts}

	result, err := store.Take(ctx, take)
	require.NoError(t, err)
	_, err = store.Settle(ctx, bucket.Settlement{Receipt: result.Receipt, Actual: bucket.Amounts{{Unit: bucket.Points, N: 1}}})
	require.NoError(t, err)
	amounts[0].N = 9

	store.Fail(bucket.ErrUnavailable)
	_, err = store.Take(ctx, take)
	require.ErrorIs(t, err, bucket.ErrUnavailable)
	_, err = store.Settle(ctx, bucket.Settlement{})
	require.ErrorIs(t, err, bucket.ErrUnavailable)
	_, err = store.Renew(ctx, "acme", nil)
	require.ErrorIs(t, err, bucket.ErrUnavailable)
	_, err = store.Peek(ctx, "acme", buckets)
	require.ErrorIs(t, err, bucket.ErrUnavailable)
	_, err = store.Grant(ctx, "acme", buckets, nil)
	require.ErrorIs(t, err, bucket.ErrUnavailable)
	require.ErrorIs(t, store.Reset(ctx, "acme", buckets), bucket.ErrUnavailable)

	store.Fail(nil)
	_, err = store.Peek(ctx, "acme", buckets)
	require.NoError(t, err)

	takes := store.Takes()
	require.Len(t, takes, 2)
	require.EqualValues(t, 4, takes[0].Amounts[0].N, "what is remembered does not change with the caller's slice")
	require.EqualValues(t, 6, takes[0].Result.Limits[0].Remaining)
	require.ErrorIs(t, takes[1].Err, bucket.ErrUnavailable)
	require.Len(t, store.Settlements(), 2)
	require.True(t, store.Settlements()[0].Settled.Applied)
}
