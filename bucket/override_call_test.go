package bucket_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// aroundCalls runs something before and after each command of a client, told how many came before it.
type aroundCalls struct {
	n             atomic.Int64
	before, after func(n int64)
}

func (a *aroundCalls) DialHook(next redis.DialHook) redis.DialHook { return next }
func (a *aroundCalls) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if name := cmd.Name(); name != "evalsha" && name != "eval" {
			// Another connection introduces itself.
			return next(ctx, cmd)
		}
		n := a.n.Add(1) - 1
		if a.before != nil {
			a.before(n)
		}
		err := next(ctx, cmd)
		if a.after != nil {
			a.after(n)
		}
		return err
	}
}

func (a *aroundCalls) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// dayTake takes one of a hundred a day.
func dayTake(t *testing.T) bucket.Take {
	t.Helper()
	return bucket.Take{
		Tenant:  "acme",
		Buckets: []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "day", Capacity: 100, Refill: 1, Period: 24 * time.Hour})}},
		Amounts: points(1),
	}
}

func TestATakeWhoseRecordsNeverStopChangingIsDoneInThreeTriesUnderThoseThatHeldWhileItWasUnderWay(t *testing.T) {
	t.Parallel()
	ctx, addr := context.Background(), redistest.Start(t).Addr
	operator, client := newRedisStore(t, patientClient(t, addr)), patientClient(t, addr)
	server, take := newRedisStore(t, client), dayTake(t)
	_, err := server.Take(ctx, take)
	require.NoError(t, err)
	around := &aroundCalls{before: func(n int64) {
		setOverride(t, operator, bucket.Override{Limit: "day", Capacity: 1000 + n})
	}}
	client.AddHook(around)
	result, err := server.Take(ctx, take)
	require.NoError(t, err)
	require.EqualValues(t, 3, around.n.Load())
	require.Equal(t, bucket.Admitted, result.Verdict)
	require.EqualValues(t, 1001, result.Limits[0].Limit.Capacity, "the second try was told this")
	states, err := operator.Peek(ctx, "acme", take.Buckets)
	require.NoError(t, err)
	require.EqualValues(t, 1002-2, states[0].Remaining, "charged once")

	_, err = operator.SetOverride(ctx, "acme", bucket.Override{Blocked: true, Reason: "test", Actor: "test"})
	require.NoError(t, err)
	around.before = nil
	result, err = server.Take(ctx, take)
	require.NoError(t, err)
	require.Equal(t, bucket.Blocked, result.Verdict, "what holds before a take holds for it")
}

func TestATakeThatEndsWhileTheRecordsChangeSaysSo(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t).Addr
	operator, client := newRedisStore(t, patientClient(t, addr)), patientClient(t, addr)
	server, take := newRedisStore(t, client), dayTake(t)
	_, err := server.Take(context.Background(), take)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client.AddHook(&aroundCalls{before: func(int64) {
		setOverride(t, operator, bucket.Override{Limit: "day", Capacity: 1000})
	}, after: func(n int64) {
		if n == 1 {
			cancel()
		}
	}})
	_, err = server.Take(ctx, take)
	require.ErrorIs(t, err, bucket.ErrUnavailable)
	require.ErrorContains(t, err, "the override records of the tenant had changed, 2 times")
}

func TestAReplyThatComesLateDoesNotReplaceNewerRecords(t *testing.T) {
	t.Parallel()
	ctx, addr := context.Background(), redistest.Start(t).Addr
	operator, client := newRedisStore(t, patientClient(t, addr)), patientClient(t, addr)
	server, take := newRedisStore(t, client), dayTake(t)
	_, err := server.Take(ctx, take)
	require.NoError(t, err)
	setOverride(t, operator, bucket.Override{Limit: "day", Capacity: 200})

	// The first call is told these records, and its reply is held back.
	told, release, again, end := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	var slow atomic.Bool
	slow.Store(true)
	around := &aroundCalls{after: func(n int64) {
		if n == 0 {
			close(told)
			<-release
		}
	}}
	around.before = func(int64) {
		select {
		case <-release:
			// The second try of the first call.
			if slow.CompareAndSwap(true, false) {
				close(again)
				<-end
			}
		default:
		}
	}
	client.AddHook(around)
	first := make(chan error, 1)
	go func() {
		_, err := server.Take(ctx, take)
		first <- err
	}()
	<-told
	setOverride(t, operator, bucket.Override{Limit: "day", Capacity: 300})
	result, err := server.Take(ctx, take)
	require.NoError(t, err)
	require.EqualValues(t, 300, result.Limits[0].Limit.Capacity)
	close(release)
	<-again
	before := around.n.Load()
	result, err = server.Take(ctx, take)
	require.NoError(t, err)
	require.EqualValues(t, 300, result.Limits[0].Limit.Capacity)
	require.EqualValues(t, 1, around.n.Load()-before, "the newer records were still known")
	close(end)
	require.NoError(t, <-first)
}

