package bucket_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
)

// silence is how long a frozen server takes.
const silence = -1

// soon is how long a call may take into a node that is silent.
const soon = 15 * time.Millisecond

// lateProcess is a process that was late a moment ago, with a server that takes as long as delay says for all it does.
func lateProcess(t *testing.T, delay *atomic.Int64) (take func() (time.Duration, error)) {
	t.Helper()
	takes := func() time.Duration { return time.Duration(delay.Load()) }
	server := &wire{late: bucket.DefaultTimeout, greets: takes, answers: func(string) time.Duration { return takes() }}
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: server.client(t)})
	require.NoError(t, err)
	take = func() (time.Duration, error) {
		start := time.Now()
		_, err := store.Take(t.Context(), takeOf(t, "acme"))
		return time.Since(start), err
	}
	_, err = take()
	require.ErrorContains(t, err, answered)
	server.late = 0
	return take
}

func TestALateProcessWaitsOnceForANodeThatIsSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var delay atomic.Int64
		take := lateProcess(t, &delay)
		delay.Store(silence)
		took, err := take()
		require.ErrorIs(t, err, bucket.ErrAmbiguous)
		require.Greater(t, took, 10*bucket.DefaultTimeout, "the node may be late as well")
		for range breakerFailures - 1 {
			took, err = take()
			require.ErrorIs(t, err, bucket.ErrUnavailable)
			require.LessOrEqual(t, took, soon)
		}
		_, err = take()
		require.ErrorIs(t, err, redisclient.ErrBreakerOpen)
	})
}

func TestANodeThatWasFoundSilentIsWaitedForAgainOnceItIsHeardHoweverLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var delay atomic.Int64
		take := lateProcess(t, &delay)
		delay.Store(silence)
		_, err := take()
		require.ErrorIs(t, err, bucket.ErrAmbiguous)
		pass(time.Second)
		delay.Store(int64(7 * bucket.DefaultTimeout))
		took, err := take()
		require.ErrorIs(t, err, bucket.ErrUnavailable)
		require.LessOrEqual(t, took, soon)
		pass(7 * bucket.DefaultTimeout)
		for range 2 {
			_, err = take()
			require.ErrorContains(t, err, answered)
		}
	})
}

func TestANodeThatWasFoundSilentIsNotLookedAtTwiceWhereNoConnectionComes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		options := &redis.Options{Addr: "10.0.0.7:6379"}
		redisclient.Bound(options)
		options.MinIdleConns = 0
		options.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		client := redis.NewClient(options)
		t.Cleanup(func() {
			_ = client.Close()
			pass(options.DialTimeout)
		})
		require.NoError(t, redisclient.AddBreaker(client, redisclient.BreakerConfig{}))
		store, err := bucket.NewRedis(bucket.RedisConfig{Client: client})
		require.NoError(t, err)
		for i := range breakerFailures {
			start := time.Now()
			_, err := store.Take(t.Context(), takeOf(t, "acme"))
			require.ErrorIs(t, err, bucket.ErrUnavailable)
			require.Equal(t, i > 0, time.Since(start) <= soon, "call %d: %v", i+1, time.Since(start))
		}
		_, err = store.Take(t.Context(), takeOf(t, "acme"))
		require.ErrorIs(t, err, redisclient.ErrBreakerOpen)
	})
}
