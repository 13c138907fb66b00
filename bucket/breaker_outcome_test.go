package bucket_test

import (
	"context"
	"encoding"
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
)

// silent is a node that never answers. As on a socket, the command leaves, and then the deadline is that of reading.
func silent(ctx context.Context, cmds ...redis.Cmder) error {
	for _, cmd := range cmds {
		for _, arg := range cmd.Args() {
			if leaves, ok := arg.(encoding.BinaryMarshaler); ok {
				_, _ = leaves.MarshalBinary()
			}
		}
	}
	until, _ := ctx.Deadline()
	select {
	case <-ctx.Done():
		return &net.OpError{Op: "read", Err: ctx.Err()}
	case <-time.After(time.Until(until)):
		return &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}
	}
}

// pass waits in a synctest bubble, where time is not real.
func pass(d time.Duration) { <-time.After(d) }

func TestWhatTheCallerEndsIsNoFailureAndWhatTheStoreEndsIs(t *testing.T) {
	t.Parallel()
	take := bucket.Take{Tenant: "acme", Buckets: []bucket.Bucket{{Limits: fourLimits(t, 100)}}, Amounts: points(1)}
	for _, rides := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			client := guarded(t, silent)
			store, err := bucket.NewRedis(bucket.RedisConfig{Client: client})
			require.NoError(t, err)
			if rides {
				store.AlwaysQueue()
			}
			for i := range 1000 {
				ctx, cancel := context.WithCancel(t.Context())
				// What rides with others goes on when one caller cancels: only deadlines end it.
				if rides || i%2 == 0 {
					ctx, cancel = context.WithTimeout(t.Context(), bucket.DefaultTimeout/2)
				} else {
					time.AfterFunc(time.Millisecond, cancel)
				}
				_, err := store.Take(ctx, take)
				require.Error(t, err)
				require.NotErrorIs(t, err, redisclient.ErrBreakerOpen)
				cancel()
			}
			for range breakerFailures {
				_, err := store.Take(t.Context(), take)
				require.Error(t, err)
				require.NotErrorIs(t, err, redisclient.ErrBreakerOpen)
			}
			pass(bucket.DefaultTimeout)
			_, err = store.Take(t.Context(), take)
			require.ErrorIs(t, err, redisclient.ErrBreakerOpen)
			require.NotErrorIs(t, err, bucket.ErrAmbiguous)
			require.NoError(t, store.Close())
		})
	}
}

func TestEverythingThatAsksRedisOpensTheBreakerByItsTimeout(t *testing.T) {
	t.Parallel()
	buckets := []bucket.Bucket{{Limits: fourLimits(t, 100)}}
	for name, ask := range map[string]func(t *testing.T, config bucket.RedisConfig) error{
		"a script": func(t *testing.T, config bucket.RedisConfig) error {
			t.Helper()
			store, err := bucket.NewRedis(config)
			require.NoError(t, err)
			_, err = store.Peek(t.Context(), "acme", buckets)
			return err
		},
		"a reset": func(t *testing.T, config bucket.RedisConfig) error {
			t.Helper()
			store, err := bucket.NewRedis(config)
			require.NoError(t, err)
			return store.Reset(t.Context(), "acme", buckets)
		},
		"an answer": func(t *testing.T, config bucket.RedisConfig) error {
			t.Helper()
			answers, err := bucket.NewRedisAnswers(config)
			require.NoError(t, err)
			_, err = answers.Get(t.Context(), "name")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				config := bucket.RedisConfig{Client: guarded(t, silent)}
				for range breakerFailures {
					require.ErrorIs(t, ask(t, config), bucket.ErrAmbiguous)
				}
				require.ErrorIs(t, ask(t, config), redisclient.ErrBreakerOpen)
			})
		})
	}
}

// node is a hook that stands in the place of a server: it answers each command and each pipeline.
type node func(ctx context.Context, cmds ...redis.Cmder) error

func (node) DialHook(redis.DialHook) redis.DialHook {
	return func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no network here") }
}

func (n node) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return n(ctx, cmd) }
}

func (n node) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := n(ctx, cmds...)
		for _, cmd := range cmds {
			cmd.SetErr(err)
		}
		return err
	}
}

// guarded returns a client with a breaker before the node, which opens after five failures.
func guarded(t testing.TB, n node) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: "10.0.0.7:6379", ContextTimeoutEnabled: true, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	require.NoError(t, redisclient.AddBreaker(client, redisclient.BreakerConfig{Failures: breakerFailures}))
	client.AddHook(n)
	return client
}

// breakerFailures is after how many failures in a row the breaker of a guarded client opens.
const breakerFailures = 5
