package redisclient_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/event"
)

// node is a hook that stands in the place of a server: it answers each command and each pipeline.
type node func(ctx context.Context) error

func (node) DialHook(redis.DialHook) redis.DialHook {
	return func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no network here") }
}

func (n node) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, _ redis.Cmder) error { return n(ctx) }
}

func (n node) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		// The first command is answered, the last as the node says. go-redis returns the first error.
		cmds[0].SetErr(redis.Nil)
		cmds[len(cmds)-1].SetErr(n(ctx))
		return cmds[0].Err()
	}
}

// guarded returns a client with a breaker before the node.
func guarded(t testing.TB, config redisclient.BreakerConfig, n node) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: "10.0.0.7:6379", ContextTimeoutEnabled: true, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	require.NoError(t, redisclient.AddBreaker(client, config))
	client.AddHook(n)
	return client
}

// cut is the error of a connection that broke.
var cut = &net.OpError{Op: "read", Err: errors.New("connection reset by peer")}

// pass waits in a synctest bubble, where time is not real.
func pass(d time.Duration) { <-time.After(d) }

// open makes a breaker with defaults open.
func open(t testing.TB, client *redis.Client, failing *atomic.Bool) {
	t.Helper()
	failing.Store(true)
	for range breakerFailures {
		err := client.Ping(context.Background()).Err()
		require.ErrorIs(t, err, error(cut))
	}
	require.ErrorIs(t, client.Ping(context.Background()).Err(), redisclient.ErrBreakerOpen)
}

func TestFailuresInARowOpenTheBreakerAndOneCallProbes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		var failing, blocked atomic.Bool
		var calls atomic.Int64
		release := make(chan struct{})
		told := event.NewChannel(100)
		client := guarded(t, redisclient.BreakerConfig{Observer: told}, func(context.Context) error {
			calls.Add(1)
			if blocked.Load() {
				<-release
			}
			if failing.Load() {
				return cut
			}
			return nil
		})
		// One success between failures starts the row anew.
		failing.Store(true)
		for range breakerFailures - 1 {
			require.ErrorIs(t, client.Ping(ctx).Err(), error(cut))
		}
		failing.Store(false)
		require.NoError(t, client.Ping(ctx).Err())
		open(t, client, &failing)

		sent := calls.Load()
		err := client.Ping(ctx).Err()
		require.ErrorIs(t, err, redisclient.ErrBreakerOpen)
		require.ErrorIs(t, err, bucket.ErrUnavailable)
		require.NotErrorIs(t, err, bucket.ErrAmbiguous)
		require.ErrorContains(t, err, "10.0.0.7:6379")
		pass(399 * time.Millisecond)
		require.ErrorIs(t, client.Ping(ctx).Err(), redisclient.ErrBreakerOpen)
		require.Equal(t, sent, calls.Load(), "an open breaker sends nothing")

		pass(202 * time.Millisecond)
		blocked.Store(true)
		failing.Store(false)
		var refused, passed atomic.Int64
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() {
				switch err := client.Ping(ctx).Err(); {
				case err == nil:
					passed.Add(1)
				case errors.Is(err, redisclient.ErrBreakerOpen):
					refused.Add(1)
				}
			})
		}
		synctest.Wait()
		require.Equal(t, sent+1, calls.Load(), "one call probes")
		require.EqualValues(t, 49, refused.Load())
		blocked.Store(false)
		close(release)
		group.Wait()
		require.EqualValues(t, 1, passed.Load())
		require.NoError(t, client.Ping(ctx).Err())

		changes := []event.BreakerState{}
		for len(told.Events()) > 0 {
			change := (<-told.Events()).(event.BreakerChanged)
			require.Equal(t, "10.0.0.7:6379", change.Node)
			changes = append(changes, change.From, change.To)
		}
		require.Equal(t, []event.BreakerState{
			event.BreakerClosed, event.BreakerOpen, event.BreakerOpen, event.BreakerHalfOpen, event.BreakerHalfOpen, event.BreakerClosed,
		}, changes)
	})
}

func TestAProbeThatFailsOpensTheBreakerAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var failing atomic.Bool
		client := guarded(t, redisclient.BreakerConfig{}, func(context.Context) error {
			if failing.Load() {
				return cut
			}
			return nil
		})
		open(t, client, &failing)
		for range 3 {
			pass(601 * time.Millisecond)
			require.ErrorIs(t, client.Ping(t.Context()).Err(), error(cut), "the probe")
			require.ErrorIs(t, client.Ping(t.Context()).Err(), redisclient.ErrBreakerOpen)
		}
		failing.Store(false)
		pass(601 * time.Millisecond)
		require.NoError(t, client.Ping(t.Context()).Err())
		require.NoError(t, client.Ping(t.Context()).Err())
	})
}

