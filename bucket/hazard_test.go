package bucket_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// nowhere is an address at which nobody listens.
const nowhere = "127.0.0.1:1"

func hazards(t *testing.T, client redis.UniversalClient) []string {
	t.Helper()
	t.Cleanup(func() { _ = client.Close() })
	found := []string{}
	for _, h := range bucket.ClientHazards(client) {
		require.NotEmpty(t, h.Seen)
		require.NotEmpty(t, h.Why)
		require.NotEmpty(t, h.Remedy)
		found = append(found, h.Code)
	}
	return found
}

func TestBoundedClientsHaveNoHazard(t *testing.T) {
	t.Parallel()
	for _, config := range []bucket.ClientConfig{
		{Addresses: []string{nowhere}},
		{Addresses: []string{nowhere}, Cluster: true},
		{Addresses: []string{nowhere}, Master: "main"},
		{Addresses: []string{"redis://" + nowhere + "?max_retries=5&read_timeout=60s"}, Protocol: 2},
	} {
		client, err := bucket.OpenClient(config)
		require.NoError(t, err)
		require.Empty(t, hazards(t, client))
	}
}

func TestTheDefaultsOfClientsAreHazards(t *testing.T) {
	t.Parallel()
	defaults := []string{
		bucket.HazardDeadlineIgnored, bucket.HazardRetries, bucket.HazardDialTimeout, bucket.HazardDialAttempts,
		bucket.HazardSocketTimeout, bucket.HazardSocketTimeout, bucket.HazardPoolTimeout,
	}
	require.Equal(t, append(slices.Clone(defaults), bucket.HazardMaintenance), hazards(t, redis.NewClient(&redis.Options{Addr: nowhere})))
	// go-redis knows no such notifications behind Sentinels and in rings.
	require.Equal(t, defaults, hazards(t, redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "main", SentinelAddrs: []string{nowhere}})))
	require.Equal(t, []string{
		bucket.HazardDeadlineIgnored, bucket.HazardDialTimeout, bucket.HazardDialAttempts, bucket.HazardSocketTimeout,
		bucket.HazardSocketTimeout, bucket.HazardPoolTimeout, bucket.HazardTopologyReload, bucket.HazardMaintenance,
	}, hazards(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{nowhere}})))
	require.Contains(t, hazards(t, redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": nowhere}})), bucket.HazardRetries)
}

func TestEachHazardIsSeenByItself(t *testing.T) {
	t.Parallel()
	for code, change := range map[string]func(*redis.Options){
		bucket.HazardDeadlineIgnored: func(o *redis.Options) { o.ContextTimeoutEnabled = false },
		bucket.HazardRetries:         func(o *redis.Options) { o.MaxRetries = 1 },
		bucket.HazardDialTimeout:     func(o *redis.Options) { o.DialTimeout = 2 * time.Second },
		bucket.HazardDialAttempts:    func(o *redis.Options) { o.DialerRetries = 2 },
		bucket.HazardSocketTimeout:   func(o *redis.Options) { o.ReadTimeout = -1 },
		bucket.HazardPoolTimeout:     func(o *redis.Options) { o.PoolTimeout = 2 * time.Second },
		bucket.HazardMaintenance: func(o *redis.Options) {
			o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeAuto}
		},
	} {
		options := &redis.Options{Addr: nowhere}
		bucket.BoundOptions(options)
		change(options)
		require.Equal(t, []string{code}, hazards(t, redis.NewClient(options)))
	}
	for code, change := range map[string]func(*redis.ClusterOptions){
		bucket.HazardRedirectsOff:      func(o *redis.ClusterOptions) { o.MaxRedirects = -1 },
		bucket.HazardTopologyReload:    func(o *redis.ClusterOptions) { o.ClusterStateReloadInterval = time.Minute },
		bucket.HazardReadsFromReplicas: func(o *redis.ClusterOptions) { o.RouteByLatency = true },
		bucket.HazardRetries:           func(o *redis.ClusterOptions) { o.MaxRetries = 2 },
	} {
		options := &redis.ClusterOptions{Addrs: []string{nowhere}}
		bucket.BoundClusterOptions(options)
		change(options)
		require.Equal(t, []string{code}, hazards(t, redis.NewClusterClient(options)))
	}
	require.Equal(t, []string{bucket.HazardUnknownClient}, hazards(t, wrappedClient{redis.NewClient(&redis.Options{Addr: nowhere})}))
}

// wrappedClient is a client of somebody's own.
type wrappedClient struct{ redis.UniversalClient }

func TestRetriesSayHowOftenACommandOfOthersIsSent(t *testing.T) {
	t.Parallel()
	options := &redis.Options{Addr: nowhere}
	bucket.BoundOptions(options)
	options.MaxRetries = 3
	client := openClient(t, options)
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client})
	require.NoError(t, err)
	bulkhead, err := bucket.NewBulkhead(store, bucket.BulkheadConfig{})
	require.NoError(t, err)
	for _, s := range []bucket.Store{store, bulkhead} {
		found := bucket.HazardsOf(s)
		require.Len(t, found, 1)
		require.Contains(t, found[0].Why, "up to 4 times")
		require.Contains(t, found[0].Why, "calls of this library are sent once")
	}
	require.Empty(t, bucket.HazardsOf(bucket.NewMemory(bucket.MemoryConfig{})))
}

func TestABreakerBeforeTheNodesIsSeen(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	addr := redistest.Start(t).Addr
	client := patientClient(t, addr)
	has, err := bucket.HasBreaker(ctx, client)
	require.NoError(t, err)
	require.False(t, has)
	require.NoError(t, bucket.AddBreaker(client, bucket.BreakerConfig{Disabled: true}))
	has, err = bucket.HasBreaker(ctx, client)
	require.NoError(t, err)
	require.False(t, has)
	require.NoError(t, bucket.AddBreaker(client, bucket.BreakerConfig{}))
	has, err = bucket.HasBreaker(ctx, client)
	require.NoError(t, err)
	require.True(t, has)

	options := patientOptions(addr)
	options.Limiter = alwaysAllows{}
	has, err = bucket.HasBreaker(ctx, openClient(t, options))
	require.NoError(t, err)
	require.True(t, has)

	cluster := redistest.StartCluster(t)
	own := patientClusterClient(t, cluster.Addrs)
	has, err = bucket.HasBreaker(ctx, own)
	require.NoError(t, err)
	require.False(t, has)
	opened, err := bucket.OpenClient(bucket.ClientConfig{Addresses: cluster.Addrs, DialTimeout: patience, SocketTimeout: patience})
	require.NoError(t, err)
	t.Cleanup(func() { _ = opened.Close() })
	has, err = bucket.HasBreaker(ctx, opened)
	require.NoError(t, err)
	require.True(t, has)

	_, err = bucket.HasBreaker(ctx, openClient(t, patientOptions(nowhere)))
	require.Error(t, err, "nobody knows what stands before a node that was not reached")
}

// alwaysAllows is a limiter of go-redis.
type alwaysAllows struct{}

func (alwaysAllows) Allow() error       { return nil }
func (alwaysAllows) ReportResult(error) {}
