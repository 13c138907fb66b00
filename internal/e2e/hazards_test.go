package e2e_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
)

func TestADangerousClientIsLoggedAtStart(t *testing.T) {
	t.Parallel()
	store := func(change func(*redis.Options)) bucket.Store {
		options := &redis.Options{Addr: "127.0.0.1:1"}
		redisclient.Bound(options)
		change(options)
		client := redis.NewClient(options)
		t.Cleanup(func() { _ = client.Close() })
		store, err := bucket.NewRedis(bucket.RedisConfig{Client: client})
		require.NoError(t, err)
		return store
	}
	for seen, dangerous := range map[string]func(*redis.Options){
		"":              func(*redis.Options) {},
		"MaxRetries is": func(o *redis.Options) { o.MaxRetries = 3 },
	} {
		log := &bytes.Buffer{}
		require.NoError(t, ratelimit.New(ratelimit.Config{
			Store: bucket.NewMemory(bucket.MemoryConfig{}), Policy: compiledPolicy(t), Subject: byTenantHeader,
			Stores: map[string]bucket.Store{"vault": store(dangerous)}, Observe: ratelimit.ObserveConfig{Logger: slog.New(slog.NewTextHandler(log, nil))},
		}).Validate(testserver.NewExecutableSchema(testserver.Config{})))
		if seen == "" {
			require.NotContains(t, log.String(), "dangerous")
			continue
		}
		require.Contains(t, log.String(), "level=WARN")
		require.Contains(t, log.String(), seen)
		require.Contains(t, log.String(), "store=vault")
	}
}
