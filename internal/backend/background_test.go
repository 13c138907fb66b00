package backend_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
	"github.com/gqlgen-ratelimit/ratelimit/internal/fleet"
)

// hanging is a store of which tenants are away, all or those of a shard: their calls fail after a second.
type hanging struct {
	*bucket.Memory

	away, shard atomic.Bool
	beats       atomic.Int64
}

func (s *hanging) hang(ctx context.Context, tenant string) error {
	if !s.away.Load() && (!s.shard.Load() || tenant[0] != 'd') {
		return nil
	}
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
	return fmt.Errorf("%w: it hangs", bucket.ErrUnavailable)
}

func (s *hanging) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	if err := s.hang(ctx, take.Tenant); err != nil {
		return bucket.Result{}, err
	}
	return s.Memory.Take(ctx, take)
}

func (s *hanging) Settle(ctx context.Context, settlement bucket.Settlement) (bucket.Settled, error) {
	if err := s.hang(ctx, settlement.Tenant()); err != nil {
		return bucket.Settled{}, err
	}
	return s.Memory.Settle(ctx, settlement)
}

func (s *hanging) Beat(ctx context.Context, instance [8]byte) (int, bool, error) {
	if err := s.hang(ctx, "all"); err != nil {
		return 0, false, err
	}
	s.beats.Add(1)
	return s.Memory.Beat(ctx, instance)
}

// newIndebted returns stores, of which each has admitted 10 points of so many dead and so many well tenants while it
// was away.
func newIndebted(t *testing.T, byName map[string]bucket.Store, dead, well int, local fleet.Config) (*backend.Stores, []bucket.Bucket) {
	t.Helper()
	stores, err := backend.New(backend.Config{
		Stores: byName, Local: local, MaxWaiting: 10, Logger: slog.New(slog.DiscardHandler), Watcher: &settlements{results: map[string]int{}},
	})
	require.NoError(t, err)
	buckets := []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "hour", Capacity: 1000, Period: time.Hour, FailMode: bucket.FailLocal})}}
	for name := range byName {
		for i := range dead + well {
			tenant := fmt.Sprint("well-", i)
			if i < dead {
				tenant = fmt.Sprint("dead-", i)
			}
			take := bucket.Take{Tenant: tenant, Buckets: buckets, Amounts: points(0)}
			_, err := stores.Named(name).Take(t.Context(), &take, &bucket.Result{}, backend.Caller{})
			require.NoError(t, err)
			take.Amounts = points(10)
			result := stores.Named(name).TakeLocally(&take, bucket.ErrUnavailable)
			require.Equal(t, bucket.Admitted, result.Verdict)
		}
	}
	return stores, buckets
}

// uncharged returns how many of the well tenants the store has not charged.
func uncharged(t *testing.T, store *hanging, buckets []bucket.Bucket, from, to int) (n int) {
	t.Helper()
	for i := from; i < to; i++ {
		limits, err := store.Peek(t.Context(), fmt.Sprint("well-", i), buckets)
		require.NoError(t, err)
		if limits[0].Remaining > 995 {
			n++
		}
	}
	return n
}

func TestNoStoreLosesDebtsAtTheEndBecauseAnotherHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := &hanging{Memory: bucket.NewMemory(bucket.MemoryConfig{})}, &hanging{Memory: bucket.NewMemory(bucket.MemoryConfig{})}
		stores, buckets := newIndebted(t, map[string]bucket.Store{"": a, "b": b}, 0, 20, fleet.Config{Instances: 1})
		a.away.Store(true)
		var running sync.WaitGroup
		running.Go(func() { stores.Run(t.Context()) })
		synctest.Wait()
		grace, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		require.ErrorContains(t, stores.Shutdown(grace), "the default store")
		require.Zero(t, uncharged(t, b, buckets, 0, 20))
		running.Wait()
	})
}

func TestTheTenantsOfAShardThatHangsCostTheOthersNoDebtsAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &hanging{Memory: bucket.NewMemory(bucket.MemoryConfig{})}
		stores, buckets := newIndebted(t, map[string]bucket.Store{"": store}, 60, 1000, fleet.Config{Instances: 1})
		store.shard.Store(true)
		grace, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		require.ErrorContains(t, stores.Shutdown(grace), "tenants: 60")
		require.Zero(t, uncharged(t, store, buckets, 60, 1060))
	})
}

func TestAStoreThatHangsDelaysNoBeatAndNoSettlementOfAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := &hanging{Memory: bucket.NewMemory(bucket.MemoryConfig{})}, &hanging{Memory: bucket.NewMemory(bucket.MemoryConfig{})}
		stores, buckets := newIndebted(t, map[string]bucket.Store{"": a, "b": b}, 0, 50, fleet.Config{Instances: 1})
		a.away.Store(true)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { stores.Run(ctx) })
		time.Sleep(1500 * time.Millisecond) //nolint:forbidigo // the clock of a synctest bubble
		synctest.Wait()
		require.Zero(t, uncharged(t, b, buckets, 0, 50))
		stop()
		running.Wait()
	})
}
