package redisfeed_test

import (
	"context"
	"fmt"
	"math"
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

func TestEachInstanceIsListedWithWhatItServesAndRefuses(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redistest.Plain(t, server.Addr)
	ctx := t.Context()
	publisher := open(t, client)
	require.NoError(t, publisher.Publish(ctx, revision(1), 0))
	var followers []*policy.Follower
	for _, name := range []string{"b", "a"} {
		feed, err := redisfeed.New(redisfeed.Config{Client: redistest.Connect(t, server.Addr), Instance: name})
		require.NoError(t, err)
		followers = append(followers, follow(t, feed, policy.Config{Reporter: feed}))
	}
	wrong := other(2, []byte(strings.Repeat("\x01", 10_000)))
	require.NoError(t, publisher.Restore(ctx, wrong))
	require.Eventually(t, func() bool {
		instances, err := publisher.Instances(ctx)
		require.NoError(t, err)
		return len(instances) == 2 && instances[0].Name == "a" && instances[1].Name == "b" &&
			instances[0].Status.Refused != nil && instances[1].Status.Refused != nil
	}, redistest.Patience, 5*time.Millisecond)
	instances, err := publisher.Instances(ctx)
	require.NoError(t, err)
	s := instances[0].Status
	require.Equal(t, policy.Current, s.State)
	require.EqualValues(t, 1, s.Number)
	require.Equal(t, revision(1).Hash, s.Hash)
	require.Equal(t, wrong.Number, s.Refused.Number)
	require.Equal(t, wrong.Hash, s.Refused.Hash)
	require.Equal(t, policy.ReasonDocument, s.Refused.Cause)

	// Neither says anything more: it would stand in the place of what is written here.
	for _, f := range followers {
		require.NoError(t, f.Close())
	}
	require.NoError(t, client.HSet(ctx, key+":instances", "b", "{").Err())
	instances, err = publisher.Instances(ctx)
	require.ErrorContains(t, err, "the reports of 1 instances cannot be read")
	require.Len(t, instances, 1)

	// Who has said nothing for half a minute is forgotten.
	require.NoError(t, client.ZAdd(ctx, key+":seen", redis.Z{Score: 1, Member: "c"}).Err())
	require.NoError(t, client.HSet(ctx, key+":instances", "c", "{}").Err())
	require.NoError(t, publisher.Report(ctx, policy.Status{}))
	require.False(t, client.HExists(ctx, key+":instances", "c").Val())
	life := client.PTTL(ctx, key+":instances").Val()
	require.Greater(t, life, time.Duration(0))
	require.LessOrEqual(t, life, 3*policy.ReportEvery)
}

func TestTooManyInstancesAreRefusedAndThoseThatAreThereStay(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redistest.Plain(t, server.Addr)
	ctx := t.Context()
	now := float64(time.Now().UnixMilli())
	var members []redis.Z
	for i := range 10_000 {
		members = append(members, redis.Z{Score: now, Member: fmt.Sprint(i)})
	}
	require.NoError(t, client.ZAdd(ctx, key+":seen", members...).Err())
	require.ErrorContains(t, open(t, client).Report(ctx, policy.Status{}), "more than 10000 instances")
	known, err := redisfeed.New(redisfeed.Config{Client: client, Instance: "77"})
	require.NoError(t, err)
	require.NoError(t, known.Report(ctx, policy.Status{}))
}

func TestWhateverStandsAmongTheReportsTheListIsBounded(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redistest.Plain(t, server.Addr)
	ctx := t.Context()
	now := float64(time.Now().UnixMilli())
	write := func(name string, seen float64, report string) {
		require.NoError(t, client.ZAdd(ctx, key+":seen", redis.Z{Score: seen, Member: name}).Err())
		require.NoError(t, client.HSet(ctx, key+":instances", name, report).Err())
	}
	for name, report := range map[string]string{
		strings.Repeat("n", 100_000): "{}", "a\x00b": "{}", "\xff": "{}",
		"large": `{"failure": "` + strings.Repeat("x", policy.MaxReport) + `"}`, "number": `{"number": 9007199254740992}`,
		"refused": `{"refused": {"number": 18446744073709551615}}`, "text": "what", "time": `{"changed": "20266-01-01T00:00:00Z"}`,
	} {
		write(name, now, report)
	}
	write("yesterday", now-86_400_000, "{}")
	write("tomorrow", now+86_400_000, "{}")
	write("never", math.Inf(1), "{}")
	const good = 20_000
	fat := `{"failure": "` + strings.Repeat("x", policy.MaxReport-100) + `"}`
	_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range good {
			seen := now + 2
			if i < 1000 {
				seen = now + 1
				p.HSet(ctx, key+":instances", fmt.Sprint(i), fat)
			}
			p.ZAdd(ctx, key+":seen", redis.Z{Score: seen, Member: fmt.Sprint(i)})
		}
		return nil
	})
	require.NoError(t, err)
	feed := open(t, redistest.Connect(t, server.Addr))
	instances, err := feed.Instances(ctx)
	unread := (*policy.UnreadError)(nil)
	require.ErrorAs(t, err, &unread)
	require.Equal(t, 10_000, len(instances)+unread.Instances, "no more are listed")
	size := 0
	for _, i := range instances {
		require.NoError(t, policy.CheckInstanceName(i.Name))
		size += len(i.Status.String())
	}
	require.Greater(t, len(instances), 400)
	require.Less(t, size, 5<<20)

	require.NoError(t, client.Del(ctx, key+":seen", key+":instances").Err())
	write("tomorrow", now+86_400_000, "{}")
	require.NoError(t, feed.Report(ctx, policy.Status{}))
	require.False(t, client.HExists(ctx, key+":instances", "tomorrow").Val(), "who is seen in the future takes no room")
	instances, err = feed.Instances(ctx)
	require.NoError(t, err)
	require.Len(t, instances, 1)
}

func TestALongReportIsShortened(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	feed := open(t, redistest.Connect(t, server.Addr))
	long := strings.Repeat("\x01", 4000)
	require.NoError(t, feed.Report(t.Context(), policy.Status{Failure: long, Unsaved: long, Refused: &policy.Refused{Number: 3, Error: long}}))
	instances, err := feed.Instances(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 3, instances[0].Status.Refused.Number)
	require.Less(t, len(instances[0].Status.String()), 1000)
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
	f := follow(t, feed, policy.Config{Interval: policy.None, Reporter: feed})
	require.NoError(t, feed.Publish(ctx, revision(2), 1))
	require.Eventually(t, func() bool { return maxCost(f) == 2 }, redistest.Patience, time.Millisecond)
	require.NoError(t, feed.Report(ctx, f.Status()))
	_, err = feed.Instances(ctx)
	require.NoError(t, err)
	denied, err := admin.Do(ctx, "ACL", "LOG").Slice()
	require.NoError(t, err)
	require.Empty(t, denied)
}

func TestMistakesOfTheConfigurationAreReportedAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := redisfeed.New(redisfeed.Config{Namespace: "a b", Name: "c{d", Instance: strings.Repeat("x", 129), MaxDocument: -1})
	for _, part := range []string{"Config.Client is nil", "Config.Namespace", "Config.Name", "Config.Instance: a name of 129 bytes", "Config.MaxDocument is -1"} {
		require.ErrorContains(t, err, part)
	}
	_, err = redisfeed.ACLRules("a b", "")
	require.Error(t, err)
}
