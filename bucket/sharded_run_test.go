package bucket_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// failingHome is home, which does not answer so many settlements. While it exchanges something else happens.
type failingHome struct {
	*bucket.Memory
	fails     int
	meanwhile func()
}

func (h *failingHome) Settle(ctx context.Context, s bucket.Settlement) (bucket.Settled, error) {
	if h.fails--; h.fails >= 0 {
		return bucket.Settled{}, bucket.ErrUnavailable
	}
	return h.Memory.Settle(ctx, s)
}

func (h *failingHome) Exchange(ctx context.Context, e bucket.Exchange) (bucket.Exchanged, error) {
	if h.meanwhile != nil {
		h.meanwhile()
	}
	return h.Memory.Exchange(ctx, e)
}

// newFailing is an instance of a shard of such a home, by the clock of the system.
func newFailing(t *testing.T, cfg bucket.ShardedConfig) (*bucket.Sharded, *failingHome, *endingShard) {
	t.Helper()
	home, shard := &failingHome{Memory: bucket.NewMemory(bucket.MemoryConfig{})}, &endingShard{Memory: bucket.NewMemory(bucket.MemoryConfig{})}
	s, err := bucket.NewSharded(home, shard, cfg)
	require.NoError(t, err)
	s.Allow(true)
	return s, home, shard
}

// endingShard is a shard that does nothing for whose context has ended, as one in another process.
type endingShard struct {
	*bucket.Memory
	// frozen says that it does not answer, whatever it does.
	frozen bool
	// meanwhile happens while a take or a settlement asks it, once.
	meanwhile func()
}

func (s *endingShard) Shard(ctx context.Context, call bucket.ShardCall) (bucket.ShardAnswer, error) {
	if ctx.Err() != nil {
		return bucket.ShardAnswer{}, bucket.ErrUnavailable
	}
	a, err := s.Memory.Shard(ctx, call)
	if kind := bucket.ShardKind(&call); s.meanwhile != nil && (kind == bucket.ShardTakeKind || kind == bucket.ShardBackKind) {
		meanwhile := s.meanwhile
		s.meanwhile = nil
		meanwhile()
	}
	if s.frozen {
		return bucket.ShardAnswer{}, bucket.ErrAmbiguous
	}
	return a, err
}

// countedTake is a take of a point that is counted.
func countedTake(t *testing.T) bucket.Take {
	t.Helper()
	return bucket.Take{
		Tenant: "acme", Buckets: []bucket.Bucket{{Limits: compile(t, sharedSecond)}}, Amounts: points(1), Lease: bucket.LeaseAlways, Usage: &bucket.Usage{},
	}
}

func TestTheEndOfAnInstanceOfAShardWaitsUntilHomeHasCountedItsUsage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var counted []string
		note := func(tenant string, _ time.Time) { counted = append(counted, tenant) }
		s, home, _ := newFailing(t, bucket.ShardedConfig{Counted: note})
		s.TellCounted(note)
		_, err := s.Take(t.Context(), countedTake(t))
		require.NoError(t, err)
		home.fails = 3
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, s.Shutdown(ctx), context.DeadlineExceeded)
		require.Empty(t, counted)
		require.NoError(t, s.Shutdown(t.Context()))
		require.Equal(t, []string{"acme", "acme"}, counted)
	})
}

// shutDown ends an instance.
func shutDown(t *testing.T, s *bucket.Sharded) {
	t.Helper()
	require.NoError(t, s.Shutdown(t.Context()))
}

// forget has an instance not think of a tenant for so long that it forgets it.
func forget(t *testing.T, s *bucket.Sharded) {
	t.Helper()
	for range 150 {
		time.Sleep(time.Second) //nolint:forbidigo // the clock of a synctest bubble
		s.Tend(t.Context())
	}
}

