package brokertest_test

import (
	"context"
	"flag"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/event/redisstream"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/event/streamtest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/brokertest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

var requests = flag.Int("requests", 200, "how many requests are timed")

// streams is a Redis that keeps what it has acknowledged, and its sink.
func streams(t *testing.T) streamtest.Harness {
	t.Helper()
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	client := redistest.Connect(t, server.Addr)
	sink, err := redisstream.New(redisstream.Config{Client: client, MaxEntries: 1_000_000})
	require.NoError(t, err)
	reader := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = reader.Close() })
	return streamtest.Harness{
		Sink: sink, Freeze: func() { server.Freeze(t) }, Thaw: func() { server.Thaw(t) },
		Read: func() (all []stream.Envelope, _ error) {
			const topic = "ratelimit.denials"
			entries, err := reader.XRange(context.Background(), redisstream.Key("", topic), "-", "+").Result()
			if err != nil {
				return nil, err
			}
			for _, entry := range entries {
				e, err := redisstream.Decode(topic, entry)
				if err != nil {
					return nil, err
				}
				all = append(all, e)
			}
			return all, nil
		},
	}
}

func TestNoRequestWaitsForARedisThatIsFrozen(t *testing.T) {
	t.Parallel()
	working, still := brokertest.Frozen(t, streams(t), *requests)
	t.Logf("requests while the broker works: %v; while it is frozen: %v", working, still)
}

func TestEachRefusalIsInRedisSoon(t *testing.T) {
	t.Parallel()
	t.Log("from a refusal to the acknowledgement: ", brokertest.Delay(t, streams(t), *requests))
}
