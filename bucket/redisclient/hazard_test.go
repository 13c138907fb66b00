package redisclient_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// nowhere is an address at which nobody listens.
const nowhere = "127.0.0.1:1"

func hazards(t *testing.T, client redis.UniversalClient) []string {
	t.Helper()
	t.Cleanup(func() { _ = client.Close() })
	found := []string{}
	for _, h := range redisclient.Hazards(client) {
		require.NotEmpty(t, h.Seen)
		require.NotEmpty(t, h.Why)
		require.NotEmpty(t, h.Remedy)
		found = append(found, h.Code)
	}
	return found
}

func TestBoundedClientsHaveNoHazard(t *testing.T) {
	t.Parallel()
	for _, config := range []redisclient.Config{
		{Addresses: []string{nowhere}},
		{Addresses: []string{nowhere}, Cluster: true},
		{Addresses: []string{nowhere}, Master: "main"},
		{Addresses: []string{"redis://" + nowhere + "?max_retries=5&read_timeout=60s"}, Protocol: 2},
	} {
		client, err := redisclient.Open("", config)
		require.NoError(t, err)
		require.Empty(t, hazards(t, client))
	}
}

func TestTheDefaultsOfClientsAreHazards(t *testing.T) {
	t.Parallel()
	defaults := []string{
		"deadline-ignored", "client-retries", "long-dial-timeout", "dial-attempts",
		"long-socket-timeout", "long-socket-timeout", "long-pool-timeout",
	}
	require.Equal(t, append(slices.Clone(defaults), "maintenance-notifications"), hazards(t, redis.NewClient(&redis.Options{Addr: nowhere})))
	// go-redis knows no such notifications behind Sentinels and in rings.
	require.Equal(t, defaults, hazards(t, redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "main", SentinelAddrs: []string{nowhere}})))
	require.Equal(t, []string{
		"deadline-ignored", "long-dial-timeout", "dial-attempts", "long-socket-timeout",
		"long-socket-timeout", "long-pool-timeout", "slow-topology-reload", "maintenance-notifications",
	}, hazards(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{nowhere}})))
	require.Contains(t, hazards(t, redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": nowhere}})), "client-retries")
}

func TestEachHazardIsSeenByItself(t *testing.T) {
	t.Parallel()
	for code, change := range map[string]func(*redis.Options){
		"deadline-ignored":    func(o *redis.Options) { o.ContextTimeoutEnabled = false },
		"client-retries":      func(o *redis.Options) { o.MaxRetries = 1 },
		"long-dial-timeout":   func(o *redis.Options) { o.DialTimeout = 2 * time.Second },
		"dial-attempts":       func(o *redis.Options) { o.DialerRetries = 2 },
		"long-socket-timeout": func(o *redis.Options) { o.ReadTimeout = -1 },
		"long-pool-timeout":   func(o *redis.Options) { o.PoolTimeout = 2 * time.Second },
		"maintenance-notifications": func(o *redis.Options) {
			o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeAuto}
		},
	} {
		options := &redis.Options{Addr: nowhere}
		redisclient.Bound(options)
		change(options)
		require.Equal(t, []string{code}, hazards(t, redis.NewClient(options)))
	}
	for code, change := range map[string]func(*redis.ClusterOptions){
		"redirects-off":        func(o *redis.ClusterOptions) { o.MaxRedirects = -1 },
		"slow-topology-reload": func(o *redis.ClusterOptions) { o.ClusterStateReloadInterval = time.Minute },
		"reads-from-replicas":  func(o *redis.ClusterOptions) { o.RouteByLatency = true },
		"client-retries":       func(o *redis.ClusterOptions) { o.MaxRetries = 2 },
	} {
		options := &redis.ClusterOptions{Addrs: []string{nowhere}}
		redisclient.Bound(options)
		change(options)
		require.Equal(t, []string{code}, hazards(t, redis.NewClusterClient(options)))
	}
	require.Equal(t, []string{"unknown-client"}, hazards(t, wrappedClient{redis.NewClient(&redis.Options{Addr: nowhere})}))
}

// wrappedClient is a client of somebody's own.
type wrappedClient struct{ redis.UniversalClient }

func TestRetriesSayHowOftenACommandOfOthersIsSent(t *testing.T) {
	t.Parallel()
	options := &redis.Options{Addr: nowhere}
	redisclient.Bound(options)
	options.MaxRetries = 3
	client := openClient(t, options)
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client})
	require.NoError(t, err)
	found := redisclient.HazardsOf(store)
	require.Len(t, found, 1)
	require.Contains(t, found[0].Why, "up to 4 times")
	require.Contains(t, found[0].Why, "calls of this library are sent once")
	require.Empty(t, redisclient.HazardsOf(bucket.NewMemory(bucket.MemoryConfig{})))
}

func TestABreakerBeforeTheNodesIsSeen(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	addr := redistest.Start(t).Addr
	client := patientClient(t, addr)
	has, err := redisclient.HasBreaker(ctx, client)
	require.NoError(t, err)
	require.False(t, has)
	require.NoError(t, redisclient.AddBreaker(client, redisclient.BreakerConfig{Disabled: true}))
	has, err = redisclient.HasBreaker(ctx, client)
	require.NoError(t, err)
	require.False(t, has)
	require.NoError(t, redisclient.AddBreaker(client, redisclient.BreakerConfig{}))
	has, err = redisclient.HasBreaker(ctx, client)
	require.NoError(t, err)
	require.True(t, has)

	options := patientOptions(addr)
	options.Limiter = alwaysAllows{}
	has, err = redisclient.HasBreaker(ctx, openClient(t, options))
	require.NoError(t, err)
	require.True(t, has)

	cluster := redistest.StartCluster(t)
	own := patientClusterClient(t, cluster.Addrs)
	has, err = redisclient.HasBreaker(ctx, own)
	require.NoError(t, err)
	require.False(t, has)
	opened, err := redisclient.Open("", redisclient.Config{Addresses: cluster.Addrs, DialTimeout: patience, SocketTimeout: patience})
	require.NoError(t, err)
	t.Cleanup(func() { _ = opened.Close() })
	has, err = redisclient.HasBreaker(ctx, opened)
	require.NoError(t, err)
	require.True(t, has)

	_, err = redisclient.HasBreaker(ctx, openClient(t, patientOptions(nowhere)))
	require.Error(t, err, "nobody knows what stands before a node that was not reached")
}

// alwaysAllows is a limiter of go-redis.
type alwaysAllows struct{}

func (alwaysAllows) Allow() error       { return nil }
func (alwaysAllows) ReportResult(error) {}
