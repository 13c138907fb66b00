package bucket_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

func compile(t testing.TB, limits ...bucket.Limit) *bucket.Limits {
	t.Helper()
	compiled, err := bucket.Compile(limits...)
	require.NoError(t, err)
	return compiled
}

func points(n int64) bucket.Amounts {
	return bucket.Amounts{{Unit: bucket.Points, N: n}}
}

// fourLimits are the usual limits of an owner.
func fourLimits(t testing.TB, capacity int64) *bucket.Limits {
	t.Helper()
	return compile(t,
		bucket.Limit{Name: "second", Capacity: capacity, Period: time.Second},
		bucket.Limit{Name: "minute", Capacity: 10 * capacity, Period: time.Minute},
		bucket.Limit{Name: "hour", Capacity: 100 * capacity, Period: time.Hour},
		bucket.Limit{Name: "day", Capacity: 1000 * capacity, Period: 24 * time.Hour},
	)
}

func TestARefusalLeavesEveryByteOfAllOwnersAsItWas(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := patientClient(t, redistest.Start(t).Addr)
	store := newRedisStore(t, client)
	owners := []bucket.Owner{{}, {Level: bucket.Team, Name: "core"}, {Level: bucket.User, Name: "ann"}}
	names := []string{"second", "minute", "hour", "day"}
	for refuser := range len(owners) * len(names) {
		var buckets []bucket.Bucket
		for o, owner := range owners {
			var limits []bucket.Limit
			for i, name := range names {
				limit := bucket.Limit{Name: name, Capacity: 1000, Period: 24 * time.Hour}
				if o*len(names)+i == refuser {
					limit.Capacity = 10
				}
				limits = append(limits, limit)
			}
			buckets = append(buckets, bucket.Bucket{Owner: owner, Limits: compile(t, limits...)})
		}
		dump := func() []string {
			var all []string
			for _, owner := range owners {
				key := store.BucketKey("acme", owner)
				text, err := client.Dump(ctx, key).Result()
				require.NoError(t, err)
				expiry, err := client.PExpireTime(ctx, key).Result()
				require.NoError(t, err)
				all = append(all, text, expiry.String())
			}
			return all
		}
		take := bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(6)}
		result, err := store.Take(ctx, take)
		require.NoError(t, err)
		require.Equal(t, bucket.Admitted, result.Verdict)
		before := dump()
		for _, amount := range []int64{6, 11} {
			take.Amounts = points(amount)
			take.Claim = &idempotency.Claim{Key: "12345678", Attempt: idempotency.NewAttemptID()}
			result, err = store.Take(ctx, take)
			require.NoError(t, err)
			require.NotEqual(t, bucket.Admitted, result.Verdict)
			require.Equal(t, before, dump(), "limit %d refused %d", refuser, amount)
		}
		keys, err := client.DBSize(ctx).Result()
		require.NoError(t, err)
		require.EqualValues(t, len(owners), keys, "a refused take writes no claim")
		require.NoError(t, store.Reset(ctx, "acme", buckets))
	}
}

func TestAnOwnerWithFourLimitsIsSmallAndExpiresWhenFull(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := patientClient(t, redistest.Start(t).Addr)
	store := newRedisStore(t, client)
	buckets := []bucket.Bucket{{Limits: fourLimits(t, 100)}}
	_, err := store.Take(ctx, bucket.Take{Tenant: "demo-pro", Buckets: buckets, Amounts: points(50)})
	require.NoError(t, err)

	key := store.BucketKey("demo-pro", bucket.Owner{})
	require.LessOrEqual(t, len(key), 23)
	value, err := client.Get(ctx, key).Result()
	require.NoError(t, err)
	require.LessOrEqual(t, len(value), 60)
	usage, err := client.MemoryUsage(ctx, key).Result()
	require.NoError(t, err)
	require.LessOrEqual(t, usage, int64(136))
	t.Logf("key %d bytes, value %d bytes, MEMORY USAGE %d bytes", len(key), len(value), usage)

	// 50 of 100,000 a day come back in 43.2 s.
	life, err := client.PTTL(ctx, key).Result()
	require.NoError(t, err)
	require.InDelta(t, 43_200, life.Milliseconds(), 5_000)
}

