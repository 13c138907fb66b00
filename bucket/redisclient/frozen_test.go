package redisclient_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/internal/deadline"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// freezing are the servers that people run, of which one freezes: it, and how to reach it.
var freezing = map[string]func(t *testing.T) (*redistest.Server, redisclient.Config){
	"a server": func(t *testing.T) (*redistest.Server, redisclient.Config) {
		t.Helper()
		server := redistest.Start(t)
		return server, redisclient.Config{Addresses: []string{server.Addr}}
	},
	"with a password": func(t *testing.T) (*redistest.Server, redisclient.Config) {
		t.Helper()
		server := redistest.Start(t)
		require.NoError(t, patientClient(t, server.Addr).ConfigSet(t.Context(), "requirepass", "right").Err())
		return server, redisclient.Config{Addresses: []string{"redis://:right@" + server.Addr}}
	},
	"with TLS": func(t *testing.T) (*redistest.Server, redisclient.Config) {
		t.Helper()
		server, clients := redistest.StartTLS(t)
		return server, redisclient.Config{Addresses: []string{server.Addr}, TLS: clients}
	},
	"a cluster": func(t *testing.T) (*redistest.Server, redisclient.Config) {
		t.Helper()
		cluster := redistest.StartCluster(t)
		return cluster.Servers[redistest.Shard(cluster.Slot(t, "{acme}"))], redisclient.Config{Addresses: cluster.Addrs}
	},
	"behind Sentinels": func(t *testing.T) (*redistest.Server, redisclient.Config) {
		t.Helper()
		group := redistest.StartSentinel(t, time.Hour)
		return group.Master, redisclient.Config{Addresses: group.Addrs, Master: group.Name}
	},
}

func TestALateProcessWaitsForNoConnectionToANodeThatWasFoundSilent(t *testing.T) {
	t.Parallel()
	for name, start := range freezing {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, config := start(t)
			// What is not ended by the silence of the node goes on for longer than its caller waits.
			config.DialTimeout, config.SocketTimeout, config.Breaker.Delay = 3*patience, 3*patience, time.Minute
			client, late, err := redisclient.OpenLate(config)
			require.NoError(t, err)
			t.Cleanup(func() { _ = client.Close() })
			store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Patience: 3 * patience})
			require.NoError(t, err)
			ask := func() (inTime bool, err error) {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				_, err = store.Take(ctx, bucket.Take{Tenant: "acme", Buckets: aMinute(t, 1000), Amounts: onePoint})
				return ctx.Err() == nil, err
			}
			require.Eventually(t, func() bool {
				_, err := ask()
				return err == nil
			}, patience, time.Millisecond)

			server.Freeze(t)
			t.Cleanup(func() { server.Thaw(t) })
			_, err = ask()
			// Where the pool has just made one more connection, the call ends at its greeting, and nothing was charged.
			require.ErrorIs(t, err, deadline.ErrSilent)
			late()
			for failures := 1; !errors.Is(err, redisclient.ErrBreakerOpen); failures++ {
				require.LessOrEqual(t, failures, breakerFailures+1, "each but the first is a failure of the node, and that is one but on a busy machine")
				var inTime bool
				inTime, err = ask()
				require.True(t, inTime, "call "+strconv.Itoa(failures+1)+" into the frozen node ended with its caller")
			}
		})
	}
}
