package bucket_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

func TestNewClientReadsAddressesAndBoundsTheClient(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"127.0.0.1:6379":              "127.0.0.1:6379",
		"[::1]:7000":                  "[::1]:7000",
		"redis://user:pw@host:6380/2": "host:6380",
		"rediss://host:6390":          "host:6390",
		"unix:///run/redis.sock?db=1": "/run/redis.sock",
	} {
		client, err := bucket.NewClient(address)
		require.NoError(t, err, address)
		t.Cleanup(func() { _ = client.Close() })
		single, ok := client.(*redis.Client)
		require.True(t, ok)
		options := single.Options()
		require.Equal(t, want, options.Addr)
		require.True(t, options.ContextTimeoutEnabled)
		require.Zero(t, options.MaxRetries, "nothing is sent twice")
		require.Equal(t, address[:7] == "rediss:", options.TLSConfig != nil)
	}
	for _, addresses := range [][]string{
		{"127.0.0.1:7001", "redis://127.0.0.1:7002"}, {"redis://127.0.0.1:7001?cluster=true"},
	} {
		client, err := bucket.NewClient(addresses...)
		require.NoError(t, err)
		t.Cleanup(func() { _ = client.Close() })
		cluster, ok := client.(*redis.ClusterClient)
		require.True(t, ok)
		options := cluster.Options()
		require.Len(t, options.Addrs, len(addresses))
		require.True(t, options.ContextTimeoutEnabled)
		require.Equal(t, time.Second, options.ClusterStateReloadInterval)
	}
}

func TestNewClientSaysWhatIsWrongAndRepeatsNoPassword(t *testing.T) {
	t.Parallel()
	for want, addresses := range map[string][]string{
		"no address":            nil,
		"neither host:port":     {"localhost"},
		"unknown scheme":        {"http://user:secret@host:1"},
		"not a valid Redis URL": {"redis://user:secret@host:port"},
		"address 2 of 2":        {"a:1", ":"},
		"unix sockets":          {"a:1", "unix:///run/x"},
		"no numbered databases": {"redis://a:1/3", "redis://b:1/3"},
		"differ in user":        {"redis://u:secret@a:1", "redis://b:1"},
	} {
		_, err := bucket.NewClient(addresses...)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "secret")
	}
}

func TestNewRedisRefusesWhatWouldNotHold(t *testing.T) {
	t.Parallel()
	unbounded := redis.NewClient(&redis.Options{})
	t.Cleanup(func() { _ = unbounded.Close() })
	unboundedCluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	t.Cleanup(func() { _ = unboundedCluster.Close() })
	bounded := redis.NewClient(boundOptions())
	t.Cleanup(func() { _ = bounded.Close() })
	for want, config := range map[string]bucket.RedisConfig{
		"Client is nil":         {},
		"the client ignores":    {Client: unbounded},
		"ContextTimeoutEnabled": {Client: unboundedCluster},
		`namespace "a b"`:       {Client: bounded, Namespace: "a b"},
		"at least 1ms fits":     {Client: bounded, Timeout: -time.Second},
	} {
		_, err := bucket.NewRedis(config)
		require.ErrorContains(t, err, want)
	}
	_, err := bucket.NewRedis(bucket.RedisConfig{Client: bounded, Namespace: "shop.eu-1"})
	require.NoError(t, err)
}