func TestAnOwnerWhomTwoPoliciesChargeTakesTwiceTheRoomAtMost(t *testing.T) {
	t.Parallel()
	client := patientClient(t, redistest.Start(t).Addr)
	store := newRedisStore(t, client)
	second, minute := bucket.Limit{Name: "second", Capacity: 100, Period: time.Second}, bucket.Limit{Name: "minute", Capacity: 1000, Period: time.Minute}
	hour, day := bucket.Limit{Name: "hour", Capacity: 10_000, Period: time.Hour}, bucket.Limit{Name: "day", Capacity: 100_000, Period: 24 * time.Hour}
	other := day
	other.Capacity = 200_000
	for _, limits := range []*bucket.Limits{compile(t, second, minute, hour, day), compile(t, other)} {
		_, err := store.Take(t.Context(), bucket.Take{Tenant: "demo-pro", Buckets: []bucket.Bucket{{Limits: limits}}, Amounts: points(90)})
		require.NoError(t, err)
	}
	key := store.BucketKey("demo-pro", bucket.Owner{})
	value, err := client.Get(t.Context(), key).Result()
	require.NoError(t, err)
	usage, err := client.MemoryUsage(t.Context(), key).Result()
	require.NoError(t, err)
	t.Logf("key %d bytes, value %d bytes, MEMORY USAGE %d bytes", len(key), len(value), usage)
	require.LessOrEqual(t, len(value), 7+4*28)
	require.LessOrEqual(t, usage, int64(200))
}

func TestForeignLimitsLiveAsLongAsTheirKeyDid(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := patientClient(t, redistest.Start(t).Addr)
	store := newRedisStore(t, client)
	second := bucket.Limit{Name: "second", Capacity: 100, Period: time.Second}
	day := bucket.Limit{Name: "day", Capacity: 1000, Period: 24 * time.Hour}
	both := []bucket.Bucket{{Limits: compile(t, second, day)}}
	one := []bucket.Bucket{{Limits: compile(t, second)}}
	_, err := store.Take(ctx, bucket.Take{Tenant: "acme", Buckets: both, Amounts: points(100)})
	require.NoError(t, err)
	key := store.BucketKey("acme", bucket.Owner{})
	before, err := client.PTTL(ctx, key).Result()
	require.NoError(t, err)
	_, err = store.Grant(ctx, "acme", one, points(5))
	require.NoError(t, err)
	after, err := client.PTTL(ctx, key).Result()
	require.NoError(t, err)
	require.Greater(t, after.Milliseconds(), before.Milliseconds()-5_000)
	require.Less(t, after.Milliseconds(), before.Milliseconds()*9/7+8192, "and not for much longer")
	states, err := store.Peek(ctx, "acme", both)
	require.NoError(t, err)
	require.EqualValues(t, 900, states[1].Remaining)
}

func TestFlushedScriptsNeitherFailNorChargeTwice(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := patientClient(t, redistest.Start(t).Addr)
	store := newRedisStore(t, client)
	// Nothing comes back during the test, so that what is left tells how often was charged.
	buckets := []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "year", Capacity: 80_000, Refill: 1, Period: time.Hour})}}
	const callers, calls = 8, 150
	var failed, running atomic.Int64
	running.Store(callers)
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			defer running.Add(-1)
			for range calls {
				result, err := store.Take(ctx, bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(1)})
				if err != nil || result.Verdict != bucket.Admitted {
					failed.Add(1)
				}
			}
		})
	}
	flushes := 0
	for running.Load() > 0 {
		require.NoError(t, client.ScriptFlush(ctx).Err())
		flushes++
	}
	group.Wait()
	require.Zero(t, failed.Load())
	require.Positive(t, flushes)
	states, err := store.Peek(ctx, "acme", buckets)
	require.NoError(t, err)
	require.EqualValues(t, 80_000-callers*calls, states[0].Remaining)
}

