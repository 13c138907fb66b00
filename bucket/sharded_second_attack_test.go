package bucket_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// mostShared is how many tenants an instance shares at once.
const mostShared = 4096

// attackedShard is a shard to which something happens.
type attackedShard struct {
	*bucket.Memory
	// before happens before a call, once, and may be nil; lost says that the answer of the next call of this kind is lost.
	before map[int64]func()
	after  map[int64]func()
	lost   int64
	// held are calls that were not processed yet, and hold says that offers are such.
	hold  bool
	held  []bucket.ShardCall
	ticks int64
}

func (s *attackedShard) Shard(ctx context.Context, call bucket.ShardCall) (bucket.ShardAnswer, error) {
	kind := bucket.ShardKind(&call)
	if f := s.before[kind]; f != nil {
		delete(s.before, kind)
		f()
	}
	if s.hold && (kind == bucket.ShardOfferKind || kind == bucket.ShardOfferKind+1) {
		s.held = append(s.held, call)
		return bucket.ShardAnswer{}, bucket.ErrAmbiguous
	}
	a, err := s.Memory.Shard(ctx, call)
	s.ticks = max(s.ticks, a.Ticks)
	if f := s.after[kind]; f != nil {
		delete(s.after, kind)
		f()
	}
	if s.lost == kind {
		s.lost = 0
		return bucket.ShardAnswer{}, bucket.ErrAmbiguous
	}
	return a, err
}

// attackScene is an instance of a shard, all in memory, by clocks of the test.
type attackScene struct {
	*testing.T
	home  *countedHome
	shard *attackedShard
	store *bucket.Sharded
	now   time.Duration
	// homeStep and shardStep are by how much these clocks are ahead.
	homeStep, shardStep time.Duration
}

func newAttackScene(t *testing.T) *attackScene {
	t.Helper()
	s := &attackScene{T: t, now: time.Second}
	begin := time.UnixMilli(1 << 41)
	s.home = &countedHome{Memory: bucket.NewMemory(bucket.MemoryConfig{Clock: func() time.Time { return begin.Add(s.now + s.homeStep) }})}
	s.shard = s.newShard()
	s.store = s.instance(s.shard)
	return s
}

func (s *attackScene) newShard() *attackedShard {
	begin := time.UnixMilli(1 << 41)
	return &attackedShard{
		Memory: bucket.NewMemory(bucket.MemoryConfig{Clock: func() time.Time { return begin.Add(s.now + s.shardStep) }}),
		before: map[int64]func(){}, after: map[int64]func(){},
	}
}

func (s *attackScene) instance(shard bucket.ShardStore) *bucket.Sharded {
	s.Helper()
	store, err := bucket.NewSharded(s.home, shard, bucket.ShardedConfig{Clock: func() time.Duration { return s.now }})
	require.NoError(s, err)
	store.Allow(true)
	return store
}

func (s *attackScene) of(tenant string, n int64, limits ...bucket.Limit) bucket.Take {
	s.Helper()
	return bucket.Take{Tenant: tenant, Buckets: []bucket.Bucket{{Limits: compile(s.T, limits...)}}, Amounts: points(n), Lease: bucket.LeaseAlways, Usage: &bucket.Usage{}}
}

func (s *attackScene) take(store *bucket.Sharded, take bucket.Take) bucket.Result {
	s.Helper()
	result, err := store.Take(s.Context(), take)
	require.NoError(s, err)
	return result
}

func (s *attackScene) lives(d, step time.Duration, instances ...*bucket.Sharded) {
	for range d / step {
		s.now += step
		for _, i := range instances {
			i.Tend(s.Context())
		}
	}
}

func (s *attackScene) used() int64 {
	s.Helper()
	return counted(s.T, s.home, "acme", time.UnixMilli(1<<41).Add(s.now+max(s.homeStep, s.shardStep)), bucket.UsageLocal)[string(bucket.Points)]
}

func TestASettlementOfATenantThatIsNotSharedTakesNoPlaceOfOneThatIs(t *testing.T) {
	t.Parallel()
	s := newAttackScene(t)
	for i := range mostShared {
		take := s.of(fmt.Sprint("free-", i), 1, sharedSecond)
		take.Lease = bucket.LeaseAuto
		result := s.take(s.store, take)
		_, err := s.store.Settle(t.Context(), bucket.Settlement{Receipt: result.Receipt, Actual: points(1)})
		require.NoError(t, err)
	}
	was := s.home.takes
	require.Equal(t, bucket.Admitted, s.take(s.store, s.of("acme", 1, sharedSecond)).Verdict)
	require.Equal(t, was, s.home.takes, "the shard decides")
}

func TestTakesOfOneTenantUnderTwoPoliciesAtOnceDoNotPanic(t *testing.T) {
	t.Parallel()
	s := newAttackScene(t)
	minute := bucket.Limit{Name: "minute", Capacity: 3000, Period: time.Minute}
	two, one := s.of("acme", 2000, sharedSecond, minute), s.of("acme", 1, sharedSecond)
	s.take(s.store, s.of("acme", 1, sharedSecond, minute))
	for range 10 {
		s.shard.after[bucket.ShardTakeKind] = func() { s.take(s.store, one) }
		require.NotPanics(t, func() { s.take(s.store, two) })
	}
}

