package redistest_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// patience bounds what has to come about however busy the machine is.
const patience = 10 * time.Second

// throughProxy returns a proxy in front of a new server, a client that goes through it, whose calls end
// with their context, and one that does not.
func throughProxy(t *testing.T) (*redistest.Proxy, *redis.Client, *redis.Client) {
	t.Helper()
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr)
	open := func(addr string) *redis.Client {
		client := redis.NewClient(&redis.Options{
			Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true, DisableIdentity: true,
			ReadTimeout: patience, PoolSize: 1,
		})
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	return proxy, open(proxy.Addr), open(server.Addr)
}

func incr(t *testing.T, client *redis.Client, within time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	return client.Incr(ctx, "n").Err()
}

func requireCount(t *testing.T, client *redis.Client, want int) {
	t.Helper()
	require.Eventually(t, func() bool {
		n, err := client.Get(t.Context(), "n").Int()
		return err == nil && n == want
	}, patience, time.Millisecond)
}

func TestAProxyCountsConnectionsAndPassesEverythingOn(t *testing.T) {
	t.Parallel()
	proxy, client, direct := throughProxy(t)
	for range 10 {
		require.NoError(t, incr(t, client, patience))
	}
	large := string(make([]byte, 1<<20))
	require.NoError(t, client.Set(t.Context(), "large", large, 0).Err())
	read, err := client.Get(t.Context(), "large").Result()
	require.NoError(t, err)
	require.Equal(t, large, read)
	requireCount(t, direct, 10)
	require.EqualValues(t, 1, proxy.Opened())
	require.Zero(t, proxy.Lost())
}

func TestADelayIsThatOfARoundTripAndHoldsForOpenConnections(t *testing.T) {
	t.Parallel()
	proxy, client, _ := throughProxy(t)
	require.NoError(t, incr(t, client, patience))
	const delay = 60 * time.Millisecond
	proxy.Delay(delay)
	start := time.Now()
	require.NoError(t, incr(t, client, patience))
	require.GreaterOrEqual(t, time.Since(start), delay)
	require.ErrorIs(t, incr(t, client, delay/4), os.ErrDeadlineExceeded)
	proxy.Heal()
	require.NoError(t, incr(t, client, patience))
}

func TestWhatIsSentIntoACutNetworkArrivesWhenItIsHealed(t *testing.T) {
	t.Parallel()
	proxy, client, direct := throughProxy(t)
	require.NoError(t, incr(t, client, patience))
	proxy.Cut()
	proxy.Cut()
	require.Error(t, incr(t, client, 20*time.Millisecond))
	requireCount(t, direct, 1)
	proxy.Heal()
	requireCount(t, direct, 2)
	require.NoError(t, incr(t, client, patience))
	requireCount(t, direct, 3)
}

func TestSeveredConnectionsEndAndNewOnesPass(t *testing.T) {
	t.Parallel()
	proxy, client, direct := throughProxy(t)
	require.NoError(t, incr(t, client, patience))
	requireCount(t, direct, 1)
	require.Equal(t, 1, proxy.Sever())
	// The client may see first that its connection has ended.
	require.Eventually(t, func() bool { return incr(t, client, patience) == nil }, patience, time.Millisecond)
	require.EqualValues(t, 2, proxy.Opened())
}

func TestDroppedRepliesAreThoseOfRequestsThatWereApplied(t *testing.T) {
	t.Parallel()
	proxy, client, direct := throughProxy(t)
	require.NoError(t, incr(t, client, patience))
	proxy.DropReplies()
	require.Error(t, incr(t, client, 50*time.Millisecond))
	requireCount(t, direct, 2)
	require.Eventually(t, func() bool { return proxy.Lost() == 1 }, patience, time.Millisecond)
	proxy.Heal()
	require.NoError(t, incr(t, client, patience))
	requireCount(t, direct, 3)
}

func TestOneReplyIsLostWithItsConnectionAndOnlyThatOfTheRequestNamed(t *testing.T) {
	t.Parallel()
	proxy, client, direct := throughProxy(t)
	proxy.LoseReply("incr")
	require.NoError(t, client.Ping(t.Context()).Err())
	err := incr(t, client, patience)
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	requireCount(t, direct, 1)
	require.EqualValues(t, 1, proxy.Lost())
	require.NoError(t, incr(t, client, patience))
	requireCount(t, direct, 2)
}

func TestNewConnectionsLeadToTheOtherServerAndOpenOnesStay(t *testing.T) {
	t.Parallel()
	proxy, client, first := throughProxy(t)
	other := redistest.Start(t)
	second := redis.NewClient(&redis.Options{Addr: other.Addr})
	t.Cleanup(func() { _ = second.Close() })
	require.NoError(t, incr(t, client, patience))
	proxy.Lead(other.Addr)
	require.NoError(t, incr(t, client, patience))
	requireCount(t, first, 2)
	proxy.Sever()
	require.Eventually(t, func() bool { return incr(t, client, patience) == nil }, patience, time.Millisecond)
	requireCount(t, second, 1)
	requireCount(t, first, 2)
}

func TestAProxyWithoutAServerEndsConnectionsAndServesAServerThatComes(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Kill()
	proxy := redistest.StartProxy(t, server.Addr)
	client := redis.NewClient(&redis.Options{Addr: proxy.Addr, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	require.Error(t, client.Ping(t.Context()).Err())
	require.NoError(t, server.Restart())
	require.NoError(t, client.Ping(t.Context()).Err())
}
