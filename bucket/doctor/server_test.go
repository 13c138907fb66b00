package doctor_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/doctor"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

func TestAServerThatEvictsIsFound(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t, healthy("--maxmemory-policy", "allkeys-lru")...).Addr
	only(t, at(t, addr), doctor.Error, "evicting-policy", "allkeys-lru")
	set(t, addr, "maxmemory", 0)
	found := examine(t, at(t, addr))
	require.ElementsMatch(t, []string{"evicting-policy", "memory-unbounded", "no-replica"}, codes(found))
	require.Equal(t, doctor.Warning, found[0].Severity)
}

func TestKeysThatWereEvictedAreFound(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t, healthy("--maxmemory-policy", "allkeys-lru")...).Addr
	client := redistest.Plain(t, addr)
	ctx := context.Background()
	require.NoError(t, client.Set(ctx, "large", strings.Repeat("x", 1<<20), 0).Err())
	set(t, addr, "maxmemory", 1<<20)
	require.NoError(t, client.Ping(ctx).Err())
	require.Eventually(t, func() bool {
		_ = client.Set(ctx, "more", strings.Repeat("x", 1<<10), 0).Err()
		left, err := client.Exists(ctx, "large").Result()
		return err == nil && left == 0
	}, patience, time.Millisecond)
	set(t, addr, "maxmemory-policy", "noeviction", "maxmemory", memory)
	only(t, at(t, addr), doctor.Warning, "evicted-keys", "keys were evicted")
}

func TestMemoryThatIsNearlyFullIsFound(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t, healthy()...).Addr
	ctx := context.Background()
	// A value that is sent leaves a buffer of its size behind, which counts until the server takes it back.
	require.NoError(t, redistest.Plain(t, addr).SetRange(ctx, "large", 32<<20, "x").Err())
	info, err := redistest.Plain(t, addr).InfoMap(ctx, "memory").Result()
	require.NoError(t, err)
	used, err := strconv.Atoi(info["Memory"]["used_memory"])
	require.NoError(t, err)
	set(t, addr, "maxmemory", used/88*100)
	only(t, at(t, addr), doctor.Warning, "memory-nearly-full", "bytes are used")
}

func TestMemoryThatIsFullIsFound(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t, healthy()...).Addr
	set(t, addr, "maxmemory", 1)
	found := examine(t, at(t, addr))
	require.Subset(t, codes(found), []string{"memory-nearly-full", "memory-full"})
}

func TestMemoryWithoutALimitIsFound(t *testing.T) {
	t.Parallel()
	only(t, at(t, redistest.Start(t, "--appendonly", "yes").Addr), doctor.Note, "memory-unbounded", "maxmemory is not set")
}

func TestAServerThatForgetsIsFound(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t, "--maxmemory", memory).Addr
	only(t, at(t, addr), doctor.Warning, "no-persistence", "neither")
	set(t, addr, "save", "3600 1")
	only(t, at(t, addr), doctor.Note, "snapshots-only", "3600 1")
}

func TestBothVersionsOfTheProtocolAreUnderstood(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t, "--maxmemory", memory, "--appendonly", "no").Addr
	for _, protocol := range []int{2, 3} {
		client := open(t, redisclient.Config{Addresses: []string{addr}, Protocol: protocol})
		only(t, client, doctor.Warning, "no-persistence", "neither")
	}
}

func TestAMasterWithoutReplicasIsFound(t *testing.T) {
	t.Parallel()
	found := examine(t, at(t, redistest.Start(t, healthy()...).Addr))
	require.Equal(t, []string{"no-replica"}, codes(found))
	require.Equal(t, doctor.Note, found[0].Severity)

	cluster := redistest.StartCluster(t)
	for _, addr := range cluster.Addrs {
		set(t, addr, "maxmemory", memory, "appendonly", "yes")
	}
	found = examine(t, at(t, cluster.Addrs...))
	require.Len(t, found, len(cluster.Addrs))
	for _, f := range found {
		require.Equal(t, "no-replica", f.Code)
		require.Equal(t, doctor.Warning, f.Severity)
	}
}

func TestAReplicaInThePlaceOfAMasterIsFound(t *testing.T) {
	t.Parallel()
	group := redistest.StartSentinel(t, never)
	addr := group.Replica.Addr
	set(t, addr, "maxmemory", memory, "appendonly", "yes")
	f := only(t, at(t, addr), doctor.Error, "read-only-replica", "a replica of "+group.Master.Addr)
	require.Contains(t, f.Remedy, "master")

	// Where INFO is forbidden, because it refuses what is written.
	allow(t, redistest.Plain(t, addr), rules(t, false)...)
	found := examine(t, open(t, redisclient.Config{Addresses: []string{addr}, Username: limiter, Password: "pw"}))
	require.ElementsMatch(t, []string{"could-not-look", "read-only-replica"}, codes(found))
}

func TestScriptsThatMayRunForLongAreFound(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t, healthy("--lua-time-limit", "60000")...).Addr
	only(t, at(t, addr), doctor.Note, "script-time-limit", "60000ms")
	set(t, addr, "lua-time-limit", 0)
	only(t, at(t, addr), doctor.Note, "script-time-limit", "is off")
}

func TestAClusterThatNeedsAllItsShardsIsFound(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartReplicatedCluster(t, never)
	for _, addr := range cluster.Addrs {
		set(t, addr, "maxmemory", memory, "appendonly", "yes")
	}
	set(t, cluster.Addrs[0], "cluster-require-full-coverage", "yes")
	f := only(t, at(t, cluster.Addrs...), doctor.Warning, "full-coverage", "yes")
	require.Equal(t, cluster.Addrs[0], f.Node)
}

