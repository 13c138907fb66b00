package redisfeed_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/policy/policytest"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisfeed"
)

const key = "rl:main:policy:{main}"

func open(t testing.TB, client redis.UniversalClient) *redisfeed.Feed {
	t.Helper()
	feed, err := redisfeed.New(redisfeed.Config{Client: client})
	require.NoError(t, err)
	return feed
}

// put writes a revision by hand.
func put(client redis.UniversalClient, r *policy.Revision) error {
	published := ""
	if !r.Published.IsZero() {
		published = fmt.Sprint(r.Published.UnixMilli())
	}
	return client.HSet(context.Background(), key, "number", r.Number, "hash", r.Hash.String(), "document", r.Document,
		"author", r.Author, "reason", r.Reason, "published", published, "signature", r.Signature).Err()
}

func TestARedisIsAFeed(t *testing.T) {
	t.Parallel()
	policytest.Run(t, func(t *testing.T) policytest.Harness {
		t.Helper()
		server := redistest.Start(t)
		client := redistest.Plain(t, server.Addr)
		return policytest.Harness{
			Open:      func() policy.Feed { return open(t, redistest.Connect(t, server.Addr)) },
			Put:       func(r *policy.Revision) error { return put(client, r) },
			Empty:     func() error { return client.FlushAll(context.Background()).Err() },
			Publisher: open(t, client),
			Restart: func() error {
				server.Kill()
				return server.Restart()
			},
		}
	})
}

func TestAClientWithOptionsOfItsOwnFollowsAsWell(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, Protocol: 2})
	t.Cleanup(func() { _ = client.Close() })
	feed := open(t, client)
	require.NoError(t, feed.Publish(t.Context(), revision(1), 0))
	f := follow(t, feed, policy.Config{Interval: policy.None})
	require.NoError(t, feed.Publish(t.Context(), revision(2), 1))
	require.Eventually(t, func() bool { return maxCost(f) == 2 }, redistest.Patience, time.Millisecond)
}

func TestWhatSomebodyHasWrittenIntoTheKeyIsRefusedAndReplaced(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redistest.Plain(t, server.Addr)
	feed := open(t, redistest.Connect(t, server.Addr))
	ctx := t.Context()
	for name, fields := range map[string][]any{
		"a number that is none": {"number", "seven"},
		"a huge signature":      {"number", 7, "hash", revision(7).Hash.String(), "signature", strings.Repeat("s", 1<<20)},
		"a huge number":         {"number", strings.Repeat("9", 1<<20)},
		"a negative number":     {"number", "-1"},
		"a hash that is none":   {"number", 7, "hash", "sha256:x"},
		"a time that is none":   {"number", 7, "hash", revision(7).Hash.String(), "published", "tomorrow"},
		"a huge author":         {"number", 7, "hash", revision(7).Hash.String(), "author", strings.Repeat("a", 64<<20)},
		"a huge document":       {"number", 7, "hash", revision(7).Hash.String(), "document", strings.Repeat("#", 64<<20)},
	} {
		require.NoError(t, client.HSet(ctx, key, fields...).Err())
		_, err := feed.Newest(ctx, policy.Head{})
		var refused *policy.RefusedError
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, policy.ReasonMalformed, refused.Reason)
		require.Less(t, len(err.Error()), 2000)
		require.NoError(t, client.Del(ctx, key).Err())
	}
	require.NoError(t, client.HSet(ctx, key, "number", "seven").Err())
	require.NoError(t, feed.Publish(ctx, revision(1), 0), "it is in nobody's way")
}

func TestARevisionThatIsRefusedIsSentOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redistest.Plain(t, server.Addr)
	feed := open(t, client)
	ctx := t.Context()
	require.NoError(t, feed.Publish(ctx, revision(1), 0))
	wrong := other(2, []byte("["+strings.Repeat(" ", 1<<20-1)))
	wrong.Author, wrong.Signature = "ada", []byte{1, 2}
	require.NoError(t, feed.Restore(ctx, wrong))
	sent := func() (bytes int64) {
		text := client.InfoMap(ctx, "stats").Item("Stats", "total_net_output_bytes")
		_, err := fmt.Sscan(text, &bytes)
		require.NoError(t, err)
		return bytes
	}
	before := sent()
	for range 20 {
		got, err := feed.Newest(ctx, revision(1).Head())
		require.NoError(t, err)
		require.Equal(t, wrong, got)
		clear(got.Document)
	}
	require.Less(t, sent()-before, int64(3<<19), "20 questions about a document of 1 MiB")

	// Whatever changes beside the document is seen.
	require.NoError(t, client.HSet(ctx, key, "signature", "another").Err())
	got, err := feed.Newest(ctx, revision(1).Head())
	require.NoError(t, err)
	require.Equal(t, "another", string(got.Signature))
	// So is a document that was cut and is mended.
	require.NoError(t, client.HSet(ctx, key, "document", "[").Err())
	cut := open(t, client)
	for _, document := range []string{"[", "[ ", string(wrong.Document)} {
		require.NoError(t, client.HSet(ctx, key, "document", document).Err())
		got, err = cut.Newest(ctx, revision(1).Head())
		require.NoError(t, err)
		require.Equal(t, document, string(got.Document))
	}
}

func TestTheRightsOfTheListAreEnough(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := redistest.Plain(t, server.Addr)
	ctx := t.Context()
	rules, err := bucket.ACLRules("", false)
	require.NoError(t, err)
	more, err := redisfeed.ACLRules("", "")
	require.NoError(t, err)
	user := []any{"ACL", "SETUSER", "instance", "on", ">secret"}
	for _, rule := range append(rules, more...) {
		user = append(user, rule)
	}
	require.NoError(t, admin.Do(ctx, user...).Err())
	cfg := redisclient.Config{Username: "instance", Password: "secret", SocketTimeout: redistest.Patience}
	feed := open(t, redistest.ConnectWith(t, server.Addr, cfg))
	require.NoError(t, feed.Publish(ctx, revision(1), 0))
	f := follow(t, feed, policy.Config{Interval: policy.None})
	require.NoError(t, feed.Publish(ctx, revision(2), 1))
	require.Eventually(t, func() bool { return maxCost(f) == 2 }, redistest.Patience, time.Millisecond)
	denied, err := admin.Do(ctx, "ACL", "LOG").Slice()
	require.NoError(t, err)
	require.Empty(t, denied)
}

func TestMistakesOfTheConfigurationAreReportedAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := redisfeed.New(redisfeed.Config{Namespace: "a b", Name: "c{d", MaxDocument: -1})
	for _, part := range []string{"Config.Client is nil", "Config.Namespace", "Config.Name", "Config.MaxDocument is -1"} {
		require.ErrorContains(t, err, part)
	}
	_, err = redisfeed.ACLRules("a b", "")
	require.Error(t, err)
}
