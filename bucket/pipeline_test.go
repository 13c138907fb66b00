package bucket_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// batches is a hook around the pipelines of a client.
type batches func(ctx context.Context, cmds []redis.Cmder, next redis.ProcessPipelineHook) error

func (batches) DialHook(next redis.DialHook) redis.DialHook { return next }

func (batches) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (b batches) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { return b(ctx, cmds, next) }
}

// unrefilled are buckets that get nothing back within a test, so that what is left tells what was charged.
func unrefilled(t testing.TB, capacity int64) []bucket.Bucket {
	t.Helper()
	return []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "year", Capacity: capacity, Refill: 1, Period: time.Hour})}}
}

func charged(t testing.TB, client redis.UniversalClient, tenant string, buckets []bucket.Bucket) int64 {
	t.Helper()
	states, err := newRedisStore(t, client).Peek(context.Background(), tenant, buckets)
	require.NoError(t, err)
	return states[0].Limit.Capacity - states[0].Remaining
}

func TestManyCallersSpendABudgetOnceWhileScriptsAreFlushedAndRecordsChange(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	admin := patientClient(t, redistest.Start(t).Addr)
	client := patientClient(t, admin.Options().Addr)
	var largest atomic.Int64
	client.AddHook(batches(func(ctx context.Context, cmds []redis.Cmder, next redis.ProcessPipelineHook) error {
		largest.Store(max(largest.Load(), int64(len(cmds))))
		return next(ctx, cmds)
	}))
	store := newRedisStore(t, client)
	const callers, calls, capacity = 64, 25, 1000
	buckets := unrefilled(t, capacity)
	var admitted, failed atomic.Int64
	var group sync.WaitGroup
	running, stop := context.WithCancel(ctx)
	var disturbance sync.WaitGroup
	disturbance.Go(func() {
		for i := 0; running.Err() == nil; i++ {
			_ = admin.ScriptFlush(ctx).Err()
			shadow := bucket.Shadow
			_, _ = newRedisStore(t, admin).SetOverride(ctx, "acme", bucket.Override{
				Owner: bucket.Owner{Level: bucket.User, Name: strconv.Itoa(i % 8)}, Mode: &shadow, Reason: "test", Actor: "test",
			})
		}
	})
	for range callers {
		group.Go(func() {
			for range calls {
				result, err := store.Take(ctx, bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(1)})
				switch {
				case err != nil:
					failed.Add(1)
				case result.Verdict == bucket.Admitted:
					admitted.Add(1)
				}
			}
		})
	}
	group.Wait()
	stop()
	disturbance.Wait()
	require.Zero(t, failed.Load())
	require.EqualValues(t, capacity, admitted.Load())
	require.Greater(t, largest.Load(), int64(1), "calls at the same time ride together")
}

func TestWhatAFrozenServerMadeUnavailableIsNeverChargedAndNothingIsSentTwice(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	admin := patientClient(t, server.Addr)
	buckets := unrefilled(t, 80_000)
	take := bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(1)}
	_, err := newRedisStore(t, admin).Take(ctx, take)
	require.NoError(t, err)

	// A store that has had no reply knows no clock: nothing drops what it sends when the server comes back.
	client := patientClient(t, server.Addr)
	warm(t, client)
	store := newRedisStore(t, client)
	const callers = 64
	server.Freeze(t)
	// So long that something leaves on a busy machine too.
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var ambiguous, unavailable atomic.Int64
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			switch _, err := store.Take(short, take); {
			case errors.Is(err, bucket.ErrAmbiguous):
				ambiguous.Add(1)
			case errors.Is(err, bucket.ErrUnavailable):
				unavailable.Add(1)
			}
		})
	}
	group.Wait()
	server.Thaw(t)
	require.NoError(t, store.Close())
	require.EqualValues(t, callers, ambiguous.Load()+unavailable.Load())
	require.Positive(t, ambiguous.Load())
	require.Positive(t, unavailable.Load(), "most have waited for a connection")
	require.LessOrEqual(t, charged(t, admin, "acme", buckets)-1, ambiguous.Load())
	stats, err := admin.InfoMap(ctx, "commandstats").Result()
	require.NoError(t, err)
	calls, _, _ := strings.Cut(strings.TrimPrefix(stats["Commandstats"]["cmdstat_evalsha"], "calls="), ",")
	sent, err := strconv.ParseInt(calls, 10, 64)
	require.NoError(t, err)
	const others = 3 // the first take by its hash, and the peek
	require.LessOrEqual(t, sent, ambiguous.Load()+others)
}

