package fleettest_test

import (
	"fmt"
	"io"
	"log/slog"
	"os"
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

// tickOfProc is the unit of /proc.
const tickOfProc = 10 * time.Millisecond

// processorTime is what a process has used so far.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	// The name before the last bracket may hold anything.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	const user, system = 11, 12
	sum := 0
	for _, field := range []string{fields[user], fields[system]} {
		n, err := strconv.Atoi(field)
		require.NoError(t, err)
		sum += n
	}
	return time.Duration(sum) * tickOfProc
}

// share is the part of a processor that a Redis uses for followers who have the newest revision.
func share(t *testing.T, followers int, reports bool, over time.Duration) (percent, perSecond float64) {
	t.Helper()
	server := redistest.Start(t)
	admin := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = admin.Close() })
	publisher, err := redisfeed.New(redisfeed.Config{Client: admin})
	require.NoError(t, err)
	document := []byte("version: 1\ndefault: free\ntiers: {free: {maxCost: 1}}\n")
	require.NoError(t, publisher.Publish(t.Context(), &policy.Revision{Number: 1, Document: document, Hash: policy.HashOf(document)}, 0))
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	for i := range followers {
		client, err := redisclient.Open(server.Addr, redisclient.Config{PoolSize: 1})
		require.NoError(t, err)
		t.Cleanup(func() { _ = client.Close() })
		feed, err := redisfeed.New(redisfeed.Config{Client: client, Instance: fmt.Sprint(i)})
		require.NoError(t, err)
		cfg := policy.Config{Patience: patience, Observe: policy.ObserveConfig{Logger: quiet, Observer: event.NewLogger(quiet)}}
		if reports {
			cfg.Reporter = feed
		}
		f, err := policy.Follow(t.Context(), feed, cfg)
		require.NoError(t, err)
		t.Cleanup(func() { _ = f.Close() })
	}
	require.Eventually(t, func() bool {
		return admin.PubSubNumSub(t.Context(), hints).Val()[hints] == int64(followers)
	}, patience, 50*time.Millisecond, "subscriptions are missing")
	info := admin.Info(t.Context(), "server").Val()
	pid := number(t, info, "process_id:")
	calls := func() int { return number(t, admin.Info(t.Context(), "commandstats").Val(), "cmdstat_evalsha:calls=") }
	asked, began, used := calls(), time.Now(), processorTime(t, pid)
	<-time.After(over)
	took := time.Since(began)
	percent = 100 * float64(processorTime(t, pid)-used) / float64(took)
	return percent, float64(calls()-asked) / took.Seconds()
}

// number reads the number that follows a name.
func number(t *testing.T, text, name string) int {
	t.Helper()
	_, rest, found := strings.Cut(text, name)
	require.True(t, found)
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
	table.WriteString("| followers | interval | reports | over | calls of scripts a second | share of a processor | load average |\n|---|---|---|---|---|---|---|\n")
	for _, reports := range []bool{false, true} {
		t.Run(fmt.Sprint("reports ", reports), func(t *testing.T) {
			percent, perSecond := share(t, followers, reports, over)
			require.NotZero(t, perSecond, "a Redis that nobody asks proves nothing")
			said := map[bool]string{false: "none", true: "every 10 s"}[reports]
			fmt.Fprintf(&table, "| %d | 1 s | %s | %v | %.0f | %.1f %% | %s |\n", followers, said, over, perSecond, percent, load(t))
		})
	}
	t.Log("\n" + table.String())
	writeTable(t, "cost", table.String())
}
