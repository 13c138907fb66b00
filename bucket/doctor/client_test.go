package doctor_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/doctor"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

func TestADangerousClientIsFoundWithoutConnecting(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { _ = client.Close() })
	severities := map[string]doctor.Severity{}
	for _, f := range doctor.Client(client) {
		require.Empty(t, f.Node)
		severities[f.Code] = f.Severity
	}
	require.Equal(t, map[string]doctor.Severity{
		"deadline-ignored": doctor.Error, "client-retries": doctor.Warning, "long-dial-timeout": doctor.Warning,
		"dial-attempts": doctor.Warning, "long-socket-timeout": doctor.Warning, "long-pool-timeout": doctor.Warning,
		"maintenance-notifications": doctor.Warning,
	}, severities)
}

func TestAClientWithoutABreakerIsFound(t *testing.T) {
	t.Parallel()
	options := &redis.Options{Addr: redistest.Start(t, healthy()...).Addr}
	redisclient.Bound(options)
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout = time.Second, time.Second, time.Second
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	require.Empty(t, only(t, client, doctor.Warning, "no-breaker", "no breaker").Node)
}

func TestAClientOfAnotherKindIsSaidToBeUnknown(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { _ = client.Close() })
	found := examine(t, struct{ redis.UniversalClient }{client})
	require.Equal(t, []string{"unknown-client", "could-not-look"}, codes(found))
}
