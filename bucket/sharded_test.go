package bucket_test

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// shardedOperations is how many operations the model of shards has in each world.
var shardedOperations = flag.Int("sharded-operations", 3000, "how many operations come in each world of shards")

// shardWorlds is how many worlds of shards there are in which everything fails.
var shardWorlds = flag.Uint64("shard-worlds", 12, "how many worlds of shards there are")

// sharedSecond is the limit of a tenant whose shards are full at once: 3 000 points a second.
var sharedSecond = bucket.Limit{Name: "second", Capacity: 3000, Refill: 3000, Period: time.Second}

// troubledShards is a world in which everything fails at times.
func troubledShards(n uint64) *shardedWorld {
	limit := sharedSecond
	if n%3 == 1 {
		limit.Capacity = 6000
	}
	w := newShardedWorld(n, limit, 2+int(n%3), 1+int(n%4))
	w.loss, w.slow = int(n%5)*2, 1+int64(n%7)*4
	if n%11%5 == 0 {
		w.late = 3
	}
	return w
}

func TestShardsAdmitNoMoreThanTheLimitInAnyIntervalWhateverIsLostRepeatedLateOrStopped(t *testing.T) {
	t.Parallel()
	first := lawSeed(t)
	for n := range *shardWorlds {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			w := troubledShards(first + n)
			require.NoError(t, w.start())
			require.NoError(t, w.run(*shardedOperations, true))
			require.Positive(t, w.admitted)
		})
	}
}

func TestAMistakeInTheProtocolOfShardsIsFound(t *testing.T) {
	t.Parallel()
	for mistake, faults := range map[string]bool{
		"the message is not stored before it is sent": true, "the lease is counted from the answer": true, "the number is advanced by two": false,
	} {
		t.Run(mistake, func(t *testing.T) {
			t.Parallel()
			var found error
			n := uint64(0)
			for ; found == nil && n < 60; n++ {
				w := troubledShards(n)
				// What is wrong shows where answers come late.
				switch w.mistake, w.late = mistake, 3; {
				case !faults:
					w.loss, w.slow = 0, 0
				case mistake == "the lease is counted from the answer":
					// Home waits for longer than most answers take. It is found much sooner where few of them are late by seconds as well.
					w.slow, w.late = 1000, 30
				}
				require.NoError(t, w.start())
				if found = w.run(2000, faults); found == nil && !faults && len(w.names) > len(w.shards)+1 {
					found = fmt.Errorf("%d shards have had %d names, though nothing failed", len(w.shards), len(w.names))
				}
			}
			require.Error(t, found)
			t.Logf("world %d: %v", n-1, found)
		})
	}
}

// crossedHome is home, which somebody else asks while the second exchange is on its way back. The fourth one does not arrive.
type crossedHome struct {
	*bucket.Memory
	exchanges int
	meanwhile func()
}

func (h *crossedHome) Exchange(ctx context.Context, e bucket.Exchange) (bucket.Exchanged, error) {
	h.exchanges++
	at := h.exchanges
	if at == 4 {
		return bucket.Exchanged{}, bucket.ErrUnavailable
	}
	x, err := h.Memory.Exchange(ctx, e)
	if at == 2 {
		h.meanwhile()
	}
	return x, err
}

func TestAnInstanceThatSendsTheFirstMessageOfAShardAgainTakesNothingFromIt(t *testing.T) {
	t.Parallel()
	now := time.Second
	clock := func() time.Time { return time.UnixMilli(1 << 41).Add(now) }
	home, shard := &crossedHome{Memory: bucket.NewMemory(bucket.MemoryConfig{Clock: clock})}, bucket.NewMemory(bucket.MemoryConfig{Clock: clock})
	limits := compile(t, sharedSecond)
	take := func() {
		instance, err := bucket.NewSharded(home, shard, bucket.ShardedConfig{Clock: func() time.Duration { return now }})
		require.NoError(t, err)
		instance.Allow(true)
		result, err := instance.Take(context.Background(), bucket.Take{
			Tenant: "acme", Buckets: []bucket.Bucket{{Limits: limits}}, Amounts: points(1), Lease: bucket.LeaseAlways,
		})
		require.NoError(t, err)
		require.Equal(t, bucket.Admitted, result.Verdict)
	}
	home.meanwhile = func() {
		now += 150 * time.Millisecond
		take()
	}
	take()
	require.Equal(t, 4, home.exchanges)
	unit, _, _ := bucket.LeasingOf(limits)
	held := bucket.ShardHolds(shard, "acme", clock().UnixMilli())
	require.Positive(t, held.Capacity)
	leases, err := home.Leases(context.Background(), "acme", []bucket.Bucket{{Limits: limits}})
	require.NoError(t, err)
	require.Len(t, leases, 1, "home knows what the shard holds")
	require.Equal(t, held.Capacity/unit, leases[0].Capacity)
}

func TestShardsThatNothingHappensToKeepTheirNames(t *testing.T) {
	t.Parallel()
	for n := range uint64(6) {
		w := troubledShards(n)
		w.loss, w.slow = 0, 0
		require.NoError(t, w.start())
		require.NoError(t, w.run(4000, false))
		require.LessOrEqual(t, len(w.names), len(w.shards))
	}
}