func TestAProbeThatTellsNothingMakesRoomForAnother(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(client *redis.Client){
		"canceled": func(client *redis.Client) {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(time.Millisecond, cancel)
			_ = client.Ping(ctx).Err()
		},
		"panic": func(client *redis.Client) {
			defer func() { _ = recover() }()
			_ = client.Ping(context.Background()).Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var failing, waiting atomic.Bool
				client := guarded(t, redisclient.BreakerConfig{}, func(ctx context.Context) error {
					switch {
					case failing.Load():
						return cut
					case waiting.Load() && name == "panic":
						panic("in a hook")
					case waiting.Load():
						<-ctx.Done()
						return ctx.Err()
					}
					return nil
				})
				open(t, client, &failing)
				pass(601 * time.Millisecond)
				failing.Store(false)
				waiting.Store(true)
				end(client)
				end(client)
				waiting.Store(false)
				failing.Store(true)
				require.ErrorIs(t, client.Ping(t.Context()).Err(), error(cut), "the next probe")
				require.ErrorIs(t, client.Ping(t.Context()).Err(), redisclient.ErrBreakerOpen, "no earlier one had closed it")
			})
		})
	}
}

func TestCallsFromBeforeTheBreakerOpenedDecideNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var failing, late atomic.Bool
		late.Store(true)
		release := make(chan struct{})
		client := guarded(t, redisclient.BreakerConfig{}, func(ctx context.Context) error {
			if late.Load() {
				<-release
				return cut
			}
			if failing.Load() {
				return cut
			}
			return nil
		})
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() { _ = client.Ping(t.Context()).Err() })
		}
		synctest.Wait()
		late.Store(false)
		open(t, client, &failing)
		pass(601 * time.Millisecond)
		failing.Store(false)
		require.NoError(t, client.Ping(t.Context()).Err(), "the probe")
		close(release)
		group.Wait()
		require.NoError(t, client.Ping(t.Context()).Err(), "20 failures of an earlier time")
	})
}

func TestAPipelineIsOneCallForTheBreaker(t *testing.T) {
	t.Parallel()
	client := guarded(t, redisclient.BreakerConfig{Failures: 2}, func(context.Context) error { return cut })
	ask := func() (first, second error) {
		pipe := client.Pipeline()
		one, two := pipe.Ping(t.Context()), pipe.Ping(t.Context())
		_, _ = pipe.Exec(t.Context())
		return one.Err(), two.Err()
	}
	for range 2 {
		first, second := ask()
		require.ErrorIs(t, first, redis.Nil)
		require.ErrorIs(t, second, error(cut))
	}
	first, second := ask()
	require.ErrorIs(t, first, redisclient.ErrBreakerOpen)
	require.ErrorIs(t, second, redisclient.ErrBreakerOpen)
}

func TestAnObserverThatPanicsOrDoesNotComeBackHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Int64
		stuck := make(chan struct{})
		observer := event.Func(func(context.Context, event.Event) {
			switch told.Add(1) {
			case 1:
				panic("in an observer")
			case 2:
				<-stuck
			}
		})
		client := guarded(t, redisclient.BreakerConfig{Failures: 1, Observer: observer}, func(context.Context) error { return cut })
		require.Panics(t, func() { _ = client.Ping(t.Context()).Err() })
		var group sync.WaitGroup
		pass(601 * time.Millisecond)
		group.Go(func() { _ = client.Ping(t.Context()).Err() })
		synctest.Wait()
		// Each probe opens the breaker again, and is done although the observer is not.
		for range 200 {
			pass(601 * time.Millisecond)
			require.ErrorIs(t, client.Ping(t.Context()).Err(), error(cut))
		}
		close(stuck)
		group.Wait()
		require.EqualValues(t, 1+2+64, told.Load(), "the first, those of the first probe, and what was kept")
	})
}

func TestBreakersDoNotAllProbeAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const breakers = 200
		clients := make([]*redis.Client, breakers)
		for i := range clients {
			clients[i] = guarded(t, redisclient.BreakerConfig{Failures: 1}, func(context.Context) error { return cut })
			require.ErrorIs(t, clients[i].Ping(t.Context()).Err(), error(cut))
		}
		probing := func() (n int) {
			for _, client := range clients {
				if err := client.Ping(t.Context()).Err(); !errors.Is(err, redisclient.ErrBreakerOpen) {
					n++
				}
			}
			return n
		}
		pass(399 * time.Millisecond)
		require.Zero(t, probing())
		pass(101 * time.Millisecond)
		half := probing()
		require.Positive(t, half)
		require.Less(t, half, breakers)
		pass(101 * time.Millisecond)
		require.Equal(t, breakers-half, probing(), "who has probed waits again")
	})
}

func TestAddBreakerSaysWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	client := guarded(t, redisclient.BreakerConfig{Disabled: true}, func(context.Context) error { return cut })
	for range 100 {
		require.ErrorIs(t, client.Ping(t.Context()).Err(), error(cut), "disabled")
	}
	err := redisclient.AddBreaker(client, redisclient.BreakerConfig{Failures: -1, Delay: time.Hour})
	require.ErrorContains(t, err, "1 to 1000 fits")
	require.ErrorContains(t, err, "1ms to 1m fits")
	require.ErrorContains(t, redisclient.AddBreaker(nil, redisclient.BreakerConfig{}), "no breaker fits")
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
		client := guarded(t, redisclient.BreakerConfig{Failures: 1}, func(context.Context) error { return err })
		require.ErrorIs(t, client.Ping(t.Context()).Err(), err)
		second := client.Ping(t.Context()).Err()
		if fails {
			require.ErrorIs(t, second, redisclient.ErrBreakerOpen, err)
		} else {
			require.NotErrorIs(t, second, redisclient.ErrBreakerOpen, err)
		}
	}
}
