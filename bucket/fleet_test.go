package bucket_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

func TestEveryStoreCountsTheInstancesThatWereHeardOf(t *testing.T) {
	t.Parallel()
	redisClock, memoryClock := newClock(), newClock()
	inRedis := newRedisStore(t, patientClient(t, redistest.Start(t).Addr))
	require.NoError(t, inRedis.SetTestClock(redisClock.unixMilli))
	for name, store := range map[string]struct {
		bucket.Fleet
		*clock
	}{
		"redis":  {inRedis, redisClock},
		"memory": {bucket.NewMemory(bucket.MemoryConfig{Clock: memoryClock.now}), memoryClock},
	} {
		beat := func(instance bucket.Instance) int {
			n, err := store.Beat(context.Background(), instance)
			require.NoError(t, err)
			return n
		}
		one, two, three := bucket.NewInstance(), bucket.NewInstance(), bucket.NewInstance()
		require.Equal(t, 1, beat(one), name)
		require.Equal(t, 1, beat(one), name)
		require.Equal(t, 2, beat(two), name)
		store.advance(bucket.BeatLife - time.Millisecond)
		require.Equal(t, 3, beat(three), name)
		store.advance(time.Millisecond)
		require.Equal(t, 1, beat(three), "%s: the first two are no longer believed to live", name)
		require.Equal(t, 2, beat(one), name)
		store.advance(-time.Hour)
		require.Equal(t, 1, beat(two), "%s: a clock that was set back", name)
	}
}

func TestAFleetIsCountedNoFurtherThanItCanBeServed(t *testing.T) {
	t.Parallel()
	store := newRedisStore(t, patientClient(t, redistest.Start(t).Addr))
	for i := range bucket.MaxInstances + 5 {
		n, err := store.Beat(context.Background(), bucket.Instance([]byte(fmt.Sprintf("%08d", i))))
		require.NoError(t, err)
		require.Equal(t, min(i+1, bucket.MaxInstances+1), n)
	}
	local, err := bucket.NewLocal(store, bucket.LocalConfig{})
	require.NoError(t, err)
	require.NoError(t, local.Beat(context.Background()))
	require.Zero(t, local.Instances(), "nobody knows how small a share would be safe")
}

func TestBeatsCountTheInstancesThatLive(t *testing.T) {
	t.Parallel()
	s := newScene(t, 3, bucket.LocalConfig{})
	b := bucket.Bucket{Limits: compile(t, localLimit(1000, bucket.TokenBucket))}
	for i, r := range s.replicas {
		r.take(1, b)
		require.Equal(t, i+1, r.local.Instances())
		require.False(t, r.local.BeatDue())
	}
	s.clock.advance(bucket.BeatEvery)
	s.replicas[0].take(1, b)
	require.Equal(t, 3, s.replicas[0].local.Instances())
	s.goAway()
	s.clock.advance(10 * bucket.BeatLife)
	require.ErrorIs(t, s.replicas[0].local.Beat(context.Background()), bucket.ErrUnavailable)
	require.Equal(t, 3, s.replicas[0].local.Instances(), "as many as there were last")
	s.comeBack()
	s.clock.advance(bucket.BeatEvery)
	require.NoError(t, s.replicas[0].local.Beat(context.Background()))
	require.Equal(t, 1, s.replicas[0].local.Instances(), "those that are not heard of are forgotten")
}