func TestShardsUseWhatOneBucketWould(t *testing.T) {
	t.Parallel()
	w := newShardedWorld(3, bucket.Limit{Name: "second", Capacity: 50_000, Refill: 50_000, Period: time.Second}, 3, 20)
	require.NoError(t, w.start())
	// What comes is twice the limit: 25 points on average, four times a millisecond.
	for range 4000 {
		w.now += time.Millisecond
		for range 4 {
			w.act()
		}
	}
	before, begin := w.admitted, w.now
	for range 8000 {
		w.now += time.Millisecond
		for range 4 {
			w.act()
		}
	}
	used := float64(w.admitted-before) / (50_000 * (w.now - begin).Seconds())
	var exchanges, central uint64
	for _, i := range w.takers {
		stats := i.store.Stats()
		exchanges, central = exchanges+stats.Exchanges, central+stats.Central
	}
	t.Logf("%.2f %% used, %d exchanges and %d takes at home in 12 s", 100*used, exchanges, central)
	require.NoError(t, w.fail)
	require.Zero(t, w.excess.Sign())
	require.GreaterOrEqual(t, used, 0.99)
}

// oneShard is a world of two shards of two instances each, in which nothing fails by itself. The first two instances are of the first shard, which holds something.
func oneShard(t *testing.T) *shardedWorld {
	t.Helper()
	w := newShardedWorld(1, sharedSecond, 2, 2)
	require.NoError(t, w.start())
	for range 300 {
		w.now += 4 * time.Millisecond
		w.act()
	}
	return w
}

// takeAlone has an instance take a point while home does not answer.
func (w *shardedWorld) takeAlone(i *taker) (bucket.Result, error) {
	i.shard.home.away = w.now + time.Minute
	return i.store.Take(context.Background(), bucket.Take{
		Tenant: "acme", Buckets: []bucket.Bucket{{Limits: w.limits}}, Amounts: points(1), Lease: bucket.LeaseAlways,
	})
}

func TestAShardWhoseClockIsSetBackGivesNothingAfterItsLeaseHasEnded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		begin bool
		after time.Duration
		trust bool
		gives bool
	}{
		{"to an instance that knows it", false, 2500 * time.Millisecond, false, false},
		{"to one that has just begun", true, 2500 * time.Millisecond, false, false},
		{"but it would if it were believed", false, 2500 * time.Millisecond, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := oneShard(t)
			i := w.takers[0]
			if c.trust {
				w.mistake = "the clock of a shard is believed"
			}
			_, err := w.takeAlone(i)
			require.NoError(t, err)
			// Nobody asks until after the lease, and then the clock says again what it said a moment after the last take.
			w.now += c.after
			i.shard.step -= c.after - 60*time.Millisecond
			i.shard.stepped = true
			if c.begin {
				require.NoError(t, w.begins(i))
			}
			result, err := w.takeAlone(i)
			if c.gives {
				require.NoError(t, err)
				require.Equal(t, bucket.Admitted, result.Verdict)
				return
			}
			require.ErrorIs(t, err, bucket.ErrUnavailable)
		})
	}
}

func TestAShardGoesOnWithoutHomeUntilItsLeaseEndsAndThenGivesNothing(t *testing.T) {
	t.Parallel()
	w := oneShard(t)
	i := w.takers[0]
	result, err := w.takeAlone(i)
	require.NoError(t, err)
	require.Equal(t, bucket.Admitted, result.Verdict)
	admitted := 0
	for begin := w.now; w.now < begin+3*time.Second; w.now += 10 * time.Millisecond {
		if _, err = w.takeAlone(w.takers[0]); err == nil {
			admitted++
			require.Less(t, w.now-begin, 2*time.Second)
		}
	}
	require.Greater(t, admitted, 50)
	require.ErrorIs(t, err, bucket.ErrUnavailable)
}

func TestAShardWhoseStateBecomesOlderAdmitsAgainAtMostWhatItAdmittedSince(t *testing.T) {
	t.Parallel()
	first := lawSeed(t)
	for n := range uint64(6) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			w := troubledShards(first + n)
			w.loss, w.older = 0, true
			require.NoError(t, w.start())
			require.NoError(t, w.run(*shardedOperations, true))
			t.Logf("%d points were forgotten; %v thousandths more than the limit admitted", w.lost, w.excess)
		})
	}
}

// newShared is an instance of a shard, all in memory.
func newShared(t *testing.T) (*bucket.Sharded, *bucket.Memory) {
	t.Helper()
	clock := func() time.Time { return time.UnixMilli(1 << 41) }
	home := bucket.NewMemory(bucket.MemoryConfig{Clock: clock})
	s, err := bucket.NewSharded(home, bucket.NewMemory(bucket.MemoryConfig{Clock: clock}), bucket.ShardedConfig{Clock: func() time.Duration { return time.Second }})
	require.NoError(t, err)
	s.Allow(true)
	return s, home
}

