package placement_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/placement"
)

var day = bucket.Limit{Name: "day", Capacity: 100, Period: 24 * time.Hour}

// twoStores is a world of two stores, and a map that has acme in the first one.
func twoStores() (*world, *placement.Map) {
	w := newWorld()
	w.add("a", 0)
	w.add("b", 0)
	return w, &placement.Map{Generation: 1, Candidates: 1, Stores: members("a", "b"), Pins: map[string]string{"acme": "a"}}
}

// charged is two stores, a map that has acme in the first one, and a take of acme there.
func charged(t *testing.T, n int64) (s *placement.Store, m *placement.Map, take bucket.Take, result bucket.Result) {
	t.Helper()
	w, m := twoStores()
	s = w.instance(t, m)
	take = bucket.Take{Tenant: "acme", Buckets: compile(t, day), Amounts: points(n)}
	result, err := s.Take(t.Context(), take)
	require.NoError(t, err)
	return s, m, take, result
}

func TestAMoveCarriesWhatATenantHasSpent(t *testing.T) {
	t.Parallel()
	w, m := twoStores()
	s := w.instance(t, m)
	buckets := compile(t, day, bucket.Limit{Name: "window", Capacity: 80, Period: time.Hour, Window: bucket.Window{Kind: bucket.FixedWindow}},
		bucket.Limit{Name: "month", Capacity: 1000, Window: bucket.Window{Kind: bucket.MonthWindow}})
	ctx := t.Context()
	_, err := s.Take(ctx, bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(30)})
	require.NoError(t, err)
	before, err := s.Peek(ctx, "acme", buckets)
	require.NoError(t, err)
	require.NoError(t, s.Apply(ctx, pinned(m, "b")))
	after, err := s.Peek(ctx, "acme", buckets)
	require.NoError(t, err)
	require.Equal(t, before, after)
	there, err := w.stores["b"].Peek(ctx, "acme", buckets)
	require.NoError(t, err)
	require.Equal(t, before, there)
}

func TestAnInstanceThatKnowsAnOlderMapAdmitsNothingWhereTheTenantWas(t *testing.T) {
	t.Parallel()
	w, m := twoStores()
	old, young := w.instance(t, m), w.instance(t, pinned(m, "b"))
	take := bucket.Take{Tenant: "acme", Buckets: compile(t, day), Amounts: points(60)}
	result, err := old.Take(t.Context(), take)
	require.NoError(t, err)
	require.Equal(t, bucket.Admitted, result.Verdict)
	result, err = young.Take(t.Context(), take)
	require.NoError(t, err)
	require.Equal(t, bucket.Limited, result.Verdict, "60 of 100 are spent")
	take.Amounts = points(1)
	_, err = old.Take(t.Context(), take)
	require.ErrorIs(t, err, placement.ErrStale)
	require.ErrorIs(t, err, bucket.ErrUnavailable)
	require.ErrorIs(t, old.Apply(t.Context(), m), placement.ErrGeneration)
	require.NoError(t, old.Apply(t.Context(), pinned(m, "b")))
	_, err = old.Take(t.Context(), take)
	require.NoError(t, err)
}

func TestATenantThatComesBackHasWhatItSpentInBothStores(t *testing.T) {
	t.Parallel()
	w, m := twoStores()
	s := w.instance(t, m)
	take := bucket.Take{Tenant: "acme", Buckets: compile(t, day), Amounts: points(20)}
	for _, store := range []string{"a", "b", "a", "b"} {
		if s.Map().Home("acme") != store {
			m = pinned(m, store)
			require.NoError(t, s.Apply(t.Context(), m))
		}
		_, err := s.Take(t.Context(), take)
		require.NoError(t, err)
	}
	states, err := s.Peek(t.Context(), "acme", take.Buckets)
	require.NoError(t, err)
	require.EqualValues(t, 20, states[0].Remaining)
}

