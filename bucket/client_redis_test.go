package bucket_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// count is a script whose runs can be counted.
const count = "return redis.call('incr', KEYS[1])"

// impatient are the options of a client that repeats ordinary commands after a short time.
const (
	impatience = 200 * time.Millisecond
	repeats    = 3
)

func TestAScriptRunsOnceWhateverTheClientRepeats(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t *testing.T) (redis.UniversalClient, *redistest.Server){
		"single": func(t *testing.T) (redis.UniversalClient, *redistest.Server) {
			t.Helper()
			server := redistest.Start(t)
			return redis.NewClient(&redis.Options{
				Addr: server.Addr, ContextTimeoutEnabled: true, ReadTimeout: impatience, MaxRetries: repeats,
			}), server
		},
		"sentinel": func(t *testing.T) (redis.UniversalClient, *redistest.Server) {
			t.Helper()
			group := redistest.StartSentinel(t, time.Minute)
			return redis.NewFailoverClient(&redis.FailoverOptions{
				MasterName: group.Name, SentinelAddrs: group.Addrs,
				ContextTimeoutEnabled: true, ReadTimeout: impatience, MaxRetries: repeats,
			}), group.Master
		},
		"cluster": func(t *testing.T) (redis.UniversalClient, *redistest.Server) {
			t.Helper()
			cluster := redistest.StartCluster(t)
			return redis.NewClusterClient(&redis.ClusterOptions{
				Addrs: cluster.Addrs, ContextTimeoutEnabled: true, ReadTimeout: impatience,
			}), cluster.Servers[redistest.Shard(cluster.Slot(t, "{a}ordinary"))]
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			client, server := start(t)
			t.Cleanup(func() { _ = client.Close() })
			require.NoError(t, redisclient.AddBreaker(client, redisclient.BreakerConfig{Failures: 1000}))
			once, ordinary := []any{"eval", count, 1, "{a}once"}, []any{"eval", count, 1, "{a}ordinary"}
			require.Eventually(t, func() bool {
				return client.Process(ctx, redis.NewCmd(ctx, ordinary...)) == nil
			}, patience, impatience)
			require.NoError(t, client.Process(ctx, bucket.NewCommand(ctx, once)))
			warm(t, client)
			admin := patientClient(t, server.Addr)
			before, err := admin.Get(ctx, "{a}ordinary").Int()
			require.NoError(t, err)

			server.Freeze(t)
			require.Error(t, client.Process(ctx, bucket.NewCommand(ctx, once)))
			require.Error(t, client.Process(ctx, redis.NewCmd(ctx, ordinary...)))
			server.Thaw(t)

			// What the frozen server had received it runs now. The ordinary command came last and shows
			// that the client repeats.
			require.Eventually(t, func() bool {
				n, err := admin.Get(ctx, "{a}ordinary").Int()
				return err == nil && n > before+1
			}, patience, time.Millisecond)
			for range 10 {
				n, err := admin.Get(ctx, "{a}once").Int()
				require.NoError(t, err)
				require.LessOrEqual(t, n, 2)
			}
		})
	}
}

// warm opens some connections: without one that is set up, a frozen server is sent nothing but a handshake.
func warm(t testing.TB, client redis.UniversalClient) {
	t.Helper()
	var group sync.WaitGroup
	for range 3 * repeats {
		group.Go(func() { _ = client.Do(context.Background(), "blpop", "{a}none", impatience.Seconds()/4).Err() })
	}
	group.Wait()
}

// lockedServer returns a server whose password is "right".
func lockedServer(t testing.TB) *redistest.Server {
	t.Helper()
	server := redistest.Start(t)
	require.NoError(t, patientClient(t, server.Addr).ConfigSet(context.Background(), "requirepass", "right").Err())
	return server
}

