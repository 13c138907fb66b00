package subscription_test

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/subscription"
)

const patience = 30 * time.Second

// calls is how often a command was called.
func calls(t *testing.T, admin *redis.Client, command string) int {
	t.Helper()
	text, err := admin.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	_, rest, _ := strings.Cut(text, "cmdstat_"+command+":calls=")
	number, _, _ := strings.Cut(rest, ",")
	n, _ := strconv.Atoi(number) // None is 0.
	return n
}

func TestASubscriptionThatNobodyPublishesToStands(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = admin.Close() })
	bounded := redistest.Connect(t, server.Addr)
	for name, client := range map[string]redis.UniversalClient{"a client of redisclient": bounded, "a client with defaults": admin} {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		var woken atomic.Int64
		subscribed, asked := calls(t, admin, "subscribe"), calls(t, admin, "ping")
		// As long as none of these has to be read, so that a machine without processor time does not end it.
		go func() {
			ended <- subscription.ListenEvery(ctx, client, "hints", func() { woken.Add(1) }, 500*time.Millisecond)
		}()
		require.Eventually(t, func() bool { return len(ended) > 0 || calls(t, admin, "ping") >= asked+3 }, patience, 10*time.Millisecond, name)
		require.Empty(t, ended, name)
		require.Equal(t, subscribed+1, calls(t, admin, "subscribe"), "%s: it was made once", name)
		require.EqualValues(t, 1, woken.Load(), "%s: an answer is no hint", name)
		require.NoError(t, admin.Publish(ctx, "hints", "x").Err())
		require.Eventually(t, func() bool { return woken.Load() == 2 }, patience, time.Millisecond, name)
		stop()
		require.Error(t, <-ended)
	}
}

func TestASubscriptionThatIsSilentIsGivenUp(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redistest.Connect(t, server.Addr)
	stands, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ended <- subscription.ListenEvery(t.Context(), client, "hints", func() { stands <- struct{}{} }, 100*time.Millisecond)
	}()
	<-stands
	server.Freeze(t)
	defer server.Thaw(t)
	select {
	case err := <-ended:
		require.Error(t, err)
	case <-time.After(patience):
		require.Fail(t, "it was not given up")
	}
}
