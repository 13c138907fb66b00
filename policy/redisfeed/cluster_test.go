package redisfeed_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisfeed"
)

func TestAFailoverIsFollowedWithItsHints(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartReplicatedCluster(t, time.Second)
	client := redistest.ConnectWith(t, "", redisclient.Config{Addresses: cluster.Addrs, Cluster: true})
	feed := open(t, client)
	require.NoError(t, feed.Publish(t.Context(), revision(1), 0))
	f := follow(t, feed, policy.Config{})
	hinted := follow(t, feed, policy.Config{Interval: policy.None})

	slot, err := client.(*redis.ClusterClient).ClusterKeySlot(t.Context(), key).Result()
	require.NoError(t, err)
	const slots, masters = 16384, 3
	cluster.Servers[min(masters-1, int(slot)*masters/slots)].Kill()
	number := uint64(2)
	require.Eventually(t, func() bool { return feed.Publish(t.Context(), revision(number), number-1) == nil }, redistest.Patience, 50*time.Millisecond)
	require.Eventually(t, func() bool { return maxCost(f) == number }, redistest.Patience, 5*time.Millisecond)
	require.Eventually(t, func() bool { return maxCost(hinted) == number }, redistest.Patience, 5*time.Millisecond)
}

// BenchmarkAsking says how much processor time of the Redis a follower takes that asks and has the newest revision.
func BenchmarkAsking(b *testing.B) {
	server := redistest.Start(b)
	client := redistest.Plain(b, server.Addr)
	feed, err := redisfeed.New(redisfeed.Config{Client: client})
	require.NoError(b, err)
	require.NoError(b, feed.Publish(b.Context(), revision(1), 0))
	have := revision(1).Head()
	used := func() (seconds float64) {
		info, err := client.Info(b.Context(), "cpu").Result()
		require.NoError(b, err)
		for line := range strings.Lines(info) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			if name == "used_cpu_sys" || name == "used_cpu_user" {
				n, err := strconv.ParseFloat(value, 64)
				require.NoError(b, err)
				seconds += n
			}
		}
		return seconds
	}
	before := used()
	for b.Loop() {
		if _, err := feed.Newest(b.Context(), have); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric((used()-before)*1e6/float64(b.N), "redis-µs/op")
}
