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
	return placement.Opened{Backend: w.stores[m.Name]}, nil
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
			return placement.Opened{Backend: store}, nil
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