// manyLimits are so many limits of an owner.
func manyLimits(t *testing.T, n int, mode bucket.Mode) *bucket.Limits {
	t.Helper()
	limits := make([]bucket.Limit, n)
	for i := range limits {
		limits[i] = bucket.Limit{Name: fmt.Sprint("limit-", i), Capacity: 10, Refill: 1, Period: 24 * time.Hour, Mode: mode}
	}
	return compile(t, limits...)
}

// overrideStores are the two stores that keep records.
func overrideStores(t *testing.T) map[string]interface {
	bucket.Store
	bucket.OverrideStore
} {
	t.Helper()
	return map[string]interface {
		bucket.Store
		bucket.OverrideStore
	}{
		"memory": bucket.NewMemory(bucket.MemoryConfig{}),
		"redis":  newRedisStore(t, patientClient(t, redistest.Start(t).Addr)),
	}
}

// switchOn makes a record that switches on what is more than a call may touch, beside one that is fine.
func switchOn(t *testing.T, store bucket.OverrideStore) {
	t.Helper()
	shadow := bucket.Shadow
	setOverride(t, store, bucket.Override{Owner: bucket.Owner{Level: bucket.User, Name: "u"}, Mode: &shadow})
	setOverride(t, store, bucket.Override{Limit: "limit-0", Capacity: 20, Refill: 1})
}

func TestARecordThatSwitchesOnTooManyLimitsLeavesThemOff(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	buckets := []bucket.Bucket{
		{Limits: manyLimits(t, 40, bucket.Enforce)},
		{Owner: bucket.Owner{Level: bucket.User, Name: "u"}, Limits: manyLimits(t, 40, bucket.Off)},
	}
	for name, store := range overrideStores(t) {
		take := bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(1)}
		capacity := func(want int64) {
			t.Helper()
			result, err := store.Take(ctx, take)
			require.NoError(t, err, name)
			require.Equal(t, bucket.Admitted, result.Verdict, name)
			require.Len(t, result.Limits, 40, name)
			require.Equal(t, want, result.Limits[0].Limit.Capacity, name)
			states, err := store.Peek(ctx, "acme", buckets)
			require.NoError(t, err, name)
			require.Len(t, states, 40, name)
			states, err = store.Grant(ctx, "acme", buckets, points(1))
			require.NoError(t, err, name)
			require.Len(t, states, 40, name)
		}
		capacity(10)
		switchOn(t, store)
		capacity(20)
		// Alone the user has no more than fit, and the record holds.
		states, err := store.Peek(ctx, "acme", buckets[1:])
		require.NoError(t, err, name)
		require.Len(t, states, 40, name)
		_, err = store.ClearOverrides(ctx, "acme")
		require.NoError(t, err, name)
		capacity(10)
	}
}

func TestACandidateWithTooManyLimitsSwitchedOnFailsNoTake(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	live := []bucket.Bucket{{Limits: manyLimits(t, 1, bucket.Enforce)}}
	candidate := &bucket.Candidate{ID: "next", Buckets: []bucket.Bucket{
		{Limits: manyLimits(t, 40, bucket.Enforce)},
		{Owner: bucket.Owner{Level: bucket.User, Name: "u"}, Limits: manyLimits(t, 40, bucket.Off)},
	}}
	for name, store := range overrideStores(t) {
		switchOn(t, store)
		result, err := store.Take(ctx, bucket.Take{Tenant: "acme", Buckets: live, Candidate: candidate, Amounts: points(1)})
		require.NoError(t, err, name)
		require.EqualValues(t, 20, result.Limits[0].Limit.Capacity, name)
		require.Len(t, result.Candidate.Limits, 40, name)
		require.EqualValues(t, 20, result.Candidate.Limits[0].Limit.Capacity, name)
	}
}