func TestAReceiptIsSettledOnceAfterAnotherPolicyCameToTheShard(t *testing.T) {
	t.Parallel()
	s := newAttackScene(t)
	result := s.take(s.store, s.of("acme", 10, sharedSecond))
	require.Equal(t, bucket.Admitted, result.Verdict)
	require.EqualValues(t, 1, s.store.Stats().Admitted)
	s.now += 5 * time.Second
	minute := bucket.Limit{Name: "minute", Capacity: 3000, Period: time.Minute}
	for range 10 {
		require.Equal(t, bucket.Admitted, s.take(s.store, s.of("acme", 1, minute)).Verdict)
		s.lives(20*time.Millisecond, 20*time.Millisecond, s.store)
	}
	t.Logf("%+v", s.store.Stats())
	var applied []bool
	for range 3 {
		settled, err := s.store.Settle(t.Context(), bucket.Settlement{Receipt: result.Receipt, Actual: points(4)})
		require.NoError(t, err)
		applied = append(applied, settled.Applied)
	}
	require.NoError(t, s.store.Shutdown(t.Context()))
	// The others were decided by home, and are of another grade.
	require.EqualValues(t, 4, s.used(), "of settlements that were applied: %v", applied)
	require.Equal(t, []bool{true, false, false}, applied)
}

func TestWhatWasNotNeededIsCountedWhenTheAnswerOfTheShardIsLostAndTheSettlementIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := newAttackScene(t)
	result := s.take(s.store, s.of("acme", 10, sharedSecond))
	s.shard.lost = bucket.ShardBackKind
	settlement := bucket.Settlement{Receipt: result.Receipt, Actual: points(4)}
	_, err := s.store.Settle(t.Context(), settlement)
	require.ErrorIs(t, err, bucket.ErrAmbiguous)
	_, err = s.store.Settle(t.Context(), settlement)
	require.NoError(t, err)
	require.NoError(t, s.store.Shutdown(t.Context()))
	require.EqualValues(t, 4, s.used())
}

func TestUsageIsCountedWhateverTheClocksOfTheShardAndHomeSay(t *testing.T) {
	t.Parallel()
	for behind, shared := range map[time.Duration]uint64{10 * time.Second: 1, -10 * time.Second: 1, 11 * time.Second: 0, 61 * time.Second: 0, -61 * time.Second: 0, -2 * time.Hour: 0} {
		t.Run(behind.String(), func(t *testing.T) {
			t.Parallel()
			s := newAttackScene(t)
			s.shardStep = -behind
			require.Equal(t, bucket.Admitted, s.take(s.store, s.of("acme", 10, sharedSecond)).Verdict)
			require.Equal(t, shared, s.store.Stats().Admitted, "clocks that are far apart share nothing")
			s.lives(10*time.Second, 100*time.Millisecond, s.store)
			require.NoError(t, s.store.Shutdown(t.Context()))
			exact := counted(t, s.home, "acme", time.UnixMilli(1<<41).Add(s.now), bucket.UsageExact)[string(bucket.Points)]
			require.EqualValues(t, 10, s.used()+exact)
		})
	}
}

func TestWhatAnOperationWasWorthMoreIsChargedWhateverTheClockOfTheShardSays(t *testing.T) {
	t.Parallel()
	for _, behind := range []time.Duration{10 * time.Second, 30 * time.Second, 61 * time.Second} {
		t.Run(behind.String(), func(t *testing.T) {
			t.Parallel()
			s := newAttackScene(t)
			s.shardStep = -behind
			result := s.take(s.store, s.of("acme", 10, hoarded))
			buckets := []bucket.Bucket{{Limits: compile(t, hoarded)}}
			was, err := s.home.Peek(t.Context(), "acme", buckets)
			require.NoError(t, err)
			_, err = s.store.Settle(t.Context(), bucket.Settlement{Receipt: result.Receipt, Actual: points(1010)})
			require.NoError(t, err)
			is, err := s.home.Peek(t.Context(), "acme", buckets)
			require.NoError(t, err)
			require.EqualValues(t, 1000, was[0].Remaining-is[0].Remaining+1000*int64(s.store.Stats().Unsettled))
		})
	}
}

// partHome is home of which a part does not answer, as a node of a cluster.
type partHome struct {
	*bucket.Memory
	away string
}

func (h *partHome) Settle(ctx context.Context, s bucket.Settlement) (bucket.Settled, error) {
	if h.away != "" && strings.HasPrefix(s.Tenant(), h.away) {
		return bucket.Settled{}, bucket.ErrUnavailable
	}
	return h.Memory.Settle(ctx, s)
}