func TestOverridesAndIdempotencyKeysMove(t *testing.T) {
	t.Parallel()
	w, m := twoStores()
	s := w.instance(t, m)
	ctx := t.Context()
	_, err := s.SetOverride(ctx, "acme", bucket.Override{Limit: "day", Capacity: 500, Reason: "a sale", Actor: "jo"})
	require.NoError(t, err)
	claim := &idempotency.Claim{Subject: "acme", Key: "12345678", Attempt: idempotency.NewAttemptID()}
	take := bucket.Take{Tenant: "acme", Buckets: compile(t, day), Amounts: points(300), Claim: claim}
	result, err := s.Take(ctx, take)
	require.NoError(t, err)
	require.Equal(t, bucket.Admitted, result.Verdict)
	require.NoError(t, s.Apply(ctx, pinned(m, "b")))
	held, err := s.Renew(ctx, "acme", claim)
	require.NoError(t, err)
	require.True(t, held)
	settled, err := s.Settle(ctx, bucket.Settlement{Receipt: result.Receipt, Actual: points(300), Claim: &bucket.ClaimSettlement{
		Tenant: "acme", Claim: claim, Outcome: idempotency.Done, Answer: []byte("the answer"),
	}})
	require.NoError(t, err)
	require.True(t, settled.Applied)
	claim.Attempt = idempotency.NewAttemptID()
	result, err = s.Take(ctx, take)
	require.NoError(t, err)
	require.Equal(t, bucket.Replayed, result.Verdict)
	require.Equal(t, "the answer", string(result.Answer))
	records, err := s.ListOverrides(ctx, "acme")
	require.NoError(t, err)
	require.Len(t, records, 1)
	_, err = s.ClearOverrides(ctx, "acme")
	require.NoError(t, err)
	records, err = w.instance(t, s.Map()).ListOverrides(ctx, "acme")
	require.NoError(t, err)
	require.Empty(t, records, "what was cleared does not come back")
	_, err = w.stores["a"].ClearOverrides(ctx, "acme")
	require.ErrorAs(t, err, new(*bucket.MovedError), "what a store remembers of a move is not cleared")
}

func TestASettlementAfterAMoveGivesNothingBack(t *testing.T) {
	t.Parallel()
	s, m, take, result := charged(t, 40)
	require.NoError(t, s.Apply(t.Context(), pinned(m, "b")))
	remaining := func() int64 {
		states, err := s.Peek(t.Context(), "acme", take.Buckets)
		require.NoError(t, err)
		return states[0].Remaining
	}
	settled, err := s.Settle(t.Context(), bucket.Settlement{Receipt: result.Receipt, Actual: points(10)})
	require.NoError(t, err)
	require.True(t, settled.Applied)
	require.EqualValues(t, 60, remaining())
	result, err = s.Take(t.Context(), take)
	require.NoError(t, err)
	require.EqualValues(t, 20, remaining())
	require.NoError(t, s.Apply(t.Context(), pinned(s.Map(), "a")))
	_, err = s.Settle(t.Context(), bucket.Settlement{Receipt: result.Receipt, Actual: points(55)})
	require.NoError(t, err)
	require.EqualValues(t, 5, remaining(), "what it charges on is charged")
}

func TestALostStoreLeavesShortBucketsEmptyAndNobodyFull(t *testing.T) {
	t.Parallel()
	for _, whenLost := range []placement.WhenLost{placement.Empty, placement.Full} {
		w, m := twoStores()
		s := w.instance(t, m)
		buckets := compile(t, bucket.Limit{Name: "minute", Capacity: 60, Period: time.Minute}, day)
		_, err := s.Take(t.Context(), bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(1)})
		require.NoError(t, err)
		lost := time.UnixMilli(w.now.Load())
		next := m.Next([]placement.Member{{Name: "a", Lost: &lost}, {Name: "b"}})
		require.False(t, next.Before[0].Lost["a"].IsZero())
		next.Pins, next.WhenLost = map[string]string{"acme": "b"}, whenLost
		require.NoError(t, s.Apply(t.Context(), next))
		w.now.Add(10_000)
		left := func() []int64 {
			states, err := w.instance(t, next).Peek(t.Context(), "acme", buckets)
			require.NoError(t, err)
			return []int64{states[0].Remaining, states[1].Remaining}
		}
		long := map[placement.WhenLost]int64{placement.Empty: 0, placement.Full: 100}[whenLost]
		require.Equal(t, []int64{10, long}, left(), "a sixth of a minute has come back")
		_, err = s.Take(t.Context(), bucket.Take{Tenant: "acme", Buckets: compile(t, bucket.Limit{Name: "minute", Capacity: 60, Period: time.Minute}), Amounts: points(10)})
		require.NoError(t, err)
		require.Equal(t, []int64{0, long}, left(), "another instance empties nothing again")
	}
}

