package bucket_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/fleet"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// beats is a store that counts instances.
type beats interface {
	Beat(ctx context.Context, instance [8]byte) (instances int, before bool, err error)
}

func TestEveryStoreCountsTheInstancesThatWereHeardOf(t *testing.T) {
	t.Parallel()
	redisClock, memoryClock := newClock(), newClock()
	inRedis := newRedisStore(t, patientClient(t, redistest.Start(t).Addr))
	require.NoError(t, inRedis.SetTestClock(redisClock.unixMilli))
	for name, store := range map[string]struct {
		beats
		*clock
	}{
		"redis":  {inRedis, redisClock},
		"memory": {bucket.NewMemory(bucket.MemoryConfig{Clock: memoryClock.now}), memoryClock},
	} {
		beat := func(instance [8]byte) int {
			n, _, err := store.Beat(context.Background(), instance)
			require.NoError(t, err)
			return n
		}
		one, two, three := fleet.NewInstance(), fleet.NewInstance(), fleet.NewInstance()
		require.Equal(t, 1, beat(one), name)
		require.Equal(t, 1, beat(one), name)
		require.Equal(t, 2, beat(two), name)
		store.advance(fleet.BeatLife - time.Millisecond)
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
	for i := range fleet.MaxInstances + 5 {
		n, _, err := store.Beat(context.Background(), [8]byte([]byte(fmt.Sprintf("%08d", i))))
		require.NoError(t, err)
		require.Equal(t, min(i+1, fleet.MaxInstances+1), n)
	}
	local, err := bucket.NewLocal(store, fleet.Config{})
	require.NoError(t, err)
	require.NoError(t, local.Beat(context.Background()))
	require.Zero(t, local.Instances(), "nobody knows how small a share would be safe")
}

func TestBeatsCountTheInstancesThatLive(t *testing.T) {
	t.Parallel()
	s := newScene(t, 3, fleet.Config{})
	b := bucket.Bucket{Limits: compile(t, localLimit(1000, bucket.TokenBucket))}
	for _, r := range s.replicas {
		r.take(1, b)
		require.Zero(t, r.local.Instances(), "instances that start together are told one, two and three")
		require.False(t, r.local.BeatDue())
	}
	s.clock.advance(fleet.BeatEvery)
	for _, r := range s.replicas {
		r.take(1, b)
		require.Equal(t, 3, r.local.Instances())
	}
	s.goAway()
	s.clock.advance(10 * fleet.BeatLife)
	beat := s.replicas[0].local.Beat
	require.ErrorIs(t, beat(context.Background()), bucket.ErrUnavailable)
	require.Equal(t, 3, s.replicas[0].local.Instances(), "as many as there were last")
	s.comeBack()
	s.clock.advance(fleet.BeatEvery)
	require.NoError(t, beat(context.Background()))
	require.Equal(t, 3, s.replicas[0].local.Instances(), "the others have not been heard of yet")
	s.clock.advance(fleet.BeatEvery)
	require.NoError(t, beat(context.Background()))
	require.Equal(t, 3, s.replicas[0].local.Instances(), "one beat says that there are fewer")
	s.clock.advance(fleet.BeatEvery)
	require.NoError(t, beat(context.Background()))
	require.Equal(t, 1, s.replicas[0].local.Instances(), "those that are not heard of are forgotten")
}

func TestAStoreThatLostItsDataOnceOrInALoopMultipliesNoShares(t *testing.T) {
	t.Parallel()
	for _, replicas := range []int{3, 10, 100} {
		for _, losses := range []int{1, 2, 5} {
			s := newScene(t, replicas, fleet.Config{})
			b := bucket.Bucket{Limits: compile(t, localLimit(1_000_000, bucket.TokenBucket))}
			round := func() {
				for _, r := range s.replicas {
					r.take(0, b)
				}
				s.clock.advance(fleet.BeatEvery)
			}
			round()
			round()
			for range losses {
				s.store.Memory = bucket.NewMemory(bucket.MemoryConfig{Clock: s.clock.now})
				round()
			}
			for _, r := range s.replicas {
				require.Equal(t, replicas, r.local.Instances())
				r.take(0, b)
			}
			s.goAway()
			admitted := int64(0)
			for _, r := range s.replicas {
				admitted += r.drain(1000, b)
			}
			require.LessOrEqual(t, admitted, int64(700_000))
		}
	}
}

func TestInstancesThatStartTogetherAdmitNoMoreThanTheRefill(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{0, fleet.BeatEvery} {
		s := newScene(t, 10, fleet.Config{KnownFor: -1})
		b := bucket.Bucket{Limits: compile(t, localLimit(6000, bucket.TokenBucket))}
		for _, r := range s.replicas {
			r.take(0, b)
		}
		s.clock.advance(wait)
		for _, r := range s.replicas {
			r.take(0, b)
		}
		s.goAway()
		admitted := int64(0)
		for range 60 {
			for _, r := range s.replicas {
				admitted += r.drain(1, b)
			}
			s.clock.advance(time.Second)
		}
		if wait == 0 {
			require.Zero(t, admitted, "nobody knows how many there are")
			continue
		}
		require.InDelta(t, 4200, admitted, 100, "0.7 of the refill of a minute")
	}
}