func TestATakeThatHomeRefusesIsPutBackIntoTheShard(t *testing.T) {
	t.Parallel()
	s, home := newShared(t)
	tenant, user := compile(t, sharedSecond), compile(t, bucket.Limit{Name: "user", Capacity: 10, Period: time.Minute})
	take := func(n int64) bucket.Result {
		result, err := s.Take(context.Background(), bucket.Take{
			Tenant: "acme", Amounts: points(n), Lease: bucket.LeaseAlways,
			Buckets: []bucket.Bucket{{Limits: tenant}, {Owner: bucket.Owner{Level: bucket.User, Name: "u"}, Limits: user}},
		})
		require.NoError(t, err)
		require.Len(t, result.Limits, 2)
		return result
	}
	admitted := take(4)
	require.Equal(t, bucket.Admitted, admitted.Verdict)
	refused := take(8)
	require.Equal(t, bucket.Limited, refused.Verdict)
	require.True(t, refused.Limits[1].Exceeded)
	after := take(1)
	require.Equal(t, bucket.Admitted, after.Verdict)
	require.Equal(t, admitted.Limits[0].Remaining-1, after.Limits[0].Remaining, "what was refused was not charged")
	require.EqualValues(t, 3, s.Stats().Mixed)
	settled, err := s.Settle(context.Background(), bucket.Settlement{Receipt: admitted.Receipt, Actual: points(1)})
	require.NoError(t, err)
	require.True(t, settled.Applied)
	settled, err = s.Settle(context.Background(), bucket.Settlement{Receipt: admitted.Receipt, Actual: points(1)})
	require.NoError(t, err)
	require.False(t, settled.Applied, "a receipt is settled once")
	last := take(1)
	require.Equal(t, after.Limits[0].Remaining+3-1, last.Limits[0].Remaining, "what was not needed came back once")
	states, err := home.Peek(context.Background(), "acme", []bucket.Bucket{{Owner: bucket.Owner{Level: bucket.User, Name: "u"}, Limits: user}})
	require.NoError(t, err)
	require.EqualValues(t, 10-4-1-1+3, states[0].Remaining)
}

func TestAKeyIsAnsweredWhenTheShardHasNothingLeft(t *testing.T) {
	t.Parallel()
	s, _ := newShared(t)
	take := bucket.Take{Tenant: "acme", Amounts: points(5), Lease: bucket.LeaseAlways, Buckets: []bucket.Bucket{{Limits: compile(t, sharedSecond)}}}
	verdict := func(claim *idempotency.Claim) bucket.Verdict {
		take.Claim = claim
		result, err := s.Take(context.Background(), take)
		require.NoError(t, err)
		return result.Verdict
	}
	require.Equal(t, bucket.Admitted, verdict(newClaim("12345678")))
	for s.Stats().Refused == 0 {
		verdict(nil)
	}
	require.Equal(t, bucket.InFlight, verdict(newClaim("12345678")))
	require.Equal(t, bucket.Limited, verdict(newClaim("87654321")))
	require.Equal(t, bucket.Limited, verdict(nil))
}

func TestATenantWithAnOverrideRecordIsOneOfHome(t *testing.T) {
	t.Parallel()
	s, home := newShared(t)
	take := func() bucket.Result {
		result, err := s.Take(context.Background(), bucket.Take{
			Tenant: "acme", Amounts: points(1), Lease: bucket.LeaseAlways, Buckets: []bucket.Bucket{{Limits: compile(t, sharedSecond)}}, Owners: []bucket.Owner{{}},
		})
		require.NoError(t, err)
		return result
	}
	_, err := home.SetOverride(context.Background(), "acme", bucket.Override{Blocked: true, Reason: "abuse", Actor: "ops"})
	require.NoError(t, err)
	require.Equal(t, bucket.Blocked, take().Verdict)
	require.Zero(t, s.Stats().Exchanges, "nothing is leased of who has records")
}

func TestWhatCannotBeDividedIsTakenFromHome(t *testing.T) {
	t.Parallel()
	soft := sharedSecond
	soft.Soft = true
	for name, take := range map[string]bucket.Take{
		"a window":         {Buckets: []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "day", Capacity: 100, Window: bucket.Window{Kind: bucket.DayWindow}})}}, Lease: bucket.LeaseAlways},
		"a soft limit":     {Buckets: []bucket.Bucket{{Limits: compile(t, soft)}}, Lease: bucket.LeaseAlways},
		"a mode of auto":   {Buckets: []bucket.Bucket{{Limits: compile(t, sharedSecond)}}, Lease: bucket.LeaseAuto},
		"a user by itself": {Buckets: []bucket.Bucket{{Owner: bucket.Owner{Level: bucket.User, Name: "u"}, Limits: compile(t, sharedSecond)}}, Lease: bucket.LeaseAlways},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := newShared(t)
			take.Tenant, take.Amounts = "acme", points(1)
			result, err := s.Take(context.Background(), take)
			require.NoError(t, err)
			require.Equal(t, bucket.Admitted, result.Verdict)
			require.Zero(t, s.Stats())
		})
	}
}