func TestACallIntoAFrozenServerEndsAtItsDeadlineAndIsAmbiguous(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	options := &redis.Options{Addr: server.Addr}
	redisclient.Bound(options)
	// A connection that was dialled ahead says hello to the frozen server, and then nothing was sent.
	options.MinIdleConns = 0
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	const timeout = 100 * time.Millisecond
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: timeout, Patience: timeout})
	require.NoError(t, err)
	buckets := []bucket.Bucket{{Limits: fourLimits(t, 100)}}
	take := bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(1)}
	require.Eventually(t, func() bool {
		_, err := store.Take(ctx, take)
		return err == nil
	}, patience, time.Millisecond)

	server.Freeze(t)
	t.Cleanup(func() { server.Thaw(t) })
	ambiguous := 0
	const soon, tries = timeout + 400*time.Millisecond, 5
	for _, claim := range []*idempotency.Claim{nil, {Key: "12345678"}, nil, nil} {
		take.Claim = claim
		// The machine that runs the tests may be busy for a moment; a deadline that does not hold takes longer each time.
		elapsed := time.Hour
		for n := 0; n < tries && elapsed >= soon; n++ {
			start := time.Now()
			_, err := store.Take(ctx, take)
			elapsed = time.Since(start)
			require.Error(t, err)
			if errors.Is(err, bucket.ErrAmbiguous) {
				ambiguous++
			} else {
				requireNothingHappened(t, err)
			}
		}
		require.Less(t, elapsed, soon)
	}
	require.Positive(t, ambiguous, "what was sent may have been applied")
}

func TestACallThatArrivesAfterItsCallerHasGoneDoesNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	client := patientClient(t, server.Addr)
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: time.Second})
	require.NoError(t, err)
	buckets := []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "year", Capacity: 100, Refill: 1, Period: time.Hour})}}
	take := bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(1)}
	_, err = store.Take(ctx, take)
	require.NoError(t, err)

	server.Freeze(t)
	// On a busy machine the time may be over before anything is sent.
	require.Eventually(t, func() bool {
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		_, err = store.Take(short, take)
		return !errors.Is(err, bucket.ErrUnavailable)
	}, patience, time.Millisecond)
	require.ErrorIs(t, err, bucket.ErrAmbiguous)
	server.Thaw(t)

	states, err := newRedisStore(t, client).Peek(ctx, "acme", buckets)
	require.NoError(t, err)
	require.EqualValues(t, 99, states[0].Remaining)
}

func TestAWrongEstimateOfTheServersClockIsLearnedAnew(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := patientClient(t, redistest.Start(t).Addr)
	store := newRedisStore(t, client)
	buckets := []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "year", Capacity: 100, Refill: 1, Period: time.Hour})}}
	take := bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(1)}
	for i, wrong := range []int64{0, -time.Hour.Milliseconds(), time.Hour.Milliseconds(), 0} {
		store.LearnOffset(wrong)
		result, err := store.Take(ctx, take)
		require.NoError(t, err)
		require.EqualValues(t, 99-i, result.Limits[0].Remaining)
	}
}

func TestAStoreThatIsAwayAtStartIsUsedWhenItComes(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	server.Kill()
	store := newRedisStore(t, patientClient(t, server.Addr))
	buckets := []bucket.Bucket{{Limits: fourLimits(t, 100)}}
	_, err := store.Take(ctx, bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(1)})
	require.ErrorIs(t, err, bucket.ErrUnavailable)
	require.NotErrorIs(t, err, bucket.ErrAmbiguous)
	require.ErrorIs(t, store.Reset(ctx, "acme", buckets), bucket.ErrUnavailable)
	_, err = store.Peek(ctx, "acme", buckets)
	require.ErrorIs(t, err, bucket.ErrUnavailable)
	_, err = store.Settle(ctx, bucket.Settlement{Claim: &bucket.ClaimSettlement{
		Tenant: "acme", Claim: &idempotency.Claim{}, Outcome: idempotency.Done,
	}})
	require.ErrorIs(t, err, bucket.ErrUnavailable)
}

