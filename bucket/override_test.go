package bucket_test

import (
	"context"
	"fmt"
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

// countCalls counts the commands of a client.
type countCalls struct{ n atomic.Int64 }

func (c *countCalls) DialHook(next redis.DialHook) redis.DialHook { return next }
func (c *countCalls) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmd)
	}
}

func (c *countCalls) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func setOverride(t *testing.T, store bucket.OverrideStore, o bucket.Override) {
	t.Helper()
	o.Reason, o.Actor = "test", "test"
	_, err := store.SetOverride(context.Background(), "acme", o)
	require.NoError(t, err)
}

func TestAnOverrideHoldsInEveryProcessFromTheNextTakeOn(t *testing.T) {
	t.Parallel()
	ctx, addr := context.Background(), redistest.Start(t).Addr
	operator, calls := newRedisStore(t, patientClient(t, addr)), &countCalls{}
	client := patientClient(t, addr)
	client.AddHook(calls)
	server := newRedisStore(t, client)
	take := bucket.Take{
		Tenant:  "acme",
		Buckets: []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "day", Capacity: 100, Refill: 1, Period: 24 * time.Hour})}},
		Amounts: points(1),
	}
	// late is how many calls came so late on a busy machine that they were sent again.
	late := int64(0)
	takes := func(want bucket.Verdict, capacity, wantCalls int64) {
		t.Helper()
		before := calls.n.Load()
		result, err := server.Take(ctx, take)
		require.NoError(t, err)
		require.Equal(t, want, result.Verdict)
		if capacity > 0 {
			require.Equal(t, capacity, result.Limits[0].Limit.Capacity)
		}
		more := calls.n.Load() - before - wantCalls
		require.GreaterOrEqual(t, more, int64(0), "calls of Redis")
		late += more
	}
	// The first one connects, and brings the script.
	_, err := server.Take(ctx, take)
	require.NoError(t, err)
	takes(bucket.Admitted, 100, 1)
	for capacity := int64(1000); capacity > 990; capacity-- {
		setOverride(t, operator, bucket.Override{Limit: "day", Capacity: capacity})
		takes(bucket.Admitted, capacity, 2)
		takes(bucket.Admitted, capacity, 1)
	}
	setOverride(t, operator, bucket.Override{Blocked: true})
	takes(bucket.Blocked, 0, 2)
	takes(bucket.Blocked, 0, 1)
	_, err = operator.ClearOverrides(ctx, "acme")
	require.NoError(t, err)
	takes(bucket.Admitted, 100, 2)
	takes(bucket.Admitted, 100, 1)
	require.LessOrEqual(t, late, int64(2), "calls of Redis beyond one, and two after a change")
}

// TestWhatIsAdmittedUnderLoadIsWhatTheRecordsAllow counts what two processes admit while a third changes
// the records.
func TestWhatIsAdmittedUnderLoadIsWhatTheRecordsAllow(t *testing.T) {
	t.Parallel()
	ctx, addr := context.Background(), redistest.Start(t).Addr
	operator := newRedisStore(t, patientClient(t, addr))
	// No token comes back while the test runs.
	limits := compile(t, bucket.Limit{Name: "year", Capacity: 1, Refill: 1, Period: maxPeriod})
	var admitted atomic.Int64
	var callers sync.WaitGroup
	until := make(chan struct{})
	for range 2 {
		server := newRedisStore(t, patientClient(t, addr))
		for range 3 {
			callers.Go(func() {
				for {
					select {
					case <-until:
						return
					default:
					}
					result, err := server.Take(ctx, bucket.Take{
						Tenant: "acme", Buckets: []bucket.Bucket{{Limits: limits}}, Amounts: points(1),
					})
					if err != nil {
						t.Error(err)
						return
					}
					if result.Verdict == bucket.Admitted {
						admitted.Add(1)
					}
				}
			})
		}
	}
	// The capacity goes up, down and up again, in other units of debt each time, and what is admitted is
	// what the highest so far allows.
	for i, step := range []struct{ capacity, want int64 }{{50, 50}, {20, 50}, {120, 120}, {1, 120}, {300, 300}} {
		setOverride(t, operator, bucket.Override{
			Limit: "year", Capacity: step.capacity, Refill: step.capacity, Period: maxPeriod - time.Duration(i)*time.Second,
		})
		require.Eventually(t, func() bool { return admitted.Load() >= step.want }, patience, time.Millisecond)
		if step.want > step.capacity {
			continue
		}
		states, err := operator.Peek(ctx, "acme", []bucket.Bucket{{Limits: limits}})
		require.NoError(t, err)
		require.Equal(t, step.capacity, states[0].Limit.Capacity)
	}
	_, err := operator.ClearOverrides(ctx, "acme")
	require.NoError(t, err)
	close(until)
	callers.Wait()
	require.EqualValues(t, 300, admitted.Load(), "admitted in all")
}

