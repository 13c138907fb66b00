package bucket_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// never is longer than a busy machine is silent: nothing is to fail over.
const never = time.Minute

// TestRedisBehindTLSKeepsTheContract speaks RESP2, and all others RESP3.
func TestRedisBehindTLSKeepsTheContract(t *testing.T) {
	t.Parallel()
	server, config := redistest.StartTLS(t)
	options := patientOptions(server.Addr)
	options.TLSConfig, options.Protocol = config, 2
	runRedisContract(t, openClient(t, options), alone)
}

func TestRedisBehindSentinelsKeepsTheContract(t *testing.T) {
	t.Parallel()
	group := redistest.StartSentinel(t, never)
	client := redis.NewFailoverClient(patientFailoverOptions(group))
	t.Cleanup(func() { _ = client.Close() })
	runRedisContract(t, client, alone)
}

func TestRedisClusterWithReplicasKeepsTheContract(t *testing.T) {
	t.Parallel()
	runRedisContract(t, patientClusterClient(t, redistest.StartReplicatedCluster(t, never).Addrs), alone)
}

func TestAUserOfRedisWithFewRightsKeepsTheContract(t *testing.T) {
	t.Parallel()
	options := patientOptions(redistest.Start(t).Addr)
	admin := openClient(t, patientOptions(options.Addr))
	options.Username, options.Password, options.Protocol = limiter, "pw", 3
	// The clock of the tests asks for one more.
	allow(t, admin, append(aclRules(t, false), "+pexpiretime")...)
	t.Cleanup(func() { require.Empty(t, refused(t, admin)) })
	runRedisContract(t, openClient(t, options), alone)
}

func openClient(t testing.TB, options *redis.Options) *redis.Client {
	t.Helper()
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func patientFailoverOptions(group *redistest.Sentinel) *redis.FailoverOptions {
	bounds := patientOptions("")
	return &redis.FailoverOptions{
		MasterName: group.Name, SentinelAddrs: group.Addrs,
		ContextTimeoutEnabled: bounds.ContextTimeoutEnabled, MaxRetries: bounds.MaxRetries,
		DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience, PoolTimeout: patience,
		DialerRetries: bounds.DialerRetries, DisableIdentity: true,
	}
}
