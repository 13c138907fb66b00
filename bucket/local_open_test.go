package bucket_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/fleet"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

func openLimit(capacity int64, window bucket.WindowKind) bucket.Limit {
	limit := localLimit(capacity, window)
	limit.FailMode = bucket.FailBounded
	return limit
}

// takeLate is a take whose call did not leave the process.
func (r *replica) takeLate(n int64, buckets ...bucket.Bucket) bucket.Result {
	r.t.Helper()
	return r.local.Take(&bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(n)}, true)
}

func TestAnOpenShareIsAPartOfAMultipleOfTheLimitAndStartsFull(t *testing.T) {
	t.Parallel()
	for _, kind := range []bucket.WindowKind{bucket.TokenBucket, bucket.FixedWindow, bucket.SlidingWindow, bucket.MonthWindow} {
		for _, test := range []struct {
			config fleet.Config
			want   int64
		}{
			{fleet.Config{Instances: 1}, 200},
			{fleet.Config{Instances: 3}, 66},
			{fleet.Config{Instances: 3, BoundedMultiple: 1}, 33},
			{fleet.Config{Instances: 2, BoundedMultiple: 100}, 5000},
			{fleet.Config{}, 100},
		} {
			s := newScene(t, 1, test.config)
			r := s.replicas[0]
			b := bucket.Bucket{Limits: compile(t, openLimit(100, kind))}
			r.take(40, b)
			s.goAway()
			first := r.take(1, b)
			require.Equal(t, bucket.Admitted, first.Verdict)
			require.EqualValues(t, 100, first.Limits[0].Limit.Capacity, "the limit itself is shown")
			require.Equal(t, min(100, test.want-1), first.Limits[0].Remaining, "and no more left than it can hold")
			require.Equal(t, test.want-1, r.drain(1, b), "%v %+v", kind, test.config)
			refused := r.take(1, b)
			require.Equal(t, bucket.Limited, refused.Verdict)
			require.Positive(t, refused.RetryAfter)
		}
	}
}

func TestAnOpenShareOfALimitThatIsTooLargeToMultiplyIsTheLimit(t *testing.T) {
	t.Parallel()
	const most = 1<<53 - 1
	s := newScene(t, 1, fleet.Config{Instances: 1, BoundedMultiple: 100})
	for _, kind := range []bucket.WindowKind{bucket.TokenBucket, bucket.FixedWindow} {
		limit := openLimit(most/2, kind)
		limit.Period = time.Millisecond
		if kind == bucket.TokenBucket {
			limit.Refill = most / 2
		}
		b := bucket.Bucket{Limits: compile(t, limit)}
		s.goAway()
		require.Equal(t, bucket.Admitted, s.replicas[0].takeAs(fmt.Sprint(kind), most/2, b).Verdict)
		require.Equal(t, bucket.Limited, s.replicas[0].takeAs(fmt.Sprint(kind), 1, b).Verdict)
	}
}

func TestWhatAnOpenShareAdmittedIsSettledOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, fleet.Config{Instances: 1})
	r := s.replicas[0]
	b := bucket.Bucket{Limits: compile(t, openLimit(1000, bucket.TokenBucket))}
	s.goAway()
	require.Equal(t, bucket.Admitted, r.take(300, b).Verdict)
	require.Equal(t, bucket.Admitted, r.takeLate(200, b).Verdict)
	s.comeBack()
	require.Equal(t, bucket.Admitted, r.take(0, b).Verdict)
	require.EqualValues(t, 500, s.remaining(b))
	r.take(0, b)
	require.EqualValues(t, 500, s.remaining(b))
}

// TestAnswersInBetweenDoNotFillAnOpenShare is a busy process: some calls are answered, and others do not leave in time.
func TestAnswersInBetweenDoNotFillAnOpenShare(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, fleet.Config{Instances: 1})
	r := s.replicas[0]
	open, local := openLimit(1000, bucket.TokenBucket), localLimit(1_000_000, bucket.TokenBucket)
	open.Name = "open"
	b := bucket.Bucket{Limits: compile(t, open, local)}
	late := int64(0)
	for range 100 {
		if r.takeLate(100, b).Verdict == bucket.Admitted {
			late += 100
		}
		r.take(0, b)
	}
	require.EqualValues(t, 2000, late)
	require.Zero(t, s.remaining(b), "what was admitted is missing from the budget")
}

