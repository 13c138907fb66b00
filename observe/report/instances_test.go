package report_test

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisfeed"
)

const activity = "rl:main:activity"

// revision is a revision of a document.
func revision(number uint64, document string) *policy.Revision {
	return &policy.Revision{Number: number, Document: []byte(document), Hash: policy.HashOf([]byte(document)), Author: "ada"}
}

func TestInstancesSayWhichRevisionOfAFeedTheyServe(t *testing.T) {
	t.Parallel()
	client := redistest.Connect(t, redistest.Start(t).Addr)
	feed, err := redisfeed.New(redisfeed.Config{Client: client})
	require.NoError(t, err)
	good := revision(1, "{version: 1, default: free, tiers: {free: {maxCost: 1}}}")
	require.NoError(t, feed.Publish(t.Context(), good, 0))
	for _, name := range []string{"b", "a"} {
		f, err := policy.Follow(t.Context(), feed, policy.Config{Observe: policy.ObserveConfig{Observer: instance(t, client, name), Logger: quiet}})
		require.NoError(t, err)
		t.Cleanup(func() { _ = f.Close() })
	}
	wrong := revision(2, strings.Repeat("\x01", 10_000))
	require.NoError(t, feed.Restore(t.Context(), wrong))
	r := reader(t, client)
	var all *report.Summary
	require.Eventually(t, func() bool {
		all, err = r.Summary(t.Context(), 0)
		require.NoError(t, err)
		return len(all.Instances) == 2 && all.Instances[0].Feed.Refused != nil && all.Instances[1].Feed.Refused != nil
	}, patience, soon)
	for i, name := range []string{"a", "b"} {
		is := all.Instances[i]
		require.Equal(t, name, is.Name)
		require.Equal(t, []any{uint64(1), good.Hash.String(), "ada"}, []any{is.Policy.Revision, is.Policy.Hash, is.Policy.Author})
		require.WithinDuration(t, time.Now(), is.Policy.Applied, patience)
		require.Equal(t, "current", is.Feed.State)
		require.Equal(t, []any{uint64(2), wrong.Hash.String(), "document"}, []any{is.Feed.Refused.Revision, is.Feed.Refused.Hash, is.Feed.Refused.Cause})
		require.NotEmpty(t, is.Feed.Refused.Error)
	}
}

// entry returns what an instance writes, with so many empty blocks before it.
func entry(t *testing.T, a report.Activity, blocks int) string {
	t.Helper()
	text, err := json.Marshal(a)
	require.NoError(t, err)
	var packed bytes.Buffer
	packer, err := flate.NewWriter(&packed, flate.BestSpeed)
	require.NoError(t, err)
	for range blocks {
		require.NoError(t, packer.Flush())
	}
	_, err = packer.Write(text)
	require.NoError(t, err)
	require.NoError(t, packer.Close())
	return packed.String()
}

func TestTheClockOfTheRedisSaysWhoIsGone(t *testing.T) {
	t.Parallel()
	client := plain(t, redistest.Start(t).Addr)
	now, err := client.Time(t.Context()).Result()
	require.NoError(t, err)
	// The clock of the silent one is a year early, and that of the other one a year late.
	const year = 365 * 24 * time.Hour
	for _, one := range []struct {
		name       string
		ago, clock time.Duration
	}{{"silent", 12 * time.Second, year}, {"alive", 2 * time.Second, -year}} {
		a := report.Activity{Version: report.Version, Instance: one.name, Run: "1", To: now.Add(one.clock)}
		id := fmt.Sprint(now.Add(-one.ago).UnixMilli())
		require.NoError(t, client.XAdd(t.Context(), &redis.XAddArgs{Stream: activity, ID: id, Values: []any{"activity", entry(t, a, 0)}}).Err())
	}
	all, err := reader(t, client).Summary(t.Context(), time.Minute)
	require.NoError(t, err)
	require.Len(t, all.Instances, 1)
	require.Equal(t, "alive", all.Instances[0].Name)
	require.Equal(t, now.Add(-2*time.Second).UnixMilli(), all.Instances[0].At.UnixMilli())
}

func TestWhateverStandsInTheStreamItsReaderIsBounded(t *testing.T) {
	t.Parallel()
	client := plain(t, redistest.Start(t).Addr)
	add := func(texts ...string) {
		_, err := client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			for _, text := range texts {
				p.XAdd(t.Context(), &redis.XAddArgs{Stream: activity, Values: []any{"activity", text}})
			}
			return nil
		})
		require.NoError(t, err)
	}
	good := entry(t, report.Activity{Version: report.Version, Instance: "good", Run: "1"}, 0)
	large := entry(t, report.Activity{Version: report.Version, Instance: "large", Run: strings.Repeat("r", 1<<20)}, 0)
	add(good, strings.Repeat("x", 1<<20), large, entry(t, report.Activity{Version: report.Version, Instance: "a\x00b"}, 0),
		entry(t, report.Activity{Version: report.Version, Instance: "blocks"}, 1<<13))
	r := reader(t, client)
	all, err := r.Summary(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, []any{1, 4}, []any{len(all.Instances), all.Unreadable})

	const most = 1 << 15
	many := make([]string, 1<<11)
	for i := range many {
		many[i] = "x"
	}
	for range most / len(many) {
		add(many...)
	}
	_, err = r.Summary(t.Context(), time.Hour)
	require.ErrorContains(t, err, "more than 32768 entries")
}