func TestOverridesThatCannotBeReadRefuseNothingSilently(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := patientClient(t, redistest.Start(t).Addr)
	store := newRedisStore(t, client)
	buckets := []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "day", Capacity: 100, Period: 24 * time.Hour})}}
	setOverride(t, store, bucket.Override{Limit: "day", Capacity: 10})
	key := store.OverridesKey("acme")
	stored, err := client.Get(ctx, key).Result()
	require.NoError(t, err)
	for name, broken := range map[string]string{
		"version": "\x09" + stored[1:], "cut": stored[:len(stored)-1], "longer": stored + "\x00", "size": stored[:9] + "\x00" + stored[10:],
		"level": stored[:12] + "\x09" + stored[13:],
	} {
		require.NoError(t, client.Set(ctx, key, broken, 0).Err())
		// A process that does not know the records asks what they are.
		_, err = newRedisStore(t, client).Take(ctx, bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(1)})
		require.ErrorIs(t, err, bucket.ErrUnavailable, name)
		_, err = store.ListOverrides(ctx, "acme")
		require.ErrorIs(t, err, bucket.ErrUnavailable, name)
		require.NotErrorIs(t, err, bucket.ErrAmbiguous, name)
		removed, err := store.ClearOverrides(ctx, "acme")
		require.NoError(t, err, name)
		require.Empty(t, removed, name)
		require.Zero(t, client.Exists(ctx, key).Val(), name)
		all, err := store.ListOverrides(ctx, "acme")
		require.NoError(t, err, name)
		require.Empty(t, all, name)
	}
	require.NoError(t, client.Set(ctx, key, stored, 0).Err())
	states, err := store.Peek(ctx, "acme", buckets)
	require.NoError(t, err)
	require.EqualValues(t, 10, states[0].Remaining)
}

func TestRecordsLeaveRedisWhenTheLastHasExpired(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := patientClient(t, redistest.Start(t).Addr)
	store := newRedisStore(t, client)
	expires := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	life := func() time.Duration {
		life, err := client.PExpireTime(ctx, store.OverridesKey("acme")).Result()
		require.NoError(t, err)
		return life
	}
	setOverride(t, store, bucket.Override{Limit: "day", Capacity: 1, Expires: expires})
	require.Equal(t, expires.UnixMilli(), life().Milliseconds())
	setOverride(t, store, bucket.Override{Limit: "hour", Capacity: 1, Expires: expires.Add(-time.Minute)})
	require.Equal(t, expires.UnixMilli(), life().Milliseconds())
	setOverride(t, store, bucket.Override{Limit: "minute", Capacity: 1})
	require.EqualValues(t, -1, life(), "no end")
	_, err := store.DeleteOverride(ctx, "acme", bucket.Owner{}, "minute")
	require.NoError(t, err)
	require.Equal(t, expires.UnixMilli(), life().Milliseconds())
}

func TestMemoryHoldsNoMoreRecordsThanItHasEntries(t *testing.T) {
	t.Parallel()
	store := bucket.NewMemory(bucket.MemoryConfig{MaxEntries: 5})
	set := func(i int) error {
		_, err := store.SetOverride(context.Background(), fmt.Sprint("tenant-", i), bucket.Override{Blocked: true, Reason: "r", Actor: "a"})
		return err
	}
	for i := range 5 {
		require.NoError(t, set(i))
	}
	require.ErrorIs(t, set(5), bucket.ErrOverridesFull)
	require.NoError(t, set(4), "replacing takes no room")
	_, err := store.ClearOverrides(context.Background(), "tenant-0")
	require.NoError(t, err)
	require.NoError(t, set(5))
}