func TestAScriptFollowsASlotThatHasMoved(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cluster := redistest.StartCluster(t)
	client := configuredClient(t, redisclient.Config{
		Addresses: cluster.Addrs, DialTimeout: patience, SocketTimeout: patience,
		Breaker: redisclient.BreakerConfig{Failures: 1},
	})
	run := func() int64 {
		command := bucket.NewCommand(ctx, []any{"eval", count, 1, "{a}"})
		require.NoError(t, client.Process(ctx, command))
		n, err := command.Int64()
		require.NoError(t, err)
		return n
	}
	require.EqualValues(t, 1, run())
	slot := cluster.Slot(t, "{a}")
	from := redistest.Shard(slot)
	require.NoError(t, cluster.Move(ctx, slot, cluster.Servers[from], cluster.Servers[(from+1)%3]))
	require.EqualValues(t, 2, run(), "the old node says where, which is no failure of it")
	require.EqualValues(t, 3, run())
}

func TestAConnectionThatIsNotSetUpHasSentNothing(t *testing.T) {
	t.Parallel()
	frozen := redistest.Start(t)
	frozen.Freeze(t)
	t.Cleanup(func() { frozen.Thaw(t) })
	secure, config := redistest.StartTLS(t)
	strangers := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	locked := lockedServer(t)
	for name, config := range map[string]redisclient.Config{
		"frozen":                     {Addresses: []string{frozen.Addr}},
		"no Sentinel there":          {Addresses: []string{"127.0.0.1:1", "127.0.0.1:2"}, Master: "main"},
		"frozen Sentinel":            {Addresses: []string{frozen.Addr}, Master: "main"},
		"no such host":               {Addresses: []string{"127.0.0.1:1"}},
		"no node of the cluster":     {Addresses: []string{"127.0.0.1:1", "127.0.0.1:2"}},
		"a certificate of strangers": {Addresses: []string{secure.Addr}, TLS: strangers},
		"no TLS where there is some": {Addresses: []string{secure.Addr}},
		"TLS where there is none":    {Addresses: []string{locked.Addr}, TLS: config},
		"a wrong password":           {Addresses: []string{locked.Addr}, Password: "wrong"},
		"credentials that cannot be had": {Addresses: []string{locked.Addr}, Credentials: func(context.Context) (string, string, error) {
			return "", "", context.DeadlineExceeded
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config.DialTimeout, config.SocketTimeout = impatience, impatience
			config.Breaker.Disabled = true
			store, err := bucket.NewRedis(bucket.RedisConfig{Client: configuredClient(t, config), Timeout: 3 * impatience})
			require.NoError(t, err)
			for range 2 {
				_, err = store.Take(context.Background(), bucket.Take{
					Tenant: "acme", Buckets: []bucket.Bucket{{Limits: fourLimits(t, 100)}}, Amounts: points(1),
				})
				requireNothingHappened(t, err)
				require.NotContains(t, err.Error(), "wrong")
			}
		})
	}
}

func TestAClientReachesWhatItIsConfiguredFor(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	secure, config := redistest.StartTLS(t)
	locked := lockedServer(t)
	group := redistest.StartSentinel(t, time.Minute)
	cluster := redistest.StartCluster(t)
	for name, config := range map[string]redisclient.Config{
		"single":         {Addresses: []string{"redis://:right@" + locked.Addr + "/3"}},
		"RESP2":          {Addresses: []string{locked.Addr}, Password: "right", Protocol: 2},
		"TLS":            {Addresses: []string{secure.Addr}, TLS: config},
		"Sentinels":      {Addresses: group.Addrs, Master: group.Name, Database: 2},
		"Sentinel URL":   {Addresses: []string{"redis://" + group.Addrs[0] + "?master_name=" + group.Name}},
		"cluster":        {Addresses: cluster.Addrs},
		"one of several": {Addresses: cluster.Addrs[:1], Cluster: true, Protocol: 2},
		"credentials": {Addresses: []string{locked.Addr}, Credentials: func(context.Context) (string, string, error) {
			return "default", "right", nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config.DialTimeout, config.SocketTimeout = patience, patience
			client := configuredClient(t, config)
			store := newRedisStore(t, client)
			buckets := []bucket.Bucket{{Limits: fourLimits(t, 100)}}
			result, err := store.Take(ctx, bucket.Take{Tenant: name, Buckets: buckets, Amounts: points(1)})
			require.NoError(t, err)
			require.Equal(t, bucket.Admitted, result.Verdict)
			require.EqualValues(t, 1, client.Exists(ctx, store.BucketKey(name, bucket.Owner{})).Val())
		})
	}
}
