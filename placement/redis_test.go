package placement_test

import (
	"context"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/placement"
)

func TestMain(m *testing.M) {
	// go-redis writes a line for each connection that it cannot open.
	redis.SetLogger(silence{})
	os.Exit(m.Run())
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// patient is how a Redis is opened on a busy machine.
func patient() placement.RedisConfig {
	return placement.RedisConfig{
		Client: redisclient.Config{DialTimeout: redistest.Patience, SocketTimeout: redistest.Patience},
		Store:  bucket.RedisConfig{Timeout: redistest.Patience, Patience: redistest.Patience, AdminTimeout: redistest.Patience},
	}
}

func TestARedisThatTheDoctorFindsBadIsRefusedWhileTheOthersServe(t *testing.T) {
	t.Parallel()
	good, evicts := redistest.Start(t), redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	cfg := patient()
	cfg.Getenv = func(name string) string { return map[string]string{"REDIS_B": good.Addr}[name] }
	m := &placement.Map{Generation: 1, Candidates: 1, Stores: []placement.Member{{Name: "a", Address: good.Addr}}}
	s, err := placement.New(t.Context(), placement.Config{Open: placement.OpenRedis(cfg)}, m)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	for address, want := range map[string]string{evicts.Addr: "evicting-policy", "127.0.0.1:1": "unreachable", "$REDIS_C": "the environment has no REDIS_C", "": "no address"} {
		err := s.Apply(t.Context(), m.Next([]placement.Member{{Name: "a", Address: good.Addr}, {Name: "b", Address: address}}))
		require.ErrorContains(t, err, want)
		require.ErrorAs(t, err, new(*placement.RefusedError))
		require.EqualValues(t, 1, s.Map().Generation)
	}
	result, err := s.Take(t.Context(), bucket.Take{Tenant: "acme", Buckets: compile(t, day), Amounts: points(1)})
	require.NoError(t, err)
	require.Equal(t, bucket.Admitted, result.Verdict)
	require.NoError(t, s.Apply(t.Context(), m.Next([]placement.Member{{Name: "a", Address: good.Addr}, {Name: "b", Address: "$REDIS_B"}})), "a good one is opened while it serves")
}
