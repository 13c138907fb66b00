package bucket_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// silent is a node that never answers. Its socket has the deadline of the context.
func silent(ctx context.Context) error {
	<-ctx.Done()
	return &net.OpError{Op: "read", Err: ctx.Err()}
}

func TestWhatTheCallerEndsIsNoFailureAndWhatTheStoreEndsIs(t *testing.T) {
	t.Parallel()
	take := bucket.Take{Tenant: "acme", Buckets: []bucket.Bucket{{Limits: fourLimits(t, 100)}}, Amounts: points(1)}
	for _, rides := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			client := guarded(t, bucket.BreakerConfig{}, silent)
			store, err := bucket.NewRedis(bucket.RedisConfig{Client: client})
			require.NoError(t, err)
			if rides {
				store.AlwaysRide()
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
				require.NotErrorIs(t, err, bucket.ErrBreakerOpen)
				cancel()
			}
			for range bucket.DefaultBreakerFailures {
				_, err := store.Take(t.Context(), take)
				require.Error(t, err)
				require.NotErrorIs(t, err, bucket.ErrBreakerOpen)
			}
			pass(bucket.DefaultTimeout)
			_, err = store.Take(t.Context(), take)
			require.ErrorIs(t, err, bucket.ErrBreakerOpen)
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
				config := bucket.RedisConfig{Client: guarded(t, bucket.BreakerConfig{}, silent)}
				for range bucket.DefaultBreakerFailures {
					require.ErrorIs(t, ask(t, config), bucket.ErrAmbiguous)
				}
				require.ErrorIs(t, ask(t, config), bucket.ErrBreakerOpen)
			})
		})
	}
}

// reply is an error reply of a server.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

func TestWhatCountsAsAFailureOfTheNode(t *testing.T) {
	t.Parallel()
	for err, fails := range map[error]bool{
		cut:                                       true,
		&net.OpError{Op: "dial", Err: cut.Err}:    true,
		errors.New("anything else"):               true,
		redis.Nil:                                 false,
		reply("ERR something"):                    false,
		reply("OOM command not allowed"):          false,
		reply("LOADING Redis is loading"):         false,
		reply("CLUSTERDOWN Hash slot not served"): false,
		reply("MASTERDOWN Link with MASTER"):      false,
		reply("MOVED 1 10.0.0.8:6379"):            false,
		reply("NOPERM no permission"):             false,
		reply("READONLY You can't write against a read only replica."): true,
		reply("ERR max number of clients reached"):                     true,
		reply("WRONGPASS invalid username-password pair"):              true,
		redis.ErrPoolTimeout:   false,
		redis.ErrPoolExhausted: false,
		redis.ErrClosed:        false,
		net.ErrClosed:          false,
	} {
		client := guarded(t, bucket.BreakerConfig{Failures: 1}, func(context.Context) error { return err })
		require.ErrorIs(t, client.Ping(t.Context()).Err(), err)
		second := client.Ping(t.Context()).Err()
		if fails {
			require.ErrorIs(t, second, bucket.ErrBreakerOpen, err)
		} else {
			require.NotErrorIs(t, second, bucket.ErrBreakerOpen, err)
		}
	}
}
