package bucket_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

func TestNewRedisRefusesWhatWouldNotHold(t *testing.T) {
	t.Parallel()
	unbounded := redis.NewClient(&redis.Options{})
	t.Cleanup(func() { _ = unbounded.Close() })
	unboundedCluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	t.Cleanup(func() { _ = unboundedCluster.Close() })
	unboundedSentinel := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}})
	t.Cleanup(func() { _ = unboundedSentinel.Close() })
	bounded := redis.NewClient(patientOptions("127.0.0.1:1"))
	t.Cleanup(func() { _ = bounded.Close() })
	for want, config := range map[string]bucket.RedisConfig{
		"Client is nil":         {},
		"the client ignores":    {Client: unbounded},
		"ContextTimeoutEnabled": {Client: unboundedCluster},
		"redisclient.Bound":     {Client: unboundedSentinel},
		`namespace "a b"`:       {Client: bounded, Namespace: "a b"},
		"at least 1ms fits":     {Client: bounded, Timeout: -time.Second},
		"a patience of -1s":     {Client: bounded, Patience: -time.Second},
		"timeout of 5ms":        {Client: bounded, AdminTimeout: 5 * time.Millisecond},
	} {
		_, err := bucket.NewRedis(config)
		require.ErrorContains(t, err, want)
	}
	_, err := bucket.NewRedis(bucket.RedisConfig{Client: bounded, Namespace: "shop.eu-1"})
	require.NoError(t, err)
}
