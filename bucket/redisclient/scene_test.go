package redisclient_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
)

// patience is the timeout of tests that are not about time: a busy machine shall not fail them.
const patience = 10 * time.Second

// breakerFailures is after how many failures in a row a breaker with defaults opens.
const breakerFailures = 5

func openClient(t testing.TB, options *redis.Options) *redis.Client {
	t.Helper()
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func patientClient(t testing.TB, addr string) *redis.Client {
	t.Helper()
	return openClient(t, patientOptions(addr))
}

func patientOptions(addr string) *redis.Options {
	options := &redis.Options{Addr: addr}
	redisclient.Bound(options)
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.PoolTimeout = patience, patience, patience, patience
	return options
}

func patientClusterClient(t testing.TB, addrs []string) *redis.ClusterClient {
	t.Helper()
	options := &redis.ClusterOptions{Addrs: addrs}
	redisclient.Bound(options)
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.PoolTimeout = patience, patience, patience, patience
	client := redis.NewClusterClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// aMinute is a bucket of the tenant.
func aMinute(t testing.TB, capacity int64) []bucket.Bucket {
	t.Helper()
	limits, err := bucket.Compile(bucket.Limit{Name: "minute", Capacity: capacity, Period: time.Minute})
	require.NoError(t, err)
	return []bucket.Bucket{{Limits: limits}}
}

// onePoint is what a take asks for.
var onePoint = bucket.Amounts{{Unit: bucket.Points, N: 1}}
