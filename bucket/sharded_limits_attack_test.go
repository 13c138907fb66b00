package bucket_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// slowHome is home, and slowShard a shard, each call of which takes a while.
type slowHome struct {
	*bucket.Memory
	takes time.Duration
}

func (h slowHome) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	time.Sleep(h.takes) //nolint:forbidigo // the clock of a synctest bubble
	return h.Memory.Take(ctx, take)
}

func (h slowHome) Exchange(ctx context.Context, e bucket.Exchange) (bucket.Exchanged, error) {
	time.Sleep(h.takes) //nolint:forbidigo // the clock of a synctest bubble
	return h.Memory.Exchange(ctx, e)
}

type slowShard struct {
	*bucket.Memory
	takes time.Duration
}

func (h slowShard) Shard(ctx context.Context, call bucket.ShardCall) (bucket.ShardAnswer, error) {
	time.Sleep(h.takes) //nolint:forbidigo // the clock of a synctest bubble
	return h.Memory.Shard(ctx, call)
}

func TestATakeOfAShardWaitsNoLongerThanItsContextThoughAnExchangeIsUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const each = 400 * time.Millisecond
		s, err := bucket.NewSharded(slowHome{bucket.NewMemory(bucket.MemoryConfig{}), each}, slowShard{bucket.NewMemory(bucket.MemoryConfig{}), each}, bucket.ShardedConfig{})
		require.NoError(t, err)
		s.Allow(true)
		ctx, cancel := context.WithTimeout(t.Context(), each+each/2)
		defer cancel()
		start := time.Now()
		_, _ = s.Take(ctx, countedTake(t))
		require.LessOrEqual(t, time.Since(start), each+each/2+each, "home is asked once more, which here knows nothing of contexts")
		require.NoError(t, s.Shutdown(t.Context()))
	})
}

func TestAmountsThatAreAsLargeAsCanBeAreChargedAndPutBackExactly(t *testing.T) {
	t.Parallel()
	const refill = 1<<28 + 1
	unit, _, _ := bucket.LeasingOf(compile(t, bucket.Limit{Name: "second", Capacity: 1000, Refill: refill, Period: time.Second}))
	for name, capacity := range map[string]int64{"as much as a shard holds": 1 << 50 / unit, "more": 1<<50/unit + 1, "much more": 1 << 42, "less": 1<<49/unit - 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limit := bucket.Limit{Name: "second", Capacity: capacity, Refill: refill, Period: time.Second}
			random := rand.New(rand.NewPCG(1, uint64(capacity)))
			s := newAttackScene(t)
			admitted, used := int64(0), int64(0)
			var receipts []bucket.Receipt
			for range 2000 {
				n := []int64{0, 1, random.Int64N(capacity/8 + 1), random.Int64N(capacity), capacity, 1<<53 - 1, 1 << 53, 1<<63 - 1}[random.IntN(8)]
				result := s.take(s.store, s.of("acme", n, limit))
				require.True(t, result.Verdict == bucket.Admitted || result.Verdict == bucket.Limited || result.Verdict == bucket.Never)
				if result.Verdict == bucket.Admitted {
					actual := []int64{0, n, n / 2, n - n/3}[random.IntN(4)]
					admitted, used = admitted+actual, used+actual
					receipts = append(receipts, result.Receipt)
					for i := range 2 {
						settled, err := s.store.Settle(t.Context(), bucket.Settlement{Receipt: result.Receipt, Actual: points(actual)})
						require.NoError(t, err)
						require.True(t, i == 0 && settled.Applied || i == 1 && (!settled.Applied || actual == n))
					}
					_, err := s.store.Settle(t.Context(), bucket.Settlement{Receipt: result.Receipt, Actual: points(-1)})
					require.ErrorIs(t, err, bucket.ErrInvalid)
				}
				require.LessOrEqual(t, admitted, capacity+int64((s.now-time.Second).Seconds()*refill)+1)
				s.lives(20*time.Millisecond, 20*time.Millisecond, s.store)
			}
			require.NoError(t, s.store.Shutdown(t.Context()))
			states := s.used() + counted(t, s.home, "acme", time.UnixMilli(1<<41).Add(s.now), bucket.UsageExact)[string(bucket.Points)]
			t.Logf("%d receipts, %d admitted of %d, %+v", len(receipts), admitted, capacity, s.store.Stats())
			require.Equal(t, used, states)
		})
	}
}

func TestAllUsageIsCountedOfTakesAndSettlementsThatAreUnderWayWhenAnInstanceEnds(t *testing.T) {
	t.Parallel()
	{
		home := bucket.NewMemory(bucket.MemoryConfig{})
		s, err := bucket.NewSharded(home, bucket.NewMemory(bucket.MemoryConfig{}), bucket.ShardedConfig{})
		require.NoError(t, err)
		s.Allow(true)
		ctx, cancel := context.WithCancel(t.Context())
		var running, takers sync.WaitGroup
		running.Go(func() { s.Run(ctx) })
		var truth [8]atomic.Int64
		begin, stop := countedTake(t), make(chan struct{})
		for i := range 16 {
			takers.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					take := begin
					take.Tenant, take.Amounts = fmt.Sprint("t", i%8), points(4)
					result, err := s.Take(context.WithoutCancel(t.Context()), take)
					if err != nil || result.Verdict != bucket.Admitted {
						continue
					}
					truth[i%8].Add(4)
					if settled, err := s.Settle(context.WithoutCancel(t.Context()), bucket.Settlement{Receipt: result.Receipt, Actual: points(3)}); err == nil && settled.Applied {
						truth[i%8].Add(-1)
					}
				}
			})
		}
		time.Sleep(30 * time.Millisecond) //nolint:forbidigo // takes are under way.
		ended := make(chan error, 2)
		go func() { ended <- s.Shutdown(context.WithoutCancel(t.Context())) }()
		go func() { cancel(); running.Wait(); ended <- nil }()
		require.NoError(t, <-ended)
		require.NoError(t, <-ended)
		close(stop)
		takers.Wait()
		for i := range truth {
			tenant := fmt.Sprint("t", i)
			used := counted(t, home, tenant, time.Now(), bucket.UsageLocal)["points"] + counted(t, home, tenant, time.Now(), bucket.UsageExact)["points"]
			require.Equal(t, truth[i].Load(), used)
		}
	}
}
