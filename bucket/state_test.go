package bucket_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// TestWhatACallDoesNotChargeStaysByteForByte spends under one policy, and then calls under others that know the
// limit and do not charge it.
func TestWhatACallDoesNotChargeStaysByteForByte(t *testing.T) {
	t.Parallel()
	ctx, client := context.Background(), patientClient(t, redistest.Start(t).Addr)
	requests := bucket.Limit{Name: "requests", Unit: bucket.Requests, Capacity: 1000, Period: time.Second}
	costing := func(n int64) bucket.Amounts { return append(points(n), bucket.Amount{Unit: bucket.Requests, N: 1}) }
	for _, limit := range []bucket.Limit{
		{Name: "limit", Capacity: 1000, Period: time.Hour},
		{Name: "limit", Capacity: 1000, Period: time.Hour, Window: bucket.Window{Kind: bucket.FixedWindow}},
		{Name: "limit", Capacity: 1000, Period: time.Hour, Window: bucket.Window{Kind: bucket.SlidingWindow}},
		{Name: "limit", Capacity: 1000, Window: bucket.Window{Kind: bucket.MonthWindow}},
	} {
		t.Run(limit.Window.Kind.String(), func(t *testing.T) {
			t.Parallel()
			c := newClock()
			store := newRedisStore(t, client)
			require.NoError(t, store.SetTestClock(c.unixMilli))
			bucketOf := func(capacity int64, change func(*bucket.Limit)) []bucket.Bucket {
				limit := limit
				if limit.Capacity = capacity; change != nil {
					change(&limit)
				}
				return []bucket.Bucket{{Limits: compile(t, requests, limit)}}
			}
			take := func(buckets []bucket.Bucket, n int64) bucket.Result {
				result, err := store.Take(ctx, bucket.Take{Tenant: t.Name(), Buckets: buckets, Amounts: costing(n)})
				require.NoError(t, err)
				return result
			}
			stored := func() bucket.Stored {
				text, err := client.Get(ctx, store.BucketKey(t.Name(), bucket.Owner{})).Result()
				require.NoError(t, err)
				stored, err := bucket.ReadStored(text, bucket.Points, "limit")
				require.NoError(t, err)
				return stored
			}
			receipt := take(bucketOf(10, nil), 10).Receipt
			take(bucketOf(1000, nil), 900)
			// A tier that counts the limit by another clock is what parts its entry from the others.
			slow := func(l *bucket.Limit) {
				if l.Window.Kind == bucket.TokenBucket {
					l.Refill, l.Period = 1, time.Hour
				}
			}
			take(bucketOf(10, slow), 0)
			before := stored()
			for name, call := range map[string]func(){
				"costs nothing": func() { take(bucketOf(10, slow), 0) },
				"is refused":    func() { require.Equal(t, bucket.Limited, take(bucketOf(10, slow), 5).Verdict) },
				"is shadowed":   func() { take(bucketOf(10, func(l *bucket.Limit) { slow(l); l.Mode = bucket.Shadow }), 5) },
				"is soft, and counts no more": func() {
					take(bucketOf(10, func(l *bucket.Limit) { slow(l); l.Soft = true }), 5)
				},
				"does not know the limit": func() { take([]bucket.Bucket{{Limits: compile(t, requests)}}, 5) },
				"charges on what is overdrawn": func() {
					_, err := store.Settle(ctx, bucket.Settlement{Receipt: receipt, Actual: points(11)})
					require.NoError(t, err)
				},
				"peeks": func() {
					_, err := store.Peek(ctx, t.Name(), bucketOf(10, slow))
					require.NoError(t, err)
				},
			} {
				c.advance(10 * time.Millisecond)
				call()
				require.Equal(t, before, stored(), name)
			}
		})
	}
}

// TestAKeyLivesUntilWhatWasChargedUnderOtherPoliciesIsGone looks at when keys expire: not before what they hold counts
// nothing any more, and not much later.
func TestAKeyLivesUntilWhatWasChargedUnderOtherPoliciesIsGone(t *testing.T) {
	t.Parallel()
	ctx, client := context.Background(), patientClient(t, redistest.Start(t).Addr)
	store := newRedisStore(t, client)
	c := newClock()
	require.NoError(t, store.SetTestClock(c.unixMilli))
	limit := func(name string, capacity, refill int64, per time.Duration) bucket.Limit {
		return bucket.Limit{Name: name, Capacity: capacity, Refill: refill, Period: per}
	}
	take := func(n int64, limits ...bucket.Limit) {
		_, err := store.Take(ctx, bucket.Take{Tenant: "acme", Buckets: []bucket.Bucket{{Limits: compile(t, limits...)}}, Amounts: points(n)})
		require.NoError(t, err)
	}
	lives := func(full time.Duration, message string) {
		t.Helper()
		until, err := client.PExpireTime(ctx, store.BucketKey("acme", bucket.Owner{})).Result()
		require.NoError(t, err)
		life := until - time.Duration(c.unixMilli())*time.Millisecond
		require.GreaterOrEqual(t, life, full, message)
		require.LessOrEqual(t, life, 2*full+8192*time.Millisecond, message)
	}
	take(1000, limit("a", 1000, 10, time.Second))
	lives(100*time.Second, "until all is full")
	// Another limit is charged, by a policy that has a slower and smaller idea of the first.
	slower := limit("a", 10, 1, time.Minute)
	slower.Mode = bucket.Shadow
	c.advance(30 * time.Second)
	take(5, slower, limit("b", 10, 1, time.Second))
	lives(70*time.Second, "that of what is owed under the first policy")
	c.advance(69 * time.Second)
	take(5, slower, limit("b", 10, 1, time.Second))
	lives(5*time.Second, "the limit that was charged outlives it")
	c.advance(2 * time.Second)
	take(5, limit("c", 10, 1, time.Minute))
	lives(5*time.Minute, "what nobody knows any more does not shorten it")
	c.advance(3 * time.Second)
	take(1, limit("c", 10, 1, time.Minute))
	text, err := client.Get(ctx, store.BucketKey("acme", bucket.Owner{})).Result()
	require.NoError(t, err)
	require.Len(t, text, 7+28, "and is dropped when it is gone")
}
