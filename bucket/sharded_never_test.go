package bucket_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// countedHome is home, which counts who takes of it.
type countedHome struct {
	*bucket.Memory
	takes, exchanges int
}

func (h *countedHome) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	h.takes++
	return h.Memory.Take(ctx, take)
}

func (h *countedHome) Exchange(ctx context.Context, e bucket.Exchange) (bucket.Exchanged, error) {
	h.exchanges++
	return h.Memory.Exchange(ctx, e)
}

// sharedScene is an instance of a shard, all in memory, by a clock of the test.
type sharedScene struct {
	*testing.T
	home  *countedHome
	shard *bucket.Memory
	store *bucket.Sharded
	now   time.Duration
}

func newSharedScene(t *testing.T) *sharedScene {
	t.Helper()
	s := &sharedScene{T: t, now: time.Second}
	clock := func() time.Time { return time.UnixMilli(1 << 41).Add(s.now) }
	s.home = &countedHome{Memory: bucket.NewMemory(bucket.MemoryConfig{Clock: clock})}
	s.shard = bucket.NewMemory(bucket.MemoryConfig{Clock: clock})
	s.store = s.instance()
	return s
}

// instance is another one of the shard.
func (s *sharedScene) instance() *bucket.Sharded {
	s.Helper()
	store, err := bucket.NewSharded(s.home, s.shard, bucket.ShardedConfig{Clock: func() time.Duration { return s.now }})
	require.NoError(s, err)
	store.Allow(true)
	return store
}

// of is a take of points of the tenant.
func (s *sharedScene) of(n int64, limits ...bucket.Limit) bucket.Take {
	s.Helper()
	return bucket.Take{
		Tenant: "acme", Buckets: []bucket.Bucket{{Limits: compile(s.T, limits...)}}, Owners: []bucket.Owner{{}}, Amounts: points(n), Lease: bucket.LeaseAlways,
	}
}

// ask has an instance take.
func (s *sharedScene) ask(store *bucket.Sharded, take bucket.Take) bucket.Result {
	s.Helper()
	result, err := store.Take(s.Context(), take)
	require.NoError(s, err)
	return result
}

// lives lets time pass, in which the instances do what they do all the time.
func (s *sharedScene) lives(d time.Duration, instances ...*bucket.Sharded) {
	for range d / (20 * time.Millisecond) {
		s.now += 20 * time.Millisecond
		for _, i := range instances {
			i.Tend(s.Context())
		}
	}
}

// hoarded is a limit of which next to nothing comes back.
var hoarded = bucket.Limit{Name: "hour", Capacity: 100_000, Refill: 2, Period: time.Hour}

func TestAShardRefusesWhatNoLimitCanHoldAndHomeIsNotAsked(t *testing.T) {
	t.Parallel()
	s := newSharedScene(t)
	watching := bucket.Limit{Name: "watching", Capacity: 2000, Refill: 1, Period: time.Hour, Mode: bucket.Shadow}
	require.Equal(t, bucket.Admitted, s.ask(s.store, s.of(1, hoarded, watching)).Verdict)
	for i := range 1000 {
		n := []int64{100_001, 1 << 53, 1<<63 - 1}[i%3]
		result := s.ask(s.store, s.of(n, hoarded, watching))
		require.Equal(t, bucket.Never, result.Verdict)
		require.Zero(t, result.RetryAfter)
		require.True(t, result.Receipt.IsZero())
		require.Len(t, result.Limits, 2)
		for _, l := range result.Limits {
			require.True(t, l.Exceeded && l.Never && l.Approximate)
			require.Zero(t, l.RetryAfter)
			require.Equal(t, n, l.Asked)
		}
		// The parts are rounded by themselves.
		require.InDelta(t, 99_999, result.Limits[0].Remaining, 1)
		s.lives(20*time.Millisecond, s.store)
	}
	require.Zero(t, s.home.takes)
	require.LessOrEqual(t, s.home.exchanges, 60, "of twenty seconds")
	require.EqualValues(t, 1000, s.store.Stats().Refused)
	after := s.ask(s.store, s.of(1, hoarded, watching))
	require.Equal(t, bucket.Admitted, after.Verdict)
	require.InDelta(t, 99_998, after.Limits[0].Remaining, 1, "nothing was charged")
}

