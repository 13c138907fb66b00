package redisclient_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

func TestAFrozenShardOpensItsOwnBreakerAndItsReturnClosesIt(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cluster := redistest.StartCluster(t)
	told := event.NewChannel(1000)
	client := configuredClient(t, redisclient.Config{
		Addresses: cluster.Addrs, DialTimeout: patience, SocketTimeout: patience,
		Breaker: redisclient.BreakerConfig{Failures: 2, Observer: told},
	})
	const timeout = time.Second
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: timeout})
	require.NoError(t, err)
	take := bucket.Take{Buckets: aMinute(t, 1000), Amounts: onePoint}
	tenants := map[int]string{}
	for i := 0; len(tenants) < 3; i++ {
		tenant := fmt.Sprintf("tenant-%d", i)
		tenants[redistest.Shard(cluster.Slot(t, "{"+tenant+"}"))] = tenant
	}
	ask := func(shard int) error {
		take.Tenant = tenants[shard]
		_, err := store.Take(ctx, take)
		return err
	}
	for shard := range 3 {
		require.Eventually(t, func() bool { return ask(shard) == nil }, patience, time.Millisecond)
	}

	const frozen = 1
	cluster.Servers[frozen].Freeze(t)
	t.Cleanup(func() { cluster.Servers[frozen].Thaw(t) })
	require.Eventually(t, func() bool { return errors.Is(ask(frozen), redisclient.ErrBreakerOpen) }, patience, time.Millisecond)
	for range 100 {
		require.NoError(t, ask(0))
		require.NoError(t, ask(2))
	}
	cluster.Servers[frozen].Thaw(t)
	require.Eventually(t, func() bool { return ask(frozen) == nil }, 2*patience, 10*time.Millisecond)

	changes := 0
	for len(told.Events()) > 0 {
		change := (<-told.Events()).(event.BreakerChanged)
		require.Equal(t, cluster.Servers[frozen].Addr, change.Node)
		changes++
	}
	require.GreaterOrEqual(t, changes, 3)
}

// slowBy is by how much the store of the benchmark answers too late. That of the test is later than any call waits,
// also of a process that is late itself.
const slowBy = 20 * time.Millisecond

// slowStore returns a store behind a proxy that has become too slow.
func slowStore(t testing.TB, by time.Duration, breaker redisclient.BreakerConfig) (*bucket.Redis, *redistest.Proxy) {
	t.Helper()
	proxy := redistest.StartProxy(t, redistest.Start(t).Addr)
	client, err := redisclient.Open("", redisclient.Config{Addresses: []string{proxy.Addr}, Breaker: breaker})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := store.Peek(context.Background(), "acme", aMinute(t, 100))
		return err == nil
	}, patience, time.Millisecond)
	proxy.Delay(bucket.DefaultTimeout + by)
	return store, proxy
}

func TestABreakerSparesASlowStoreConnections(t *testing.T) {
	t.Parallel()
	const calls = 40
	for disabled, enough := range map[bool]func(opened int64) bool{
		true: func(opened int64) bool { return opened >= calls/2 },
		// A probe may cost some as well, and a busy machine has time for several.
		false: func(opened int64) bool { return opened <= calls/4 },
	} {
		store, proxy := slowStore(t, bucket.DefaultPatience, redisclient.BreakerConfig{Disabled: disabled, Delay: time.Minute})
		before := proxy.Opened()
		for range calls {
			_, err := store.Take(context.Background(), bucket.Take{Tenant: "acme", Buckets: aMinute(t, 100), Amounts: onePoint})
			require.Error(t, err)
		}
		opened := proxy.Opened() - before
		require.True(t, enough(opened), "%d connections for %d calls, breaker disabled: %t", opened, calls, disabled)
	}
}

// BenchmarkConnectionsToASlowStore asks a store that is 20 ms too slow 500 times a second. On a machine that does other
// work the process is late, and waits for the store.
func BenchmarkConnectionsToASlowStore(b *testing.B) {
	const every = 2 * time.Millisecond
	for _, disabled := range []bool{true, false} {
		b.Run(fmt.Sprintf("breaker=%t", !disabled), func(b *testing.B) {
			store, proxy := slowStore(b, slowBy, redisclient.BreakerConfig{Disabled: disabled})
			take := bucket.Take{Tenant: "acme", Buckets: aMinute(b, 100), Amounts: onePoint}
			before, refused := proxy.Opened(), 0
			answers := make(chan error, b.N)
			ticker := time.NewTicker(every)
			defer ticker.Stop()
			b.ResetTimer()
			for range b.N {
				<-ticker.C
				go func() {
					_, err := store.Take(context.Background(), take)
					answers <- err
				}()
			}
			for range b.N {
				if errors.Is(<-answers, redisclient.ErrBreakerOpen) {
					refused++
				}
			}
			b.ReportMetric(float64(proxy.Opened()-before), "connections")
			b.ReportMetric(float64(refused), "refused-at-once")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkBreaker is what a closed breaker adds to a call that costs nothing.
func BenchmarkBreaker(b *testing.B) {
	for _, disabled := range []bool{true, false} {
		b.Run(fmt.Sprintf("breaker=%t", !disabled), func(b *testing.B) {
			client := guarded(b, redisclient.BreakerConfig{Disabled: disabled}, func(context.Context) error { return nil })
			ctx := b.Context()
			command := redis.NewCmd(ctx, "ping")
			b.ReportAllocs()
			for b.Loop() {
				_ = client.Process(ctx, command)
			}
		})
	}
}