func TestTheEndOfAnInstanceCountsTheTenantsOfWhomHomeAnswersWhileItDoesNotOfOthers(t *testing.T) {
	t.Parallel()
	home := &partHome{Memory: bucket.NewMemory(bucket.MemoryConfig{}), away: "away-"}
	s, err := bucket.NewSharded(home, bucket.NewMemory(bucket.MemoryConfig{}), bucket.ShardedConfig{})
	require.NoError(t, err)
	s.Allow(true)
	for i := range 40 {
		for _, kind := range []string{"away-", "there-"} {
			take := countedTake(t)
			take.Tenant = fmt.Sprint(kind, i)
			_, err := s.Take(t.Context(), take)
			require.NoError(t, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, s.Shutdown(ctx), "tenants: 40")
	for i := range 40 {
		require.EqualValues(t, 1, counted(t, home, fmt.Sprint("there-", i), time.Now(), bucket.UsageLocal)[string(bucket.Points)])
	}
}

func TestATenantThatWasDueWhileTheQueueWasFullIsForgotten(t *testing.T) {
	t.Parallel()
	s := newAttackScene(t)
	leads := s.instance(s.shard)
	fill := func(prefix string) {
		for i := range mostShared {
			take := s.of(fmt.Sprint(prefix, i), 1, sharedSecond)
			take.Usage = nil
			s.take(leads, take)
		}
		for i := range mostShared {
			take := s.of(fmt.Sprint(prefix, i), 1, sharedSecond)
			take.Usage = nil
			s.take(s.store, take)
		}
		// Who did the exchange is away for a moment, and another one is told to.
		s.now += 300 * time.Millisecond
		for i := range mostShared {
			take := s.of(fmt.Sprint(prefix, i), 1, sharedSecond)
			take.Usage = nil
			s.take(s.store, take)
		}
	}
	fill("once-")
	s.lives(3*time.Minute, time.Second, s.store, leads)
	was := s.home.takes
	for i := range 400 {
		take := s.of(fmt.Sprint("later-", i), 1, sharedSecond)
		take.Usage = nil
		require.Equal(t, bucket.Admitted, s.take(s.store, take).Verdict)
	}
	require.Equal(t, was, s.home.takes, "the shard decides")
}

func TestTheTimeOfAShardAsHomeIsToldItRunsNoFasterWhenAMessageIsStoredLate(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"late": true, "never": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newAttackScene(t)
			first, begin := s.take(s.store, s.of("acme", 1, sharedSecond)), s.now
			require.Equal(t, bucket.Admitted, first.Verdict)
			s.now += 500 * time.Millisecond
			s.shard.hold = true
			s.take(s.store, s.of("acme", 1, sharedSecond))
			s.store.Tend(t.Context())
			s.shard.hold = false
			require.NotEmpty(t, s.shard.held)
			for range 100 {
				s.take(s.store, s.of("acme", 1, sharedSecond))
				s.lives(20*time.Millisecond, 20*time.Millisecond, s.store)
			}
			if late {
				_, err := s.shard.Memory.Shard(t.Context(), s.shard.held[0])
				require.NoError(t, err)
			}
			for range 20 {
				s.take(s.store, s.of("acme", 1, sharedSecond))
				s.lives(20*time.Millisecond, 20*time.Millisecond, s.store)
			}
			require.Positive(t, s.shard.ticks)
			require.LessOrEqual(t, s.shard.ticks, (s.now - begin).Milliseconds())
		})
	}
}

func TestShardsHoldNoMoreThanTheLimitWhenAMessageIsStoredLateAndTheClockOfHomeSteps(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"late": true, "never": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for phase := range 40 {
				s := newAttackScene(t)
				other := s.newShard()
				second := s.instance(other)
				ask := func(store *bucket.Sharded, n int64) { s.take(store, s.of("acme", n, sharedSecond)) }
				ask(s.store, 20)
				s.now += 500 * time.Millisecond
				s.shard.hold = true
				ask(s.store, 20)
				s.store.Tend(t.Context())
				s.shard.hold = false
				require.NotEmpty(t, s.shard.held)
				for i := range 150 + phase {
					// Demand that changes has it exchange eight times a second.
					ask(s.store, 10+int64(i/8%2)*40)
					ask(second, 20)
					s.lives(20*time.Millisecond, 20*time.Millisecond, s.store, second)
				}
				// The other one pauses for less than its lease.
				for range 30 + phase%30 {
					ask(s.store, 100)
					s.lives(20*time.Millisecond, 20*time.Millisecond, s.store)
				}
				if late {
					_, err := s.shard.Memory.Shard(t.Context(), s.shard.held[0])
					require.NoError(t, err)
				}
				_, whole, comes := bucket.LeasingOf(compile(t, sharedSecond))
				s.homeStep += 5 * time.Second
				for range 60 {
					ask(s.store, 100)
					s.lives(20*time.Millisecond, 20*time.Millisecond, s.store)
					now := time.UnixMilli(1 << 41).Add(s.now).UnixMilli()
					a, b := bucket.ShardHolds(s.shard.Memory, "acme", now), bucket.ShardHolds(other.Memory, "acme", now)
					require.LessOrEqual(t, a.Capacity+b.Capacity, whole, "phase %d", phase)
					require.LessOrEqual(t, a.Rate+b.Rate, comes, "phase %d", phase)
				}
			}
		})
	}
}