func TestACommandThatIsTakenBackBeforeItLeavesDoesNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := patientClient(t, redistest.Start(t).Addr)
	admin := patientClient(t, client.Options().Addr)
	sizes, permits := make(chan int, 8), make(chan struct{})
	client.AddHook(batches(func(ctx context.Context, cmds []redis.Cmder, next redis.ProcessPipelineHook) error {
		sizes <- len(cmds)
		<-permits
		return next(ctx, cmds)
	}))
	store := newRedisStore(t, client)
	store.AlwaysQueue()
	buckets := unrefilled(t, 1000)
	// The server knows the script from now on, so that nothing is sent a second time.
	_, err := newRedisStore(t, admin).Take(ctx, bucket.Take{Tenant: "other", Buckets: buckets, Amounts: points(1)})
	require.NoError(t, err)
	take := func(ctx context.Context, amount int64) chan error {
		done := make(chan error, 1)
		go func() {
			_, err := store.Take(ctx, bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(amount)})
			done <- err
		}()
		return done
	}
	// The connections are in use by two callers; two more ride together, and one of them goes.
	first := take(ctx, 1)
	require.Equal(t, 1, <-sizes)
	second := take(ctx, 1)
	require.Equal(t, 1, <-sizes)
	leaving, leave := context.WithCancel(ctx)
	gone, stays := take(leaving, 100), take(ctx, 10)
	require.Eventually(t, func() bool { return store.Waiting() == 2 }, patience, time.Millisecond)
	permits <- struct{}{}
	require.Equal(t, 2, <-sizes)
	leave()
	err = <-gone
	require.ErrorIs(t, err, bucket.ErrUnavailable)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, bucket.ErrAmbiguous)
	close(permits)
	for _, done := range []chan error{first, second, stays} {
		require.NoError(t, <-done)
	}
	require.NoError(t, store.Close())
	require.EqualValues(t, 12, charged(t, admin, "acme", buckets))
}

func TestACommandWhoseCallerGoesAfterItLeftIsAmbiguous(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, redistest.Start(t).Addr)
	store := newRedisStore(t, patientClient(t, proxy.Addr))
	store.AlwaysQueue()
	buckets := unrefilled(t, 1000)
	_, err := store.Take(context.Background(), bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(1)})
	require.NoError(t, err)
	proxy.DropReplies()
	leaving, leave := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		_, err := store.Take(leaving, bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(1)})
		done <- err
	}()
	require.Eventually(t, func() bool { return proxy.Lost() > 0 }, patience, time.Millisecond)
	leave()
	err = <-done
	require.ErrorIs(t, err, bucket.ErrAmbiguous)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, bucket.ErrUnavailable)
	proxy.Heal()
}

func TestAHookThatKeepsABatchFromLeavingMakesItUnavailable(t *testing.T) {
	t.Parallel()
	broken := errors.New("open")
	for name, hook := range map[string]func() error{
		"an error": func() error { return broken }, "a panic": func() error { panic(broken) },
	} {
		client := patientClient(t, redistest.Start(t).Addr)
		client.AddHook(batches(func(context.Context, []redis.Cmder, redis.ProcessPipelineHook) error { return hook() }))
		store := newRedisStore(t, client)
		store.AlwaysQueue()
		_, err := store.Take(context.Background(), bucket.Take{Tenant: "acme", Buckets: unrefilled(t, 10), Amounts: points(1)})
		require.ErrorIs(t, err, bucket.ErrUnavailable, name)
		require.NotErrorIs(t, err, bucket.ErrAmbiguous, name)
		require.ErrorContains(t, err, "open", name)
		require.NoError(t, store.Close())
	}
}