func TestUsageIsCountedOfAnOperationThatWasAdmittedOrSettledWhileItsInstanceEndedOrForgotItsTenant(t *testing.T) {
	t.Parallel()
	const forgotten = "it has forgotten the tenant"
	for name, meanwhile := range map[string]func(*testing.T, *bucket.Sharded){"it has ended": shutDown, forgotten: forget} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				used := func(home *failingHome) int64 {
					return counted(t, home, "acme", time.Now(), bucket.UsageLocal)[string(bucket.Points)]
				}
				s, home, shard := newFailing(t, bucket.ShardedConfig{})
				take := countedTake(t)
				take.Amounts = points(10)
				// The shard has something, so that a take asks it once.
				_, err := s.Take(t.Context(), take)
				require.NoError(t, err)
				shard.meanwhile = func() { meanwhile(t, s) }
				result, err := s.Take(t.Context(), take)
				require.NoError(t, err)
				require.Nil(t, shard.meanwhile)
				require.Equal(t, bucket.Admitted, result.Verdict)
				if name == forgotten {
					forget(t, s)
				}
				require.EqualValues(t, 20, used(home))

				s, home, shard = newFailing(t, bucket.ShardedConfig{})
				result, err = s.Take(t.Context(), take)
				require.NoError(t, err)
				shard.meanwhile = func() { meanwhile(t, s) }
				settled, err := s.Settle(t.Context(), bucket.Settlement{Receipt: result.Receipt, Actual: points(4)})
				require.NoError(t, err)
				require.True(t, settled.Applied)
				require.Nil(t, shard.meanwhile)
				if name == forgotten {
					forget(t, s)
				}
				require.EqualValues(t, 4, used(home))
			})
		})
	}
}

func TestAnInstanceOfAShardThatHasEndedTakesFromHomeWhateverItIsTold(t *testing.T) {
	t.Parallel()
	s, _, _ := newFailing(t, bucket.ShardedConfig{})
	take := countedTake(t)
	_, err := s.Take(t.Context(), take)
	require.NoError(t, err)
	require.NoError(t, s.Shutdown(t.Context()))
	_, _, err = s.Beat(t.Context(), [8]byte{1})
	require.NoError(t, err)
	s.Allow(true)
	result, err := s.Take(t.Context(), take)
	require.NoError(t, err)
	require.Equal(t, bucket.Admitted, result.Verdict)
	require.EqualValues(t, 1, s.Stats().Admitted)
}

func TestWhatAShardDoesNotAnswerHomeDecides(t *testing.T) {
	t.Parallel()
	s, _, shard := newFailing(t, bucket.ShardedConfig{})
	take := countedTake(t)
	_, err := s.Take(t.Context(), take)
	require.NoError(t, err)
	shard.frozen = true
	result, err := s.Take(t.Context(), take)
	require.NoError(t, err)
	require.Equal(t, bucket.Admitted, result.Verdict)
	require.EqualValues(t, 1, s.Stats().Admitted)
	require.EqualValues(t, 1, s.Stats().Central)
}

func TestAnExchangeOfAShardIsBroughtToItsEndWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	s, home, shard := newFailing(t, bucket.ShardedConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	home.meanwhile = cancel
	_, err := s.Take(ctx, countedTake(t))
	require.ErrorIs(t, err, bucket.ErrUnavailable, "who took is gone")
	require.NoError(t, s.Shutdown(t.Context()), "it waits for the exchange")
	record := bucket.ShardRecord(shard.Memory, "acme")
	require.False(t, bucket.ShardPending(record))
	require.Positive(t, bucket.ShardHolds(shard.Memory, "acme", time.Now().UnixMilli()).Capacity, "others take from it at once")
}

func TestAnInstanceOfAShardIsCountedOnceWhoeverSaysThatItLives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, home, _ := newFailing(t, bucket.ShardedConfig{})
		_, _, err := s.Beat(t.Context(), [8]byte{7})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
		defer cancel()
		s.Run(ctx)
		instances, before, err := home.Beat(t.Context(), [8]byte{7})
		require.NoError(t, err)
		require.True(t, before)
		require.Equal(t, 1, instances)
	})
}
