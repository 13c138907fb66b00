package placement_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/placement"
)

// opened opens the stores of the world without a network before them, so that they lease.
func (w *world) opened(_ context.Context, m placement.Member) (placement.Opened, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return placement.Opened{Movable: w.stores[m.Name]}, nil
}

func TestHoldersInFrontOfStoresAdmitNoMoreThanTheBudgetWhileTheTenantMoves(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.add("a", 0)
	w.add("b", 2000)
	first := &placement.Map{Generation: 1, Candidates: 1, Stores: members("a", "b"), Pins: map[string]string{"acme": "a"}}
	epoch := w.now.Load()
	clock := func() time.Duration { return time.Duration(w.now.Load()-epoch) * time.Millisecond }
	var stores []*placement.Store
	var holders []*bucket.Leased
	for i := range 3 {
		s, err := placement.New(t.Context(), placement.Config{Open: w.opened}, first)
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		require.Equal(t, i > 0, s.AllLease(), "not before somebody has said so")
		_, _, err = s.Beat(t.Context(), [8]byte{'l', 's', '1', byte(i)})
		require.NoError(t, err)
		require.True(t, s.AllLease())
		holder := bucket.NewLeased(s, bucket.LeasedConfig{Patience: time.Microsecond, Clock: clock})
		holder.Allow(true)
		stores, holders = append(stores, s), append(holders, holder)
	}
	const capacity, refill = 3000, 1000
	take := bucket.Take{
		Tenant: "acme", Amounts: points(3), Lease: bucket.LeaseAlways,
		Buckets: compile(t, bucket.Limit{Name: "second", Capacity: capacity, Refill: refill, Period: time.Second}),
	}
	level := int64(capacity * 1000)
	admitted, failed := map[int]int{}, 0
	second, leasedBefore := pinned(first, "b"), uint64(0)
	for n := range 18_000 {
		w.now.Add(1)
		level = min(level+refill, capacity*1000)
		switch n {
		case 3000:
			require.NoError(t, stores[0].Apply(t.Context(), second))
		case 3500:
			require.NoError(t, stores[1].Apply(t.Context(), second))
		case 5500:
			leasedBefore = holders[0].Stats().Admitted
		case 6000:
			require.Greater(t, holders[0].Stats().Admitted, leasedBefore, "the store that it is in now leases")
			require.NoError(t, stores[2].Apply(t.Context(), second))
		case 9000, 12_500:
			// Back, and there again, while what was leased before is still noted there.
			second = pinned(second, map[string]string{"a": "b", "b": "a"}[second.Home("acme")])
			for _, s := range stores {
				require.NoError(t, s.Apply(t.Context(), second))
			}
		}
		holder := holders[n%len(holders)]
		result, err := holder.Take(t.Context(), take)
		switch {
		case errors.Is(err, bucket.ErrUnavailable):
			failed++
		case err != nil:
			require.NoError(t, err)
		case result.Verdict == bucket.Admitted:
			admitted[n/3000]++
			level -= 3000
			require.GreaterOrEqual(t, level, int64(0), "at %d ms more was admitted than one bucket has", n)
		}
		if n%20 == 0 {
			for _, holder := range holders {
				holder.Tend(t.Context())
			}
		}
	}
	t.Logf("admitted in each three seconds: %v; failed: %d", admitted, failed)
	require.Positive(t, failed, "who knows the newer map waits until the leases of before have ended")
	require.Greater(t, admitted[2], 800, "what comes back is admitted where it is now")
	require.Positive(t, admitted[5], "also after it has come back twice")
}

// beatingStore is one whose beats are not answered before it is told to.
type beatingStore struct {
	*bucket.Memory
	began  chan<- string
	name   string
	answer <-chan struct{}
	err    error
}

func (s *beatingStore) Beat(ctx context.Context, instance [8]byte) (int, bool, error) {
	s.began <- s.name
	select {
	case <-s.answer:
	case <-ctx.Done():
		return 0, false, ctx.Err()
	}
	if s.err != nil {
		return 0, false, s.err
	}
	return s.Memory.Beat(ctx, instance)
}

func TestABeatReachesAllStoresWhileOneDoesNotAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, slow, fast := make(chan string, 3), make(chan struct{}), make(chan struct{})
		close(fast)
		opens := func(_ context.Context, m placement.Member) (placement.Opened, error) {
			store := &beatingStore{Memory: bucket.NewMemory(bucket.MemoryConfig{}), began: began, name: m.Name, answer: fast}
			if m.Name == "a" {
				store.answer, store.err = slow, bucket.ErrUnavailable
			}
			return placement.Opened{Movable: store}, nil
		}
		s, err := placement.New(t.Context(), placement.Config{Open: opens}, &placement.Map{Generation: 1, Candidates: 1, Stores: members("a", "b", "c")})
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		ended := make(chan error, 1)
		go func() {
			instances, _, err := s.Beat(t.Context(), [8]byte{'l', 's', '1', 1})
			if err == nil && instances != 1 {
				err = errors.New("not one instance")
			}
			ended <- err
		}()
		var reached []string
		for range 3 {
			reached = append(reached, <-began)
		}
		require.ElementsMatch(t, []string{"a", "b", "c"}, reached)
		close(slow)
		require.NoError(t, <-ended, "one that answers says how many there are")
	})
}

func TestWhoLeasesIsToldOfTheStoreThatTheTenantIsIn(t *testing.T) {
	t.Parallel()
	w, m := twoStores()
	s, err := placement.New(t.Context(), placement.Config{Open: w.opened}, m)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	epoch := w.now.Load()
	holder := bucket.NewLeased(s, bucket.LeasedConfig{Clock: func() time.Duration { return time.Duration(w.now.Load()-epoch) * time.Millisecond }})
	holder.Allow(true)
	take := bucket.Take{Tenant: "acme", Amounts: points(1), Lease: bucket.LeaseAlways, Buckets: compile(t, bucket.Limit{Name: "hour", Capacity: 9000, Refill: 1, Period: time.Hour})}
	for range 100 {
		_, err := holder.Take(t.Context(), take)
		require.NoError(t, err)
		w.now.Add(20)
		holder.Tend(t.Context())
	}
	told, err := s.Leases(t.Context(), "acme", take.Buckets)
	require.NoError(t, err)
	require.Len(t, told, 1)
	require.Equal(t, 1, told[0].Holders)
	there, err := w.stores["a"].Leases(t.Context(), "acme", take.Buckets)
	require.NoError(t, err)
	require.Equal(t, there, told)
	other, err := s.Leases(t.Context(), "globex", take.Buckets)
	require.NoError(t, err)
	require.Empty(t, other)
}

func TestALeasedReceiptOfATenantThatHasMovedGivesNothingBack(t *testing.T) {
	t.Parallel()
	s, m, take, result := charged(t, 40)
	remaining := func() int64 {
		states, err := s.Peek(t.Context(), "acme", take.Buckets)
		require.NoError(t, err)
		return states[0].Remaining
	}
	// A receipt of a take that was decided without the store names none.
	settlement := bucket.Settlement{Receipt: result.Receipt.At(""), Actual: points(30)}
	_, err := s.Settle(t.Context(), settlement)
	require.NoError(t, err)
	require.EqualValues(t, 70, remaining())
	require.NoError(t, s.Apply(t.Context(), pinned(m, "b")))
	settlement.Actual = points(10)
	_, err = s.Settle(t.Context(), settlement)
	require.NoError(t, err)
	require.EqualValues(t, 70, remaining(), "it may have been given back in the store before")
}