func TestAClosedStoreHasNoGoroutinesAndNoCalls(t *testing.T) { //nolint:paralleltest // It looks at all goroutines.
	client := patientClient(t, redistest.Start(t).Addr)
	for name, apart := range map[string]bool{"together": false, "apart": true} {
		store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: patience, Namespace: name, SeparateCalls: apart})
		require.NoError(t, err)
		buckets := unrefilled(t, 80_000)
		var group sync.WaitGroup
		var refused atomic.Int64
		for range 64 {
			group.Go(func() {
				for {
					if _, err := store.Take(context.Background(), bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(1)}); err != nil {
						if errors.Is(err, bucket.ErrUnavailable) && errors.Is(err, redis.ErrClosed) {
							refused.Add(1)
						}
						return
					}
				}
			})
		}
		require.NoError(t, store.Close())
		require.NotContains(t, stacks(), "bucket.(*pipeline).run", name)
		group.Wait()
		require.EqualValues(t, 64, refused.Load(), name)
		require.ErrorIs(t, store.Reset(context.Background(), "acme", buckets), bucket.ErrUnavailable)
		require.NoError(t, store.Close())
	}
	require.NoError(t, client.Ping(context.Background()).Err(), "the client is the caller's")
}

func stacks() string {
	b := make([]byte, 4<<20)
	return string(b[:runtime.Stack(b, true)])
}

func TestAFrozenShardHoldsUpNoCallToAnother(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	store := newRedisStore(t, patientClusterClient(t, cluster.Addrs))
	store.AlwaysQueue()
	buckets := unrefilled(t, 1000)
	var tenants [3]string
	for i := 0; tenants[0] == "" || tenants[1] == ""; i++ {
		name := "tenant" + strconv.Itoa(i)
		tenants[redistest.Shard(cluster.Slot(t, store.BucketKey(name, bucket.Owner{})))] = name
	}
	take := func(ctx context.Context, tenant string) error {
		_, err := store.Take(ctx, bucket.Take{Tenant: tenant, Buckets: buckets, Amounts: points(1)})
		return err
	}
	for _, tenant := range tenants[:2] {
		require.NoError(t, take(context.Background(), tenant))
	}
	cluster.Servers[0].Freeze(t)
	t.Cleanup(func() { cluster.Servers[0].Thaw(t) })
	held, release := context.WithCancel(context.Background())
	var group sync.WaitGroup
	var started, ended atomic.Int64
	for range 32 {
		group.Go(func() {
			started.Add(1)
			_ = take(held, tenants[0])
			ended.Add(1)
		})
	}
	require.Eventually(t, func() bool { return started.Load() == 32 }, patience, time.Millisecond)
	for range 10 {
		require.NoError(t, take(context.Background(), tenants[1]))
	}
	require.Zero(t, ended.Load(), "the frozen shard still holds its own")
	release()
	group.Wait()
}

func TestNothingIsChargedTwiceWhileASlotMoves(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cluster := redistest.StartCluster(t)
	client := patientClusterClient(t, cluster.Addrs)
	store := newRedisStore(t, client)
	store.AlwaysQueue()
	buckets := []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "years", Capacity: 5_000_000, Refill: 1, Period: time.Minute})}}
	slot := cluster.Slot(t, store.BucketKey("acme", bucket.Owner{}))
	from := redistest.Shard(slot)
	var admitted, ambiguous atomic.Int64
	var group sync.WaitGroup
	running, stop := context.WithCancel(ctx)
	for range 16 {
		group.Go(func() {
			for running.Err() == nil {
				switch _, err := store.Take(ctx, bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(1)}); {
				case err == nil:
					admitted.Add(1)
				case errors.Is(err, bucket.ErrAmbiguous):
					ambiguous.Add(1)
				}
			}
		})
	}
	reached := func(more int64) {
		t.Helper()
		before := admitted.Load()
		require.Eventually(t, func() bool { return admitted.Load() >= before+more }, time.Minute, time.Millisecond)
	}
	reached(100)
	err := cluster.Move(ctx, slot, cluster.Servers[from], cluster.Servers[(from+1)%3])
	if err == nil {
		reached(100)
	}
	stop()
	group.Wait()
	require.NoError(t, err)
	spent := charged(t, client, "acme", buckets)
	const cameBack = 2 // in as many minutes
	require.GreaterOrEqual(t, spent+cameBack, admitted.Load())
	require.LessOrEqual(t, spent, admitted.Load()+ambiguous.Load())
}