func TestAServerThatIsKilledDuringLoadGivesClassifiedErrors(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	store := newRedisStore(t, patientClient(t, server.Addr))
	buckets := []bucket.Bucket{{Limits: fourLimits(t, 1<<30)}}
	var admitted, away, other atomic.Int64
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20_000 {
				_, err := store.Take(ctx, bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(1)})
				switch {
				case err == nil:
					admitted.Add(1)
				case errors.Is(err, bucket.ErrUnavailable) != errors.Is(err, bucket.ErrAmbiguous):
					away.Add(1)
					return
				default:
					other.Add(1)
				}
			}
		})
	}
	require.Eventually(t, func() bool { return admitted.Load() > 50 }, patience, time.Millisecond)
	server.Kill()
	group.Wait()
	require.Zero(t, other.Load())
	require.EqualValues(t, 8, away.Load())
}

func TestServerErrorsMeanThatNothingWasDone(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := patientClient(t, redistest.Start(t, "--maxmemory", "100kb", "--maxmemory-policy", "noeviction").Addr)
	store := newRedisStore(t, client)
	buckets := []bucket.Bucket{{Limits: fourLimits(t, 100)}}
	_, err := store.Take(ctx, bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(1)})
	require.ErrorIs(t, err, bucket.ErrUnavailable)
	require.ErrorContains(t, err, "OOM")

	client = patientClient(t, redistest.Start(t).Addr)
	store = newRedisStore(t, client)
	require.NoError(t, client.LPush(ctx, store.BucketKey("acme", bucket.Owner{}), "x").Err())
	_, err = store.Take(ctx, bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(1)})
	require.ErrorIs(t, err, bucket.ErrUnavailable)
	require.NoError(t, client.Set(ctx, store.BucketKey("other", bucket.Owner{}), "\x03from the future", 0).Err())
	_, err = store.Take(ctx, bucket.Take{Tenant: "other", Buckets: buckets, Amounts: points(1)})
	require.ErrorIs(t, err, bucket.ErrUnavailable)
}

func TestWhatAnErrorMeansFollowsFromWhetherTheCommandHadLeft(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for _, err := range []error{
		refused, redis.ErrPoolTimeout, redis.ErrPoolExhausted, redis.ErrClosed, redis.ErrNoScript, redis.ErrCrossSlot,
		context.Canceled, context.DeadlineExceeded, &net.OpError{Op: "read", Err: syscall.ECONNRESET}, io.EOF, errors.New("anything else"),
	} {
		meaning := bucket.Meaning(err, false)
		require.ErrorIs(t, meaning, bucket.ErrUnavailable, err)
		require.NotErrorIs(t, meaning, bucket.ErrAmbiguous, err)
		require.ErrorIs(t, meaning, err)
	}
	for _, err := range []error{
		refused, &net.OpError{Op: "read", Err: syscall.ECONNRESET}, &net.OpError{Op: "write", Err: context.DeadlineExceeded},
		io.EOF, io.ErrUnexpectedEOF, context.Canceled, context.DeadlineExceeded, errors.New("anything else"),
	} {
		meaning := bucket.Meaning(err, true)
		require.ErrorIs(t, meaning, bucket.ErrAmbiguous, err)
		require.NotErrorIs(t, meaning, bucket.ErrUnavailable, err)
	}
	for _, reply := range []error{redis.ErrNoScript, redis.ErrCrossSlot} {
		require.ErrorIs(t, bucket.Meaning(reply, true), bucket.ErrUnavailable, "a reply says that nothing was done")
	}
}