func TestALateCallBeginsNoAbsence(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, fleet.Config{Instances: 2})
	r := s.replicas[0]
	b := bucket.Bucket{Limits: compile(t, localLimit(1200, bucket.TokenBucket))}
	for range 20 {
		require.Equal(t, bucket.Limited, r.takeLate(1, b).Verdict, "nobody has this instance's share of the refill but the store")
		s.clock.advance(time.Second)
	}
	s.goAway()
	require.Zero(t, r.drain(1, b))
	s.clock.advance(time.Second)
	require.EqualValues(t, 7, r.drain(1, b))
}

func TestAnOpenOwnerThatWasForgottenDoesNotStartFullAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, fleet.Config{Instances: 1, MaxOwners: 64})
	r := s.replicas[0]
	b := bucket.Bucket{Limits: compile(t, openLimit(600, bucket.TokenBucket))}
	s.goAway()
	require.EqualValues(t, 1200, r.drain(10, b))
	s.comeBack()
	s.settle()
	r.take(0, b)
	s.goAway()
	for i := range 2000 {
		// They are refused, which leaves nothing to settle, and displace it.
		r.takeAs(fmt.Sprint("tenant", i), 1300, b)
		r.takeAs(fmt.Sprint("tenant", i), 1, b)
		if i%50 == 0 {
			s.comeBack()
			s.settle()
			s.goAway()
		}
	}
	require.Zero(t, r.drain(10, b))
	s.clock.advance(time.Second)
	// Whether it finds room is a matter of chance, what it then has is not.
	admitted := int64(0)
	for range 50 {
		admitted += r.drain(10, b)
	}
	require.EqualValues(t, 20, admitted, "2 × 600 a minute")
}

func TestWhomARecordBlocksIsKnownUnderEveryFailModeAndName(t *testing.T) {
	t.Parallel()
	for mode := bucket.FailBounded; mode <= bucket.FailOpen; mode++ {
		for _, tenant := range []string{"acme", strings.Repeat("long", 200)} {
			s := newScene(t, 1, fleet.Config{Instances: 1})
			limit := localLimit(100, bucket.TokenBucket)
			limit.FailMode = mode
			take := bucket.Take{Tenant: tenant, Buckets: []bucket.Bucket{{Limits: compile(t, limit)}}, Amounts: points(1)}
			ask := func() {
				result, err := s.store.Take(t.Context(), take)
				require.NoError(t, err)
				s.replicas[0].local.Learn(&take, &result)
			}
			blocked := func() bool {
				result, known := s.replicas[0].local.Blocked(&take)
				require.Equal(t, known, result.BlockedBy() != nil)
				return known
			}
			expires := s.clock.now().Add(time.Hour)
			_, err := s.store.SetOverride(t.Context(), tenant, bucket.Override{Blocked: true, Expires: expires, Reason: "abuse", Actor: "ops"})
			require.NoError(t, err)
			require.False(t, blocked(), "nobody has asked")
			ask()
			require.True(t, blocked(), mode)
			s.clock.advance(59 * time.Minute)
			require.True(t, blocked(), "however long ago")
			s.clock.advance(time.Minute)
			require.False(t, blocked(), "the record has ended")

			_, err = s.store.SetOverride(t.Context(), tenant, bucket.Override{Blocked: true, Reason: "abuse", Actor: "ops"})
			require.NoError(t, err)
			ask()
			require.True(t, blocked())
			_, err = s.store.ClearOverrides(t.Context(), tenant)
			require.NoError(t, err)
			ask()
			require.False(t, blocked(), "the store has said so")
		}
	}
}

func TestAnOpenShareIsOfTheLimitAsRecordsMakeIt(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, fleet.Config{Instances: 1})
	r := s.replicas[0]
	b := bucket.Bucket{Limits: compile(t, openLimit(100, bucket.TokenBucket))}
	s.override(bucket.Override{Limit: "minute", Capacity: 7})
	r.take(1, b)
	s.goAway()
	require.EqualValues(t, 14, r.drain(1, b))
	s.comeBack()
	_, err := s.store.ClearOverrides(context.Background(), "acme")
	require.NoError(t, err)
	s.clock.advance(time.Hour)
	r.take(0, b)
	s.goAway()
	require.EqualValues(t, 200, r.drain(1, b))
}

// fickle is a store that is away while it is told to be.
type fickle struct {
	bucket.Store
	away bool
}

func (s *fickle) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	if s.away {
		return bucket.Result{}, bucket.ErrUnavailable
	}
	return s.Store.Take(ctx, take)
}

