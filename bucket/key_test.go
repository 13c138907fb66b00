package bucket_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

func TestSegmentKeepsReadableNamesAndEncodesTheRest(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "demo-free", "A.b_c-9", strings.Repeat("x", 64)} {
		require.Equal(t, name, bucket.Segment(name))
	}
	hostile := []string{"", "~", "{", "}", "a:b", "a b", "ü", "\x00", strings.Repeat("x", 65), strings.Repeat("x", 10_000)}
	seen := map[string]string{}
	for _, name := range hostile {
		// What looks like an encoded name is encoded again, so that it cannot pass for another.
		for _, n := range []string{name, bucket.Segment(name)} {
			encoded := bucket.Segment(n)
			require.Len(t, encoded, 23)
			require.Regexp(t, `^~[A-Za-z0-9_-]{22}$`, encoded)
			require.NotContains(t, seen, encoded, "%.20q and %.20q", n, seen[encoded])
			seen[encoded] = n
		}
	}
}

func TestKeysOfATenantShareOneHashTagAndNeverMeet(t *testing.T) {
	t.Parallel()
	store := newRedisStore(t, redis.NewClient(boundOptions()))
	seen := map[string]bool{}
	for _, tenant := range []string{"acme", "}acme{", "t"} {
		for _, owner := range []bucket.Owner{
			{},
			{Level: bucket.Team, Name: "t"},
			{Level: bucket.User, Name: "t"},
			{Level: bucket.Operation, Name: "t"},
			{Level: bucket.User, Name: "x}:t"},
			{Level: bucket.Operation, Name: "t", Part: "t"},
			{Level: bucket.Operation, Name: "t:t"},
			{Level: bucket.Operation, Name: "t", Part: "t:t"},
		} {
			key := store.BucketKey(tenant, owner)
			require.Regexp(t, `^rl:main:\{[A-Za-z0-9_.~-]+\}:[tmuo](:[A-Za-z0-9_.~-]+){0,2}$`, key)
			require.False(t, seen[key], key)
			seen[key] = true
		}
	}
	require.Equal(t, "rl:main:{acme}:t", store.BucketKey("acme", bucket.Owner{}))
	require.Equal(t, "rl:main:{acme}:o:Mutation.checkout",
		store.BucketKey("acme", bucket.Owner{Level: bucket.Operation, Name: "Mutation.checkout"}))
	require.Equal(t, "rl:main:{acme}:o:Mutation.checkout:ann",
		store.BucketKey("acme", bucket.Owner{Level: bucket.Operation, Name: "Mutation.checkout", Part: "ann"}))
}

func TestCRC16IsThatOfRedisCluster(t *testing.T) {
	t.Parallel()
	require.EqualValues(t, 0x31C3, bucket.CRC16("123456789"), "the check value of the Redis Cluster specification")
}

func boundOptions() *redis.Options {
	options := &redis.Options{Addr: "127.0.0.1:1"}
	redisclient.Bound(options)
	options.MinIdleConns = 0
	return options
}

func TestOverrideRecordsAreUnderTheKeyThatIsNamed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := patientClient(t, server.Addr)
	for _, namespace := range []string{"", "eu"} {
		s, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Namespace: namespace})
		require.NoError(t, err)
		for _, tenant := range []string{"acme", "ada@example.com", ""} {
			_, err = s.SetOverride(t.Context(), tenant, bucket.Override{Blocked: true, Actor: "ada", Reason: "why"})
			require.NoError(t, err)
			require.Equal(t, []string{bucket.OverridesKey(namespace, tenant)}, client.Keys(t.Context(), "*").Val())
			require.NoError(t, client.FlushAll(t.Context()).Err())
		}
	}
}
