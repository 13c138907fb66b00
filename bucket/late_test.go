package bucket_test

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
)

// wire is a server on connections within a synctest bubble, where time is not real. It answers scripts with an error,
// which says that nothing was done.
type wire struct {
	// answers is how long the server takes for a script of the tenant, never if that is negative.
	answers func(tenant string) time.Duration
	// greets is how long the server takes for the greeting of a connection, at once if that is nil, never if it is negative.
	greets func() time.Duration
	// late is by how much the process comes too late when a first deadline of reading has passed.
	late time.Duration
	// protocol is the version of RESP. Zero means that of redisclient.Open.
	protocol int
}

// answered is what the server says to a script.
const answered = "ERR nothing was done"

// client returns a client of the server with breakers, which open after five failures.
func (s *wire) client(t testing.TB) *redis.Client {
	t.Helper()
	options := &redis.Options{Addr: "10.0.0.7:6379", Protocol: cmp.Or(s.protocol, 3)}
	redisclient.Bound(options)
	options.MinIdleConns = 0
	options.Dialer = func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go s.serve(far)
		return &starved{Conn: near, server: s}, nil
	}
	client := redis.NewClient(options)
	t.Cleanup(func() {
		_ = client.Close()
		// A node that was found silent is listened to for a while.
		pass(time.Second)
	})
	require.NoError(t, redisclient.AddBreaker(client, redisclient.BreakerConfig{Failures: breakerFailures}))
	return client
}

func (s *wire) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	for {
		command, err := readCommand(in)
		if err != nil {
			return
		}
		reply, delay := "+OK\r\n", time.Duration(0)
		switch {
		case command[0] == "hello":
			reply = "-ERR unknown command\r\n"
			if s.greets != nil {
				delay = s.greets()
			}
		case strings.HasPrefix(command[0], "eval"):
			_, tenant, _ := strings.Cut(command[callHead], "{")
			tenant, _, _ = strings.Cut(tenant, "}")
			reply = "-" + answered + "\r\n"
			delay = s.answers(tenant)
		}
		if delay < 0 {
			continue
		}
		pass(delay)
		if _, err := io.WriteString(conn, reply); err != nil {
			return
		}
	}
}

// callHead is the place of the first key among the arguments of a script.
const callHead = 3

func readCommand(in *bufio.Reader) ([]string, error) {
	number := func() (int, error) {
		line, err := in.ReadString('\n')
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	n, err := number()
	if err != nil {
		return nil, err
	}
	command := make([]string, n)
	for i := range command {
		size, err := number()
		if err != nil {
			return nil, err
		}
		text := make([]byte, size+len("\r\n"))
		if _, err := io.ReadFull(in, text); err != nil {
			return nil, err
		}
		command[i] = string(text[:size])
	}
	return command, nil
}

// starved is a connection in a process without processor time: once after each command the runtime ends a read at its
// deadline, and the process comes to that too late, while the reply lies in the socket.
type starved struct {
	net.Conn

	server *wire
	until  time.Time
	wrote  bool
}

func (c *starved) Write(b []byte) (int, error) {
	c.wrote = true
	return c.Conn.Write(b)
}

func (c *starved) SetReadDeadline(t time.Time) error {
	c.until = t
	return c.Conn.SetReadDeadline(t)
}

func (c *starved) Read(b []byte) (int, error) {
	if c.server.late > 0 && c.wrote {
		c.wrote = false
		pass(time.Until(c.until) + c.server.late)
		return 0, &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}
	}
	return c.Conn.Read(b)
}

func takeOf(t testing.TB, tenant string) bucket.Take {
	t.Helper()
	return bucket.Take{Tenant: tenant, Buckets: []bucket.Bucket{{Limits: fourLimits(t, 100)}}, Amounts: points(1)}
}

// othersCall has another caller take from the store over and over, until what it returns is called.
func othersCall(t *testing.T, store *bucket.Redis) (stop func()) {
	t.Helper()
	var others sync.WaitGroup
	running, end := context.WithCancel(t.Context())
	others.Go(func() {
		for running.Err() == nil {
			_, _ = store.Take(t.Context(), takeOf(t, "acme"))
		}
	})
	return func() {
		end()
		others.Wait()
	}
}

func TestASilentNodeOfAQuietProcessEndsACallSoonAndOpensTheBreaker(t *testing.T) {
	t.Parallel()
	for _, protocol := range []int{2, 3} {
		synctest.Test(t, func(t *testing.T) {
			server := &wire{answers: func(string) time.Duration { return -1 }, protocol: protocol}
			store, err := bucket.NewRedis(bucket.RedisConfig{Client: server.client(t)})
			require.NoError(t, err)
			for range breakerFailures {
				start := time.Now()
				_, err := store.Take(t.Context(), takeOf(t, "acme"))
				require.ErrorIs(t, err, bucket.ErrAmbiguous)
				require.NotErrorIs(t, err, bucket.ErrLate)
				require.LessOrEqual(t, time.Since(start), 15*time.Millisecond, "RESP%d", protocol)
			}
			_, err = store.Take(t.Context(), takeOf(t, "acme"))
			require.ErrorIs(t, err, redisclient.ErrBreakerOpen)
		})
	}
}

func TestACallWaitsForANodeThatAnswersOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &wire{answers: func(tenant string) time.Duration {
			if tenant == "slow" {
				return 5 * bucket.DefaultTimeout
			}
			return bucket.DefaultTimeout / 4
		}}
		store, err := bucket.NewRedis(bucket.RedisConfig{Client: server.client(t)})
		require.NoError(t, err)
		defer othersCall(t, store)()
		for range 2 * breakerFailures {
			_, err := store.Take(t.Context(), takeOf(t, "slow"))
			require.ErrorContains(t, err, answered)
		}
	})
}

func TestAReplyThatLiesInTheSocketWhenAStarvedProcessComesToItIsRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &wire{answers: func(string) time.Duration { return time.Millisecond }, late: 3 * bucket.DefaultTimeout}
		store, err := bucket.NewRedis(bucket.RedisConfig{Client: server.client(t), Patience: 5 * bucket.DefaultTimeout / 2})
		require.NoError(t, err)
		for range 2 * breakerFailures {
			_, err := store.Take(t.Context(), takeOf(t, "acme"))
			require.ErrorContains(t, err, answered)
		}
	})
}

func TestALateProcessWaitsOnForItsNodeAndCountsNoFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &wire{answers: func(string) time.Duration { return 20 * bucket.DefaultTimeout }, late: bucket.DefaultTimeout}
		store, err := bucket.NewRedis(bucket.RedisConfig{Client: server.client(t)})
		require.NoError(t, err)
		for range 2 * breakerFailures {
			_, err := store.Take(t.Context(), takeOf(t, "acme"))
			require.ErrorContains(t, err, answered)
		}
	})
}

func TestACommandThatHasLeftAndEndsForWantOfTimeSaysNothingOfItsNode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		late, callers time.Duration
	}{
		"a late process with little patience": {late: bucket.DefaultTimeout, callers: time.Hour},
		"a caller with little time":           {callers: bucket.DefaultTimeout / 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := &wire{answers: func(string) time.Duration { return -1 }, late: c.late}
			store, err := bucket.NewRedis(bucket.RedisConfig{Client: server.client(t), Patience: 5 * bucket.DefaultTimeout})
			require.NoError(t, err)
			for range 2 * breakerFailures {
				ctx, cancel := context.WithTimeout(t.Context(), c.callers)
				_, err := store.Take(ctx, takeOf(t, "acme"))
				cancel()
				require.ErrorIs(t, err, bucket.ErrAmbiguous, name)
				require.ErrorIs(t, err, bucket.ErrLate, name)
			}
		})
	}
}

func TestAProcessThatWasLateInTheLastSecondsGivesItsNodeMoreTimeAndNotForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		delay := time.Millisecond
		server := &wire{answers: func(string) time.Duration { return delay }, late: bucket.DefaultTimeout}
		store, err := bucket.NewRedis(bucket.RedisConfig{Client: server.client(t)})
		require.NoError(t, err)
		take := func() (time.Duration, error) {
			start := time.Now()
			_, err := store.Take(t.Context(), takeOf(t, "acme"))
			return time.Since(start), err
		}
		_, err = take()
		require.ErrorContains(t, err, answered)
		server.late, delay = 0, 7*bucket.DefaultTimeout
		for range 5 {
			pass(700 * time.Millisecond)
			_, err = take()
			require.ErrorContains(t, err, answered)
		}
		delay = -1
		took, err := take()
		require.ErrorIs(t, err, bucket.ErrAmbiguous)
		require.Less(t, took, bucket.DefaultPatience)
		pass(10 * time.Second)
		took, err = take()
		require.ErrorIs(t, err, bucket.ErrAmbiguous)
		require.LessOrEqual(t, took, 15*time.Millisecond)
	})
}

func TestWhatCannotLeaveWhileItsNodeAnswersOthersIsBusyAndCountsNoFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := guarded(t, func(ctx context.Context, cmds ...redis.Cmder) error {
			if key, _ := cmds[0].Args()[callHead].(string); strings.Contains(key, "waiting") {
				// As in a pool whose connections are all in use.
				<-ctx.Done()
				return ctx.Err()
			}
			pass(time.Millisecond)
			return redis.ErrNoScript
		})
		store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, SeparateCalls: true})
		require.NoError(t, err)
		defer othersCall(t, store)()
		for range 2 * breakerFailures {
			start := time.Now()
			_, err := store.Take(t.Context(), takeOf(t, "waiting"))
			require.ErrorIs(t, err, bucket.ErrBusy)
			require.NotErrorIs(t, err, bucket.ErrUnavailable)
			require.NotErrorIs(t, err, bucket.ErrAmbiguous)
			require.Equal(t, bucket.DefaultTimeout+bucket.DefaultPatience, time.Since(start))
		}
		_, err = store.Take(t.Context(), takeOf(t, "acme"))
		require.NotErrorIs(t, err, redisclient.ErrBreakerOpen)
	})
}

func TestAdministrativeCallsHaveSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &wire{answers: func(string) time.Duration { return bucket.DefaultAdminTimeout / 2 }}
		store, err := bucket.NewRedis(bucket.RedisConfig{Client: server.client(t)})
		require.NoError(t, err)
		buckets := takeOf(t, "acme").Buckets
		_, err = store.Peek(t.Context(), "acme", buckets)
		require.ErrorContains(t, err, answered)
		_, err = store.Grant(t.Context(), "acme", buckets, points(1))
		require.ErrorContains(t, err, answered)
		_, err = store.ListOverrides(t.Context(), "acme")
		require.ErrorContains(t, err, answered)
		_, err = store.ClearOverrides(t.Context(), "acme")
		require.ErrorContains(t, err, answered)
	})
}
