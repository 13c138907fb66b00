package redistest_test

import (
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

func open(t *testing.T, options *redis.Options) *redis.Client {
	t.Helper()
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestARestartedServerHasItsAddressAndWhatItKeptOnDisk(t *testing.T) {
	t.Parallel()
	for want, options := range map[int64][]string{
		0: nil,
		1: {"--appendonly", "yes", "--appendfsync", "always"},
	} {
		server := redistest.Start(t, options...)
		client := open(t, &redis.Options{Addr: server.Addr})
		require.NoError(t, client.Set(t.Context(), "k", "v", 0).Err())
		server.Kill()
		require.NoError(t, server.Restart())
		n, err := client.Exists(t.Context(), "k").Result()
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
}

func TestATLSServerRefusesPlainTextAndClientsWithoutACertificate(t *testing.T) {
	t.Parallel()
	server, config := redistest.StartTLS(t)
	require.NoError(t, open(t, &redis.Options{Addr: server.Addr, TLSConfig: config}).Ping(t.Context()).Err())
	require.Error(t, open(t, &redis.Options{Addr: server.Addr, MaxRetries: -1}).Ping(t.Context()).Err())
	without := config.Clone()
	without.Certificates = nil
	require.Error(t, open(t, &redis.Options{Addr: server.Addr, TLSConfig: without, MaxRetries: -1}).Ping(t.Context()).Err())
	server, config = redistest.StartTLS(t, "--tls-auth-clients", "no")
	config.Certificates = nil
	require.NoError(t, open(t, &redis.Options{Addr: server.Addr, TLSConfig: config}).Ping(t.Context()).Err())
	config.RootCAs = nil
	require.Error(t, open(t, &redis.Options{Addr: server.Addr, TLSConfig: config, MaxRetries: -1}).Ping(t.Context()).Err())
}

func TestAMovedSlotTakesItsKeysAlongWhileTheyAreWritten(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs})
	t.Cleanup(func() { _ = client.Close() })
	const keys = 100
	for i := range keys {
		require.NoError(t, client.Set(t.Context(), "{tag}"+strconv.Itoa(i), i, 0).Err())
	}
	slot := cluster.Slot(t, "{tag}")
	shard := redistest.Shard(slot)
	from, to := cluster.Servers[shard], cluster.Servers[(shard+1)%3]
	moved := make(chan error, 1)
	go func() { moved <- cluster.Move(t.Context(), slot, from, to) }()
	for i := range keys {
		require.NoError(t, client.Incr(t.Context(), "{tag}"+strconv.Itoa(i)).Err())
	}
	require.NoError(t, <-moved)
	for i := range keys {
		n, err := client.Get(t.Context(), "{tag}"+strconv.Itoa(i)).Int()
		require.NoError(t, err)
		require.Equal(t, i+1, n)
	}
	err := open(t, &redis.Options{Addr: from.Addr}).Get(t.Context(), "{tag}1").Err()
	require.ErrorContains(t, err, "MOVED "+strconv.Itoa(slot)+" "+to.Addr)
}
