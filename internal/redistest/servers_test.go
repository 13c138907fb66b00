package redistest_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// never is longer than a busy machine is silent.
const never = time.Minute

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

func TestSentinelsReplaceAMasterThatIsGone(t *testing.T) {
	t.Parallel()
	group := redistest.StartSentinel(t, 500*time.Millisecond)
	require.Len(t, group.Addrs, 3)
	client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: group.Name, SentinelAddrs: group.Addrs})
	t.Cleanup(func() { _ = client.Close() })
	require.NoError(t, client.Set(t.Context(), "k", "v", 0).Err())
	replica := open(t, &redis.Options{Addr: group.Replica.Addr})
	require.Eventually(t, func() bool { return replica.Exists(t.Context(), "k").Val() == 1 }, patience, time.Millisecond)
	group.Master.Kill()
	require.Eventually(t, func() bool { return replica.Set(t.Context(), "k", "w", 0).Err() == nil }, never, 10*time.Millisecond)
	require.Eventually(t, func() bool { return client.Get(t.Context(), "k").Val() == "w" }, never, 10*time.Millisecond)
}

func TestAReplicaTakesTheSlotsOfAMasterThatIsGone(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartReplicatedCluster(t, 500*time.Millisecond)
	require.Len(t, cluster.Addrs, 6)
	slot := cluster.Slot(t, "k")
	shard := redistest.Shard(slot)
	master := open(t, &redis.Options{Addr: cluster.Servers[shard].Addr})
	require.NoError(t, master.Set(t.Context(), "k", "v", 0).Err())
	cluster.Servers[shard].Kill()
	replica := open(t, &redis.Options{Addr: cluster.Replicas[shard].Addr})
	require.Eventually(t, func() bool { return replica.Set(t.Context(), "k", "w", 0).Err() == nil }, never, 10*time.Millisecond)
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