func TestHomeDecidesAboutMoreThanAWholeLimitWhereTheShardDoesNotKnow(t *testing.T) {
	t.Parallel()
	watching := bucket.Limit{Name: "watching", Capacity: 20, Refill: 1, Period: time.Hour, Mode: bucket.Shadow}
	for name, c := range map[string]struct {
		limits  []bucket.Limit
		prepare func(*sharedScene, *bucket.Take)
		verdict bucket.Verdict
	}{
		"a limit that watches": {[]bucket.Limit{{Name: "hour", Capacity: 200_000, Period: time.Hour}, watching}, func(s *sharedScene, take *bucket.Take) {
			for range 40 {
				s.ask(s.store, s.of(15, bucket.Limit{Name: "hour", Capacity: 200_000, Period: time.Hour}, watching))
				s.lives(20*time.Millisecond, s.store)
			}
			take.Amounts = points(30)
		}, bucket.Admitted},
		"a key": {[]bucket.Limit{hoarded}, func(s *sharedScene, take *bucket.Take) {
			used := *take
			used.Amounts, used.Claim = points(1), newClaim("12345678")
			s.ask(s.store, used)
			take.Claim = newClaim("12345678")
		}, bucket.InFlight},
		"another owner": {[]bucket.Limit{hoarded}, func(s *sharedScene, take *bucket.Take) {
			ann := bucket.Owner{Level: bucket.User, Name: "ann"}
			take.Buckets = append(take.Buckets, bucket.Bucket{Owner: ann, Limits: compile(s.T, hoarded)})
		}, bucket.Never},
		"a record that makes it larger": {[]bucket.Limit{{Name: "hour", Capacity: 100_000, Period: time.Hour}}, func(s *sharedScene, _ *bucket.Take) {
			_, err := s.home.SetOverride(s.Context(), "acme", bucket.Override{Limit: "hour", Capacity: 200_000, Reason: "test", Actor: "test"})
			require.NoError(s, err)
			s.lives(3*time.Second, s.store)
		}, bucket.Admitted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSharedScene(t)
			require.Equal(t, bucket.Admitted, s.ask(s.store, s.of(1, c.limits...)).Verdict)
			take := s.of(100_001, c.limits...)
			c.prepare(s, &take)
			was := s.home.takes
			require.Equal(t, c.verdict, s.ask(s.store, take).Verdict)
			require.Equal(t, was+1, s.home.takes)
		})
	}
}

// What home has judged tells nothing of what shards hold: who remembered it would refuse what they have.
func TestWhatHomeRefusesOfATenantThatIsSharedIsNotRemembered(t *testing.T) {
	t.Parallel()
	for name, large := range map[string]func(*bucket.Take){
		"what is more than a limit":        func(*bucket.Take) {},
		"what is more, and has a key":      func(take *bucket.Take) { take.Claim = newClaim("12345678") },
		"what is more than home has":       func(take *bucket.Take) { take.Amounts = points(2999) },
		"what is more, and is tried aside": func(take *bucket.Take) { take.Candidate = &bucket.Candidate{ID: "next"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSharedScene(t)
			for range 40 {
				s.ask(s.store, s.of(100, sharedSecond))
				s.lives(20*time.Millisecond, s.store)
			}
			take := s.of(3001, sharedSecond)
			large(&take)
			take.Observe, take.ObserveAdmitted = true, true
			result := s.ask(s.store, take)
			require.Contains(t, []bucket.Verdict{bucket.Limited, bucket.Never}, result.Verdict)
			require.Nil(t, result.Judgment)
		})
	}
}
