package bucket_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/buckettest"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// patience is the timeout of tests that are not about time: a busy machine shall not fail them.
const patience = 10 * time.Second

// clock is a time that tests set. It starts a day from now, so that Redis, whose own clock decides
// when keys vanish, keeps what a clock that is set back still needs.
type clock struct {
	ms atomic.Int64
}

func newClock() *clock {
	c := &clock{}
	c.ms.Store(time.Now().Add(24 * time.Hour).UnixMilli())
	return c
}

func (c *clock) now() time.Time          { return time.UnixMilli(c.ms.Load()) }
func (c *clock) unixMilli() int64        { return c.ms.Load() }
func (c *clock) advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }

func newRedisStore(t testing.TB, client redis.UniversalClient) *bucket.Redis {
	t.Helper()
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: patience})
	require.NoError(t, err)
	return store
}

// patientClient waits as long as the store lets it.
func patientClient(t testing.TB, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(patientOptions(addr))
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func patientOptions(addr string) *redis.Options {
	options := &redis.Options{Addr: addr}
	redisclient.Bound(options)
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.PoolTimeout = patience, patience, patience, patience
	return options
}

func patientClusterClient(t testing.TB, addrs []string) *redis.ClusterClient {
	t.Helper()
	options := &redis.ClusterOptions{Addrs: addrs}
	boundPatiently(options)
	client := redis.NewClusterClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func boundPatiently(options *redis.ClusterOptions) {
	redisclient.Bound(options)
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.PoolTimeout = patience, patience, patience, patience
}

func configuredClient(t testing.TB, config redisclient.Config) redis.UniversalClient {
	t.Helper()
	client, err := redisclient.Open("", config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestMemoryKeepsTheContract(t *testing.T) {
	t.Parallel()
	open := func(*testing.T) buckettest.Harness {
		c := newClock()
		return buckettest.Harness{Store: bucket.NewMemory(bucket.MemoryConfig{Clock: c.now}), Advance: c.advance}
	}
	buckettest.Run(t, open)
	buckettest.RunOverrides(t, open)
	buckettest.RunUsage(t, open)
	buckettest.RunLeases(t, open)
}

// TestRedisKeepsTheContract has commands that ride together. In [TestAUserOfRedisWithFewRightsKeepsTheContract] each goes alone.
func TestRedisKeepsTheContract(t *testing.T) {
	t.Parallel()
	runRedisContract(t, patientClient(t, redistest.Start(t).Addr), (*bucket.Redis).AlwaysQueue)
}

// TestRedisClusterKeepsTheContract is the same of a cluster, see [TestRedisClusterWithReplicasKeepsTheContract].
func TestRedisClusterKeepsTheContract(t *testing.T) {
	t.Parallel()
	runRedisContract(t, patientClusterClient(t, redistest.StartCluster(t).Addrs), (*bucket.Redis).AlwaysQueue)
}

func runRedisContract(t *testing.T, client redis.UniversalClient, prepare func(*bucket.Redis)) {
	t.Helper()
	open := func(t *testing.T) buckettest.Harness {
		t.Helper()
		c := newClock()
		store := newRedisStore(t, client)
		prepare(store)
		require.NoError(t, store.SetTestClock(c.unixMilli))
		return buckettest.Harness{Store: store, Advance: c.advance}
	}
	buckettest.Run(t, open)
	buckettest.RunOverrides(t, open)
	buckettest.RunUsage(t, open)
	buckettest.RunLeases(t, open)
}

// alone leaves a store as it is: a lone caller sends its commands itself.
func alone(*bucket.Redis) {}
