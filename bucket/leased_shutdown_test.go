package bucket_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

func TestATakeThatBeginsToLeaseDuringShutdownKeepsNothing(t *testing.T) {
	t.Parallel()
	var leased *bucket.Leased
	var once sync.Once
	epoch, ended := time.Now(), make(chan error, 1)
	leased = bucket.NewLeased(bucket.NewMemory(bucket.MemoryConfig{}), bucket.LeasedConfig{Clock: func() time.Duration {
		// The first look at the clock is that of who begins to lease.
		once.Do(func() {
			go func() { ended <- leased.Shutdown(t.Context()) }()
			select {
			case err := <-ended:
				ended <- err
			case <-time.After(50 * time.Millisecond):
				// It waits for the take, as it should.
			}
		})
		return time.Since(epoch)
	}})
	leased.Allow(true)
	limits := compile(t, bucket.Limit{Name: "second", Capacity: 1000, Refill: 1000, Period: time.Second})
	take := bucket.Take{Tenant: "acme", Buckets: []bucket.Bucket{{Limits: limits}}, Amounts: points(1), Lease: bucket.LeaseAlways}
	_, err := leased.Take(t.Context(), take)
	require.NoError(t, err)
	require.NoError(t, <-ended)
	require.Zero(t, leased.Stats().Tenants)
	result, err := leased.Take(t.Context(), take)
	require.NoError(t, err)
	require.Equal(t, bucket.Admitted, result.Verdict)
	require.Zero(t, leased.Stats().Admitted, "takes go to the store")
}

func TestNothingIsLeasedAfterShutdownWhateverIsAllowedThen(t *testing.T) {
	t.Parallel()
	leased := bucket.NewLeased(bucket.NewMemory(bucket.MemoryConfig{}), bucket.LeasedConfig{})
	require.NoError(t, leased.Shutdown(t.Context()))
	leased.Allow(true)
	limits := compile(t, bucket.Limit{Name: "second", Capacity: 1000, Refill: 1000, Period: time.Second})
	_, err := leased.Take(t.Context(), bucket.Take{
		Tenant: "acme", Buckets: []bucket.Bucket{{Limits: limits}}, Amounts: points(1), Lease: bucket.LeaseAlways,
	})
	require.NoError(t, err)
	require.Zero(t, leased.Stats().Tenants)
}

// exchangingStore does something once, before the next exchange is answered.
type exchangingStore struct {
	*countedStore
	meanwhile func()
}

func (s *exchangingStore) Exchange(ctx context.Context, e bucket.Exchange) (bucket.Exchanged, error) {
	if does := s.meanwhile; does != nil {
		s.meanwhile = nil
		does()
	}
	return s.countedStore.Exchange(ctx, e)
}

func TestWhatIsRefundedOfAWindowDuringShutdownOrAfterItComesBackOnce(t *testing.T) {
	t.Parallel()
	for name, during := range map[string]bool{"while it is given back": true, "afterwards": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newLeasedScene(t, daily())
				store := &exchangingStore{countedStore: s.store}
				s.leased.LeaseStore = store
				taken := s.lease()
				r := s.takeHere(100, &taken)
				if during {
					store.meanwhile = func() { require.True(t, s.settle(r, 0)) }
				}
				require.NoError(t, s.leased.Shutdown(t.Context()))
				require.Equal(t, !during, s.settle(r, 0))
				require.Equal(t, 80_000-taken+100, s.leftAfterShutdown())
			})
		})
	}
}

func TestWhatIsRefundedOfAWindowWhoseLeaseHasEndedAndIsNotGivenBackYetComesBackOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newLeasedScene(t, daily())
		taken := s.lease()
		r := s.takeHere(100, &taken)
		// The policy leases no more.
		take := s.of(7)
		take.Lease = bucket.LeaseOff
		_, err := s.leased.Take(t.Context(), take)
		require.NoError(t, err)
		require.True(t, s.settle(r, 0))
		require.Equal(t, 80_000-taken-7+100, s.leftAfterShutdown())
	})
}
