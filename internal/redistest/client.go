package redistest

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
)

// Patience is for how long something that has to happen may take on a busy machine.
const Patience = time.Minute

// Connect returns a client of a Redis as servers have it, which is closed with the test. Only connecting may take longer, since a process that gets
// no processor for half a second would find a Redis away that is there.
func Connect(t testing.TB, addr string) redis.UniversalClient {
	t.Helper()
	return ConnectWith(t, addr, redisclient.Config{})
}

// ConnectWith is [Connect] with a configuration. The client of a cluster also has time to read its map, for which it has a tenth of a second
// otherwise.
func ConnectWith(t testing.TB, addr string, cfg redisclient.Config) redis.UniversalClient {
	t.Helper()
	cfg.DialTimeout = Patience
	if cfg.Cluster {
		cfg.SocketTimeout = Patience
	}
	client, err := redisclient.Open(addr, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Plain returns a client for the test itself, which may wait, and is closed with it.
func Plain(t testing.TB, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = client.Close() })
	return client
}