func TestATenantWhoseCandidatesAreAllGoneIsNowhere(t *testing.T) {
	t.Parallel()
	w, m := twoStores()
	s := w.instance(t, m)
	lost := time.UnixMilli(w.now.Load())
	next := m.Next([]placement.Member{{Name: "a", Lost: &lost}, {Name: "b"}})
	require.NoError(t, s.Apply(t.Context(), next))
	_, err := s.Take(t.Context(), bucket.Take{Tenant: "acme", Buckets: compile(t, day), Amounts: points(1)})
	require.ErrorIs(t, err, placement.ErrNowhere)
	require.ErrorIs(t, err, bucket.ErrUnavailable)
}

func TestAStoreThatCannotBeOpenedLeavesTheOldMap(t *testing.T) {
	t.Parallel()
	w, m := twoStores()
	s := w.instance(t, m)
	err := s.Apply(t.Context(), m.Next(members("a", "b", "c")))
	var refused *placement.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "c", refused.Store)
	require.EqualValues(t, 2, refused.Generation)
	require.EqualValues(t, 1, s.Map().Generation)
	_, err = s.Take(t.Context(), bucket.Take{Tenant: "acme", Buckets: compile(t, day), Amounts: points(1)})
	require.NoError(t, err)
	w.add("c", 0)
	require.NoError(t, s.Apply(t.Context(), m.Next(members("a", "b", "c"))))
}

func TestStoresThatAreNoLongerNamedAreClosedOnce(t *testing.T) {
	t.Parallel()
	closed := map[string]int{}
	s, err := placement.New(t.Context(), placement.Config{Open: func(_ context.Context, m placement.Member) (placement.Opened, error) {
		return placement.Opened{Movable: bucket.NewMemory(bucket.MemoryConfig{}), Close: func() error { closed[m.Name]++; return nil }}, nil
	}}, &placement.Map{Generation: 1, Candidates: 1, Stores: members("a", "b")})
	require.NoError(t, err)
	require.NoError(t, s.Apply(t.Context(), &placement.Map{Generation: 2, Candidates: 1, Stores: members("b", "c")}))
	require.Equal(t, map[string]int{"a": 1}, closed)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1}, closed)
	_, err = s.Peek(t.Context(), "acme", nil)
	require.ErrorIs(t, err, placement.ErrClosed)
	require.ErrorIs(t, s.Apply(t.Context(), &placement.Map{Generation: 3, Candidates: 1, Stores: members("b")}), placement.ErrClosed)
}

func TestTakesOnManyGoroutinesDuringMovesAdmitNoMoreThanTheBudget(t *testing.T) {
	t.Parallel()
	w, m := twoStores()
	instances := []*placement.Store{w.instance(t, m), w.instance(t, m), w.instance(t, m)}
	limit := bucket.Limit{Name: "day", Capacity: 3000, Refill: 1, Period: 24 * time.Hour}
	take := bucket.Take{Tenant: "acme", Buckets: compile(t, limit), Amounts: points(1)}
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			for range 1000 {
				result, err := instances[i%len(instances)].Take(context.Background(), take)
				if err != nil && !errors.Is(err, bucket.ErrUnavailable) && !errors.Is(err, bucket.ErrBusy) {
					t.Errorf("a take failed: %v", err)
					return
				}
				if err == nil && result.Verdict == bucket.Admitted {
					admitted.Add(1)
				}
			}
		})
	}
	wg.Go(func() {
		for range 40 {
			to := map[string]string{"a": "b", "b": "a"}[m.Home("acme")]
			m = pinned(m, to)
			for _, s := range instances {
				if err := s.Apply(context.Background(), m); err != nil {
					t.Errorf("a map was refused: %v", err)
				}
			}
		}
	})
	wg.Wait()
	states, err := instances[0].Peek(t.Context(), "acme", take.Buckets)
	require.NoError(t, err)
	require.Equal(t, limit.Capacity-admitted.Load(), states[0].Remaining, "each take is charged once, and none is lost")
}
