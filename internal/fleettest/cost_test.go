package fleettest_test

import (
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisfeed"
)

// processorTime is what a Redis says that it has used so far.
func processorTime(t *testing.T, admin *redis.Client) (sum time.Duration) {
	t.Helper()
	info := admin.Info(t.Context(), "cpu").Val()
	for _, name := range []string{"used_cpu_sys", "used_cpu_user"} {
		_, rest, found := strings.Cut(info, "\n"+name+":")
		require.True(t, found)
		seconds, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
		require.NoError(t, err)
		sum += time.Duration(seconds * float64(time.Second))
	}
	return sum
}

// taken is what followers who have the newest revision take of a Redis: calls in a second that compare, those that are scripts, and the part
// of a processor.
type taken struct{ compared, scripts, percent float64 }

// take has a Redis asked for so long.
func take(t *testing.T, followers int, over time.Duration) taken {
	t.Helper()
	server := redistest.Start(t)
	admin := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = admin.Close() })
	publisher, err := redisfeed.New(redisfeed.Config{Client: admin})
	require.NoError(t, err)
	document := []byte("version: 1\ndefault: free\ntiers: {free: {maxCost: 1}}\n")
	require.NoError(t, publisher.Publish(t.Context(), &policy.Revision{Number: 1, Document: document, Hash: policy.HashOf(document)}, 0))
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	for range followers {
		client, err := redisclient.Open(server.Addr, redisclient.Config{PoolSize: 1})
		require.NoError(t, err)
		t.Cleanup(func() { _ = client.Close() })
		feed, err := redisfeed.New(redisfeed.Config{Client: client})
		require.NoError(t, err)
		cfg := policy.Config{Patience: patience, Observe: policy.ObserveConfig{Logger: quiet, Observer: event.NewLogger(quiet)}}
		f, err := policy.Follow(t.Context(), feed, cfg)
		require.NoError(t, err)
		t.Cleanup(func() { _ = f.Close() })
	}
	require.Eventually(t, func() bool {
		return admin.PubSubNumSub(t.Context(), hints).Val()[hints] == int64(followers)
	}, patience, 50*time.Millisecond, "subscriptions are missing")
	calls := func(command string) int {
		return number(t, admin.Info(t.Context(), "commandstats").Val(), "cmdstat_"+command+":calls=")
	}
	compared, ran, began, used := calls("hexists"), calls("evalsha"), time.Now(), processorTime(t, admin)
	<-time.After(over)
	took := time.Since(began)
	percent := 100 * float64(processorTime(t, admin)-used) / float64(took)
	perSecond := func(n int) float64 { return float64(n) / took.Seconds() }
	return taken{perSecond(calls("hexists") - compared), perSecond(calls("evalsha") - ran), percent}
}

// number reads the number that follows a name, 0 for none.
func number(t *testing.T, text, name string) int {
	t.Helper()
	_, rest, found := strings.Cut(text, name)
	if !found {
		return 0 // Nobody has called it.
	}
	n, err := strconv.Atoi(rest[:strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })])
	require.NoError(t, err)
	return n
}

func TestAThousandFollowersAskAndTakeAPartOfAProcessorOfTheRedis(t *testing.T) {
	followers, over := 20, 2*time.Second
	if *all {
		followers, over = 1000, 30*time.Second
	}
	var table strings.Builder
	table.WriteString("| followers | interval | over | comparisons a second | scripts a second | share of a processor | load average |\n|---|---|---|---|---|---|---|\n")
	of := take(t, followers, over)
	require.NotZero(t, of.compared, "a Redis that nobody asks proves nothing")
	if *all {
		require.Greater(t, of.compared, 2*of.scripts, "most questions are no scripts")
	}
	fmt.Fprintf(&table, "| %d | 1 s | %v | %.0f | %.0f | %.1f %% | %s |\n", followers, over, of.compared, of.scripts, of.percent, load(t))
	t.Log("\n" + table.String())
	writeTable(t, "cost", table.String())
}
