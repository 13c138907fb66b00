package bucket_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// leasedScene is a store that leases, in a bubble of its own time.
type leasedScene struct {
	*testing.T
	store  *countedStore
	leased *bucket.Leased
	limits *bucket.Limits
	ended  chan struct{}
}

// countedStore counts the calls of a store.
type countedStore struct {
	*bucket.Memory
	takes int
	// exchanges are of several goroutines.
	exchanges atomic.Int64
	// meanwhile is done once, before the next take is answered.
	meanwhile func()
}

func (s *countedStore) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	s.takes++
	if does := s.meanwhile; does != nil {
		s.meanwhile = nil
		does()
	}
	return s.Memory.Take(ctx, take)
}

func (s *countedStore) Exchange(ctx context.Context, e bucket.Exchange) (bucket.Exchanged, error) {
	s.exchanges.Add(1)
	return s.Memory.Exchange(ctx, e)
}

func newLeasedScene(t *testing.T, limits ...bucket.Limit) *leasedScene {
	t.Helper()
	store := &countedStore{Memory: bucket.NewMemory(bucket.MemoryConfig{})}
	s := &leasedScene{T: t, store: store, leased: bucket.NewLeased(store, bucket.LeasedConfig{}), ended: make(chan struct{})}
	var err error
	s.limits, err = bucket.Compile(limits...)
	require.NoError(t, err)
	s.leased.Allow(true)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		s.leased.Run(ctx)
		close(s.ended)
	}()
	synctest.Wait()
	t.Cleanup(func() {
		cancel()
		<-s.ended
	})
	return s
}

// take takes points of the tenant.
func (s *leasedScene) take(n int64) bucket.Result {
	s.Helper()
	result, err := s.leased.Take(s.Context(), s.of(n))
	require.NoError(s, err)
	return result
}

func (s *leasedScene) of(n int64) bucket.Take {
	return bucket.Take{
		Tenant: "acme", Buckets: []bucket.Bucket{{Limits: s.limits}}, Amounts: bucket.Amounts{{Unit: bucket.Points, N: n}}, Lease: bucket.LeaseAlways,
	}
}

func TestABusyTenantCostsTheStoreAFewCallsAndGetsItsLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newLeasedScene(t, bucket.Limit{Name: "second", Capacity: 1000, Refill: 1000, Period: time.Second})
		admitted := 0
		for range 20_000 {
			time.Sleep(500 * time.Microsecond) //nolint:forbidigo // In the bubble.
			if s.take(1).Verdict == bucket.Admitted {
				admitted++
			}
		}
		t.Log(admitted, s.store.takes, s.store.exchanges.Load(), s.leased.Stats())
		require.LessOrEqual(t, admitted, 11_000)
		require.Greater(t, admitted, 10_700)
		require.Less(t, s.store.takes+int(s.store.exchanges.Load()), 100)
	})
}

func TestATakeOfWhatIsLeasedAllocatesNothing(t *testing.T) { //nolint:paralleltest // It counts what the process allocates.
	limits, err := bucket.Compile(bucket.Limit{Name: "second", Capacity: 1 << 40, Refill: 1 << 40, Period: time.Second})
	require.NoError(t, err)
	l := bucket.NewLeased(bucket.NewMemory(bucket.MemoryConfig{}), bucket.LeasedConfig{})
	l.Allow(true)
	take := bucket.Take{
		Tenant: "acme", Buckets: []bucket.Bucket{{Limits: limits}}, Amounts: points(1), Lease: bucket.LeaseAlways, States: make([]bucket.LimitState, 1),
	}
	ask := func() {
		result, err := l.Take(t.Context(), take)
		if err != nil || result.Verdict != bucket.Admitted {
			t.Fatal(result.Verdict, err)
		}
	}
	ask()
	l.Tend(t.Context())
	allocated := testing.AllocsPerRun(1000, ask)
	require.Positive(t, l.Stats().Admitted)
	// An exchange allocates, and there is one now and then.
	require.Less(t, allocated, 0.9)
}