func TestAClusterThatHasLostSlotsIsFound(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t, healthy("--cluster-enabled", "yes", "--cluster-require-full-coverage", "no")...).Addr
	require.NoError(t, redistest.Plain(t, addr).ClusterAddSlotsRange(context.Background(), 0, 8191).Err())
	client := at(t, "redis://"+addr+"?cluster=true")
	require.Eventually(t, func() bool {
		for _, f := range examine(t, client) {
			if f.Code == "cluster-state" && f.Severity == doctor.Error && strings.Contains(f.Seen, "8192 of 16384") {
				return true
			}
		}
		return false
	}, patience, time.Millisecond)
}

func TestAClientOfTheWrongKindIsFound(t *testing.T) {
	t.Parallel()
	single := redistest.Start(t, healthy()...).Addr
	only(t, at(t, "redis://"+single+"?cluster=true"), doctor.Error, "not-a-cluster", "a single server")

	node := redistest.StartCluster(t).Addrs[0]
	set(t, node, "maxmemory", memory, "appendonly", "yes")
	require.Contains(t, codes(examine(t, at(t, node))), "cluster-as-single")
	found := examine(t, at(t, "redis://"+node+"/3"))
	require.Equal(t, []string{"database-in-cluster"}, codes(found))
}

func TestAClockThatIsApartIsFound(t *testing.T) {
	t.Parallel()
	client := at(t, redistest.Start(t, healthy()...).Addr)
	for apart, seen := range map[time.Duration]string{-time.Hour: "ahead of", time.Hour: "behind"} {
		found, err := doctor.Examine(context.Background(), doctor.Config{
			Client: client, Timeout: patience, Patience: patience,
			Clock: func() time.Time { return time.Now().Add(apart) },
		})
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"clock-apart", "no-replica"}, codes(found))
		for _, f := range found {
			if f.Code == "clock-apart" {
				require.Contains(t, f.Seen, seen)
			}
		}
	}
}

func TestAServerThatIsSlowForTheTimeoutIsFound(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, healthy()...)
	const delay = 20 * time.Millisecond
	options := &redis.Options{Addr: server.Addr}
	redisclient.Bound(options)
	options.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		return slowConn{conn, delay}, err
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	require.NoError(t, redisclient.AddBreaker(client, redisclient.BreakerConfig{}))
	found, err := doctor.Examine(context.Background(), doctor.Config{Client: client, Timeout: delay / 2, Patience: patience})
	require.NoError(t, err)
	require.Contains(t, codes(found), "slow")
	for _, f := range found {
		if f.Code == "slow" {
			require.Equal(t, doctor.Error, f.Severity)
			require.Contains(t, f.Seen, "10ms")
		}
	}
}

// slowConn is a connection to a server that is far away.
type slowConn struct {
	net.Conn

	delay time.Duration
}

func (c slowConn) Write(b []byte) (int, error) {
	<-time.After(c.delay)
	return c.Conn.Write(b)
}

func TestAConnectionWithoutTLSIsFoundUnlessItIsOfThisMachine(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, healthy()...)
	options := &redis.Options{Addr: "redis.example:6379"}
	redisclient.Bound(options)
	options.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server.Addr)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	require.NoError(t, redisclient.AddBreaker(client, redisclient.BreakerConfig{}))
	f := only(t, client, doctor.Warning, "tls-off", "not encrypted")
	require.Equal(t, "redis.example:6379", f.Node)

	encrypted, config := redistest.StartTLS(t, healthy()...)
	found := examine(t, open(t, redisclient.Config{Addresses: []string{encrypted.Addr}, TLS: config}))
	require.Equal(t, []string{"no-replica"}, codes(found))
}

func TestServersOfARingAreExamined(t *testing.T) {
	t.Parallel()
	first, second := redistest.Start(t, healthy()...).Addr, redistest.Start(t, healthy("--maxmemory-policy", "allkeys-lru")...).Addr
	ring := redis.NewRing(&redis.RingOptions{
		Addrs: map[string]string{"first": first, "second": second}, ContextTimeoutEnabled: true,
		MaxRetries: -1, DialTimeout: time.Second, ReadTimeout: time.Second, WriteTimeout: time.Second, PoolTimeout: time.Second, DialerRetries: 1,
	})
	t.Cleanup(func() { _ = ring.Close() })
	var nodes []string
	for _, f := range examine(t, ring) {
		if f.Code == "evicting-policy" {
			nodes = append(nodes, f.Node)
		}
	}
	require.Equal(t, []string{second}, nodes)
}

func TestOldVersionsAreFound(t *testing.T) {
	t.Parallel()
	for version, severity := range map[string]doctor.Severity{"6.0.16": doctor.Error, "5.0": doctor.Error, "6.2.14": doctor.Note} {
		f := only(t, at(t, pretend(t, healthyInfo(version), nil)), severity, "old-version", version)
		require.Contains(t, f.Remedy, "upgrade")
	}
	for _, version := range []string{"7.2.4", "8.0.1", "unknown"} {
		require.Empty(t, examine(t, at(t, pretend(t, healthyInfo(version), nil))), version)
	}
}

// healthyInfo is what INFO says of a server about which there is nothing to say.
func healthyInfo(version string) string {
	return fmt.Sprintf("redis_version:%s\r\nmaxmemory:%s\r\nused_memory:1\r\nmaxmemory_policy:noeviction\r\nevicted_keys:0\r\n"+
		"aof_enabled:1\r\nrole:master\r\nconnected_slaves:1\r\ncluster_enabled:0\r\n", version, memory)
}
