package redistest

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
)

// Patience is for how long something that has to happen may take on a busy machine.
const Patience = time.Minute

// Connect returns a client of a Redis as servers have it, which is closed with the test.
func Connect(t testing.TB, addr string) redis.UniversalClient {
	t.Helper()
	client, err := redisclient.New(addr)
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
