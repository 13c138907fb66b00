package redisclient_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

func TestAServerIsToldTheNameThatItIsAskedFor(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 100)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			asked <- hello.ServerName
			return nil, errors.New("enough is known")
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				_ = conn.(*tls.Conn).HandshakeContext(context.Background())
			}()
		}
	}()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	for name, config := range map[string]redisclient.Config{
		"single":        {Addresses: []string{"rediss://localhost:" + port}},
		"cluster":       {Addresses: []string{"rediss://localhost:" + port + "?cluster=true"}},
		"Sentinels":     {Addresses: []string{"rediss://localhost:" + port}, Master: "main"},
		"a name of one": {Addresses: []string{"127.0.0.1:" + port}, TLS: &tls.Config{ServerName: "localhost", MinVersion: tls.VersionTLS12}},
	} {
		require.Error(t, configuredClient(t, config).Ping(context.Background()).Err(), name)
		select {
		case sent := <-asked:
			require.Equal(t, "localhost", sent, name)
		case <-time.After(patience):
			require.Fail(t, "nobody came", name)
		}
	}
}

func TestTheReplicaThatTakesOverIsFoundThroughTheBreaker(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	group := redistest.StartSentinel(t, time.Second)
	store, err := bucket.NewRedis(bucket.RedisConfig{
		Client:  configuredClient(t, redisclient.Config{Addresses: group.Addrs, Master: group.Name}),
		Timeout: 50 * time.Millisecond,
	})
	require.NoError(t, err)
	take := bucket.Take{Tenant: "acme", Buckets: aMinute(t, 1<<30), Amounts: onePoint}
	works := func() bool {
		_, err := store.Take(ctx, take)
		return err == nil
	}
	opens := func() bool {
		_, err := store.Take(ctx, take)
		return errors.Is(err, redisclient.ErrBreakerOpen)
	}
	require.Eventually(t, works, patience, time.Millisecond)
	group.Master.Kill()
	require.Eventually(t, opens, patience, time.Millisecond)
	require.Eventually(t, works, 3*patience, 10*time.Millisecond)
}

func TestTheNodesOfARingHaveBreakersOfTheirOwn(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	ring := redis.NewRing(&redis.RingOptions{
		Addrs:                 map[string]string{"there": redistest.Start(t).Addr, "away": "127.0.0.1:1"},
		ContextTimeoutEnabled: true, MaxRetries: -1, HeartbeatFrequency: time.Hour,
	})
	t.Cleanup(func() { _ = ring.Close() })
	require.NoError(t, redisclient.AddBreaker(ring, redisclient.BreakerConfig{Failures: 1, Delay: time.Minute}))
	var works, opens int
	for range 2 {
		for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
			switch err := ring.Get(ctx, key).Err(); {
			case errors.Is(err, redis.Nil):
				works++
			case errors.Is(err, redisclient.ErrBreakerOpen):
				opens++
			}
		}
	}
	require.Positive(t, works)
	require.Equal(t, 20-works-1, opens, "all but the first call to the node that is away")
}