func TestExpiredRecordsOfIdleTenantsHoldNoRoomInMemory(t *testing.T) {
	t.Parallel()
	c := newClock()
	store := bucket.NewMemory(bucket.MemoryConfig{MaxEntries: 5, Clock: c.now})
	set := func(tenant, user string, expires time.Time) error {
		_, err := store.SetOverride(context.Background(), tenant, bucket.Override{
			Owner: bucket.Owner{Level: bucket.User, Name: user}, Blocked: true, Expires: expires, Reason: "r", Actor: "a",
		})
		return err
	}
	soon := c.now().Add(time.Second)
	for i := range 3 {
		require.NoError(t, set(fmt.Sprint("tenant-", i), "ann", soon))
	}
	// Of this tenant one record stays.
	require.NoError(t, set("tenant-3", "ann", soon))
	require.NoError(t, set("tenant-3", "bob", time.Time{}))
	require.ErrorIs(t, set("new", "ann", time.Time{}), bucket.ErrOverridesFull)
	c.advance(time.Second)
	for i := range 4 {
		require.NoError(t, set(fmt.Sprint("new-", i), "ann", time.Time{}))
	}
	require.ErrorIs(t, set("new", "ann", time.Time{}), bucket.ErrOverridesFull)
}

func FuzzOverrides(f *testing.F) {
	f.Add("")
	f.Add("\x01generat")
	f.Add("\x01generat\x00\x2b\x00\x03\x00\x00\x00" + strings.Repeat("\x00", 36) + "ra")
	f.Add("\x01generat\xff\xff\xff\xff")
	f.Fuzz(func(t *testing.T, text string) {
		records, err := bucket.ReadOverrides(text)
		if err != nil {
			require.Zero(t, records)
		}
		require.LessOrEqual(t, records, len(text)/43)
	})
}

func TestAProcessRemembersTheRecordsOfABoundedNumberOfTenants(t *testing.T) {
	t.Parallel()
	ctx, client := context.Background(), patientClient(t, redistest.Start(t).Addr)
	store := newRedisStore(t, client)
	buckets := []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "day", Capacity: 100, Period: 24 * time.Hour})}}
	// Each has half the bytes that it may have: a quarter more of them than a process remembers.
	const tenants = 2 * 16 << 20 / maxOverrideBytes * 5 / 4
	seed := newRedisStore(t, client)
	for n := range 20 {
		_, err := seed.SetOverride(ctx, "seed", bucket.Override{
			Owner:   bucket.Owner{Level: bucket.User, Name: fmt.Sprintf("%0*d", maxOverrideOwner, n)},
			Blocked: true, Reason: strings.Repeat("r", maxOverrideReason), Actor: "a",
		})
		require.NoError(t, err)
	}
	records, err := client.Get(ctx, seed.OverridesKey("seed")).Result()
	require.NoError(t, err)
	for i := range tenants {
		tenant := fmt.Sprint("tenant-", i)
		require.NoError(t, client.Set(ctx, store.OverridesKey(tenant), records, 0).Err())
		_, err := store.Peek(ctx, tenant, buckets)
		require.NoError(t, err)
	}
	known := store.KnownOverrides()
	require.LessOrEqual(t, known, 16<<20/len(records))
	require.Greater(t, known, 16<<20/len(records)-2)
}

func TestACandidateThatCannotBeReadLeavesEveryByteAsItWas(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := patientClient(t, redistest.Start(t).Addr)
	store := newRedisStore(t, client)
	buckets := []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "day", Capacity: 100, Refill: 1, Period: 24 * time.Hour})}}
	take := bucket.Take{
		Tenant: "acme", Buckets: buckets, Amounts: points(1), Candidate: &bucket.Candidate{ID: "next", Buckets: buckets},
	}
	_, err := store.Take(ctx, take)
	require.NoError(t, err)
	key := store.CandidateKey("acme", "next", bucket.Owner{})
	require.NoError(t, client.SetRange(ctx, key, 0, "\x09").Err())
	before := everything(ctx, t, client)
	_, err = store.Take(ctx, take)
	require.ErrorIs(t, err, bucket.ErrUnavailable)
	require.Equal(t, before, everything(ctx, t, client))
}

func TestARecordForALimitThatThePolicyDoesNotHaveDoesNotApply(t *testing.T) {
	t.Parallel()
	limits := compile(t, bucket.Limit{Name: "minute", Capacity: 100, Period: time.Minute})
	record := bucket.Override{Limit: "minuet", Capacity: 50, Reason: "r", Actor: "a"}
	_, err := record.Apply(limits)
	require.ErrorIs(t, err, bucket.ErrInvalid)
	require.ErrorContains(t, err, `"minuet"`)
	record.Limit = "minute"
	_, err = record.Apply(limits)
	require.NoError(t, err)
}