func (s *fickle) Settle(ctx context.Context, settlement bucket.Settlement) (bucket.Settled, error) {
	if s.away {
		return bucket.Settled{}, bucket.ErrUnavailable
	}
	return s.Store.Settle(ctx, settlement)
}

// openRun is a random history of instances that share a budget, whose store goes and comes back, and whose calls do not
// leave their process now and then.
type openRun struct {
	random *rand.Rand
	store  *fickle
	locals []*bucket.Local
	take   bucket.Take
	most   int64
}

func newOpenRun(t *testing.T, seed uint64, store bucket.Store, tenant string, limit bucket.Limit, config fleet.Config) *openRun {
	t.Helper()
	r := &openRun{random: rand.New(rand.NewPCG(seed, 9)), store: &fickle{Store: store}, most: limit.Capacity / 4}
	r.take = bucket.Take{Tenant: tenant, Buckets: []bucket.Bucket{{Limits: compile(t, limit)}}}
	for range config.Instances {
		local, err := bucket.NewLocal(r.store, config)
		require.NoError(t, err)
		r.locals = append(r.locals, local)
	}
	return r
}

// step is one take by one of the instances. It returns what was admitted without the store.
func (r *openRun) step(t *testing.T) int64 {
	t.Helper()
	if r.random.IntN(20) == 0 {
		r.store.away = !r.store.away
	}
	local, late := r.locals[r.random.IntN(len(r.locals))], r.random.IntN(3) == 0
	r.take.Amounts = points(1 + r.random.Int64N(r.most))
	if !late && !r.store.away && local.Owes(&r.take) {
		_, _, err := local.Settle(t.Context(), r.take.Tenant)
		require.NoError(t, err)
	}
	if !late {
		if result, err := r.store.Take(t.Context(), r.take); err == nil {
			local.Learn(&r.take, &result)
			return 0
		}
	}
	if local.Take(&r.take, late).Verdict == bucket.Admitted {
		return r.take.Amounts.Of(bucket.Points)
	}
	return 0
}

// TestWhatOpenAdmitsIsAtMostTheStatedMultiple compares what instances admit without the store, in whatever histories, with
// one bucket of so many times the capacity and refill: what is admitted in any time is at most what that would admit.
func TestWhatOpenAdmitsIsAtMostTheStatedMultiple(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		c, n, multiple := newClock(), 1+random.IntN(6), 1+random.IntN(4)
		limit := openLimit(40+random.Int64N(2000), bucket.TokenBucket)
		r := newOpenRun(t, seed, bucket.NewMemory(bucket.MemoryConfig{Clock: c.now}), "acme", limit,
			fleet.Config{Instances: n, BoundedMultiple: multiple, MaxOwners: 64, Clock: c.now})
		// debt is that of the one bucket, in units of 1/60000 token.
		debt, total, capacity := int64(0), int64(0), int64(multiple)*limit.Capacity*60_000
		for range 2000 {
			elapsed := time.Duration(random.Int64N(600)) * time.Millisecond
			c.advance(elapsed)
			debt = max(0, debt-int64(multiple)*limit.Capacity*elapsed.Milliseconds())
			admitted := r.step(t)
			debt, total = debt+admitted*60_000, total+admitted
			require.LessOrEqual(t, debt, capacity, "seed %d", seed)
		}
		require.Positive(t, total, "seed %d", seed)
	}
}

// TestWhatOpenAdmitsBesideRedisIsAtMostTheStatedMultiple is the same with the clock of a real Redis, so that the refill is
// so slow that it hardly matters.
func TestWhatOpenAdmitsBesideRedisIsAtMostTheStatedMultiple(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	store := newRedisStore(t, patientClient(t, server.Addr))
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 2))
		n, multiple := 1+random.IntN(6), 1+random.IntN(4)
		limit := openLimit(40+random.Int64N(2000), bucket.TokenBucket)
		limit.Period = 365 * 24 * time.Hour
		r := newOpenRun(t, seed, store, fmt.Sprint("tenant", seed), limit, fleet.Config{Instances: n, BoundedMultiple: multiple})
		total := int64(0)
		for range 400 {
			total += r.step(t)
		}
		require.LessOrEqual(t, total, int64(multiple)*limit.Capacity, "seed %d", seed)
		require.Greater(t, total, int64(multiple)*limit.Capacity/2, "seed %d", seed)
	}
}
