package backend_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
)

// sharded is a store of which the shard of some tenants is away: their settlements fail after a while.
type sharded struct {
	bucket.Store

	fails time.Duration
	back  atomic.Bool
}

func (s *sharded) Settle(ctx context.Context, settlement bucket.Settlement) (bucket.Settled, error) {
	if !s.back.Load() && settlement.Tenant() == "dead" {
		time.Sleep(s.fails) //nolint:forbidigo // the clock of a synctest bubble
		return bucket.Settled{}, fmt.Errorf("%w: CLUSTERDOWN", bucket.ErrUnavailable)
	}
	return s.Store.Settle(ctx, settlement)
}

// settlements counts what became of settlements, by their tier.
type settlements struct {
	mu      sync.Mutex
	results map[string]int
}

func (*settlements) StoreCalled(context.Context, string, string, time.Duration, time.Duration, error) {
}

func (*settlements) StoreSpared(context.Context, string, string) {}

func (*settlements) StoreAway(context.Context, string, time.Time, error) {}

func (*settlements) StoreBack(context.Context, event.StoreBack) {}

func (*settlements) LocallySettled(context.Context, string, string, []bucket.LimitState, bool) {}

func (s *settlements) Settled(_ context.Context, settlement *decision.Settlement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results[settlement.Tier+" "+string(settlement.Result)]++
}

// all returns a copy of the results.
func (s *settlements) all() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.results)
}

// got returns how many results there are of the tier.
func (s *settlements) got(tier string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for result, count := range s.results {
		if len(result) > len(tier) && result[:len(tier)] == tier {
			n += count
		}
	}
	return n
}

// newSettling returns stores with one that is sharded, and an offer of a settlement for a tenant, whose tier is its name.
func newSettling(t *testing.T, fails time.Duration, room int) (*sharded, *backend.Stores, *settlements, func(tenant string) bool) {
	t.Helper()
	store := &sharded{Store: bucket.NewMemory(bucket.MemoryConfig{}), fails: fails}
	told := &settlements{results: map[string]int{}}
	stores, err := backend.New(backend.Config{
		Stores: map[string]bucket.Store{"": store}, MaxWaiting: room, Logger: slog.New(slog.DiscardHandler), Watcher: told,
	})
	require.NoError(t, err)
	buckets := []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "hour", Capacity: 1 << 30, Period: time.Hour})}}
	return store, stores, told, func(tenant string) bool {
		t.Helper()
		taken, err := store.Take(t.Context(), bucket.Take{Tenant: tenant, Buckets: buckets, Amounts: points(2)})
		require.NoError(t, err)
		return stores.Named("").Offer(t.Context(), bucket.Settlement{Receipt: taken.Receipt, Actual: points(1)}, "actual", tenant)
	}
}

func TestSettlementsOfAShardThatIsAwayHoldUpNoOthers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		dead  int
		fails time.Duration
	}{{8, 0}, {200, 0}, {200, 10 * time.Millisecond}, {10_000, 0}} {
		synctest.Test(t, func(t *testing.T) {
			store, stores, told, offer := newSettling(t, test.fails, 4096)
			for range test.dead {
				offer("dead")
			}
			time.Sleep(2 * time.Second) //nolint:forbidigo // the clock of a synctest bubble
			for n := range 2000 {
				require.True(t, offer("well"))
				time.Sleep(2 * time.Millisecond) //nolint:forbidigo // the clock of a synctest bubble
				require.GreaterOrEqual(t, told.got("well"), n-16, "they wait no longer than the first worker takes them at once")
			}
			store.back.Store(true)
			require.NoError(t, stores.AwaitSettled(t.Context()))
			require.Equal(t, 2000, told.all()["well settled"])
			require.Equal(t, test.dead, told.all()["dead settled"]+told.all()["dead dropped_full"])
			require.GreaterOrEqual(t, told.all()["dead settled"], min(test.dead, 4000), "what waited is settled when the shard is back")
		})
	}
}

func TestWhatTheStoreDidNotTakeGivesItsRoomToWhatWasNotTried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, stores, told, offer := newSettling(t, 0, 4)
		for range 4 {
			require.True(t, offer("dead"))
			synctest.Wait()
		}
		for range 3 {
			require.True(t, offer("well"))
			synctest.Wait()
		}
		require.Equal(t, map[string]int{"well settled": 3, "dead dropped_full": 1}, told.all())
		require.NoError(t, stores.AwaitSettled(t.Context()))
		require.Equal(t, map[string]int{"well settled": 3, "dead dropped_full": 1, "dead dropped_away": 3}, told.all())
	})
}

func TestShutdownDropsWhatWaitsToBeTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, stores, told, offer := newSettling(t, 0, 100)
		for range 20 {
			offer("dead")
		}
		grace, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		require.ErrorIs(t, stores.Shutdown(grace), context.DeadlineExceeded)
		synctest.Wait()
		require.Equal(t, map[string]int{"dead dropped_closed": 20}, told.all())
	})
}
