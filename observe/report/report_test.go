package report_test

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/event/redisstream"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
	"github.com/gqlgen-ratelimit/ratelimit/usage/redisusage"
)

const (
	patience = 30 * time.Second
	soon     = 20 * time.Millisecond
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// plain returns a client for the test itself, which may wait.
func plain(t testing.TB, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// instance starts a reporter. It ends with the test.
func instance(t testing.TB, client redis.UniversalClient, name string) *report.Reporter {
	t.Helper()
	r, err := report.Start(report.Config{Place: report.Place{Client: client}, Instance: name, Logger: quiet})
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func reader(t testing.TB, client redis.UniversalClient) *report.Reader {
	t.Helper()
	r, err := report.NewReader(report.Place{Client: client})
	require.NoError(t, err)
	return r
}

func refused(id string) event.Decided {
	return event.Decided{At: time.Now(), RefusalID: id, Outcome: "limited", Code: "RATE_LIMITED", Tenant: "acme", Revision: 3}
}

func asked(tenant string) event.Verdict {
	return event.Verdict{At: time.Now(), Tenant: tenant, Outcome: "admitted", Cost: 2, RootFields: []string{"Query.a"}}
}

func testInstances(t *testing.T, client redis.UniversalClient) {
	t.Helper()
	r := reader(t, client)
	_, err := r.Refusal(t.Context(), "nobody has it")
	require.ErrorIs(t, err, report.ErrNotFound)
	none, err := r.Summary(t.Context(), time.Minute)
	require.NoError(t, err)
	require.Empty(t, none.Instances)

	for i := range 5 {
		one := instance(t, client, fmt.Sprint("instance/", i))
		for range i + 1 {
			one.Count(asked("acme"))
		}
		require.True(t, one.Keep(t.Context(), refused(fmt.Sprint("id-", i))))
	}
	var all *report.Summary
	require.Eventually(t, func() bool {
		all, err = r.Summary(t.Context(), time.Minute)
		return err == nil && len(all.Instances) == 5 && all.Recent.Decisions == 15
	}, patience, soon)
	require.Equal(t, int64(15), all.Tenants[0].Decisions)
	require.Equal(t, []report.Operation{{Name: "Query.a", Counts: report.Counts{Decisions: 15, Cost: 30}}}, all.Operations)
	for i := range 5 {
		found, err := r.Refusal(t.Context(), fmt.Sprint("id-", i))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint("instance/", i), found.Instance)
		require.Equal(t, int64(i+1), all.Instances[i].Recent.Decisions)
	}
	n := int64(0)
	for a, err := range r.Activities(t.Context(), time.Hour) {
		require.NoError(t, err)
		if a.Sample != nil {
			n += a.Sample.Records[0].N
		}
	}
	require.Equal(t, int64(15), n)
}

func TestInstances(t *testing.T) {
	t.Parallel()
	t.Run("one Redis", func(t *testing.T) {
		t.Parallel()
		testInstances(t, redistest.Connect(t, redistest.Start(t).Addr))
	})
	t.Run("a cluster", func(t *testing.T) {
		t.Parallel()
		testInstances(t, redistest.ConnectWith(t, "", redisclient.Config{Addresses: redistest.StartCluster(t).Addrs, Cluster: true}))
	})
	t.Run("with the rights of ACLRules", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		rules, err := bucket.ACLRules("main", false)
		require.NoError(t, err)
		more, err := report.ACLRules("")
		require.NoError(t, err)
		args := []any{"ACL", "SETUSER", "limiter", "on", ">secret"}
		for _, rule := range append(rules, more...) {
			args = append(args, rule)
		}
		require.NoError(t, plain(t, server.Addr).Do(t.Context(), args...).Err())
		testInstances(t, redistest.Connect(t, "redis://limiter:secret@"+server.Addr))
		_, err = report.ACLRules("a:b")
		require.Error(t, err)
	})
}

func TestRefusalOutlivesItsInstance(t *testing.T) {
	t.Parallel()
	client := redistest.Connect(t, redistest.Start(t).Addr)
	one := instance(t, client, "gone")
	one.Observe(t.Context(), event.PolicyApplied{At: time.Now(), Revision: 3, Author: "ada", Reason: "ticket 16"})
	one.Observe(t.Context(), event.PolicyApplied{At: time.Now(), Revision: 4})
	one.Observe(t.Context(), event.ModeSwitched{State: "current", InForce: []event.ModeSwitch{
		{AtMost: "warn", Until: time.Now().Add(time.Hour), Reason: "loop\x1b[2J"}, {AtMost: "off", Until: time.Now().Add(-time.Hour)},
	}})
	r := reader(t, client)
	listed := func() *report.Instance {
		all, err := r.Summary(t.Context(), time.Minute)
		require.NoError(t, err)
		if len(all.Instances) == 0 {
			return nil
		}
		return &all.Instances[0]
	}
	require.Eventually(t, func() bool { return listed() != nil }, patience, soon)
	is := listed()
	require.Equal(t, uint64(4), is.Policy.Revision)
	require.Len(t, is.Modes.InForce, 1, "one has ended by itself")
	require.Equal(t, `loop\x1b[2J`, is.Modes.InForce[0].Reason)
	one.Observe(t.Context(), refused("last words"))
	require.NoError(t, one.Close())
	require.Nil(t, listed(), "an instance that has ended says so")
	found, err := r.Refusal(t.Context(), "last words")
	require.NoError(t, err)
	require.Equal(t, "RATE_LIMITED", found.Code)
	require.Equal(t, report.Policy{Revision: 3, Author: "ada", Reason: "ticket 16", Applied: found.Policy.Applied}, found.Policy)
	require.NoError(t, one.Close(), "again")
}

func TestEventsWaitForARedisThatIsAway(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redistest.Connect(t, server.Addr)
	one := instance(t, client, "one")
	server.Kill()
	one.Observe(t.Context(), refused("while it was away"))
	one.Observe(t.Context(), event.LimitReached{At: time.Now(), Budget: event.Budget{Tenant: "acme", Level: "user", Owner: "mira"}})
	require.NoError(t, server.Restart())
	r := reader(t, client)
	require.Eventually(t, func() bool {
		_, err := r.Refusal(t.Context(), "while it was away")
		return err == nil
	}, patience, soon)
	entries, err := client.XRange(t.Context(), redisstream.Key("", "ratelimit.thresholds"), "-", "+").Result()
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.NotContains(t, entries[0].Values["data"], "mira")
	require.Zero(t, one.Dropped())
}

func TestForeignEntriesAreCounted(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client, test := redistest.Connect(t, server.Addr), plain(t, server.Addr)
	one := instance(t, client, "good")
	one.Count(asked("acme"))
	one.Observe(t.Context(), refused("good"))
	require.NoError(t, one.Close())
	add := func(key string, values ...any) {
		require.NoError(t, test.XAdd(t.Context(), &redis.XAddArgs{Stream: key, Values: values}).Err())
	}
	denials := redisstream.Key("", "ratelimit.denials")
	for range 600 {
		add(denials, "id", "other", "data", "{}")
	}
	add(denials, "id", "evil", "data", strings.Repeat("x", 1<<20))
	add(denials, "id", "evil", "source", "%", "data", `{"refusalId":"another"}`)
	add(denials, "id", "odd", "source", "ratelimit:main/%zz", "data", `{"refusalId":"odd"}`)
	add("rl:main:activity", "activity", "no deflate")
	add("rl:main:activity", "other", strings.Repeat("x", 1<<20))

	r := reader(t, client)
	found, err := r.Refusal(t.Context(), "good")
	require.NoError(t, err)
	require.Equal(t, "acme", found.Tenant)
	_, err = r.Refusal(t.Context(), "evil")
	require.ErrorIs(t, err, report.ErrUnreadable)
	found, err = r.Refusal(t.Context(), "odd")
	require.NoError(t, err)
	require.Empty(t, found.Instance)
	for _, id := range []string{"", strings.Repeat("i", 1<<20)} {
		_, err = r.Refusal(t.Context(), id)
		require.ErrorIs(t, err, report.ErrNotFound)
	}
	all, err := r.Summary(t.Context(), time.Minute)
	require.NoError(t, err)
	require.Equal(t, []int64{1, 2}, []int64{all.Recent.Decisions, int64(all.Unreadable)})
}

func TestEveryMistakeInAConfigurationIsReported(t *testing.T) {
	t.Parallel()
	_, err := report.Start(report.Config{Place: report.Place{Namespace: "a:b"}, Instance: "\x00", Users: 9, Key: []byte("short")})
	for _, field := range []string{"Client", "Namespace", "Instance", "Users", "Key"} {
		require.ErrorContains(t, err, field)
	}
	_, err = report.NewReader(report.Place{})
	require.ErrorContains(t, err, "Client")
}

func TestRefusalsOfAnHourSurviveARestartOfTheRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	client := redistest.Connect(t, server.Addr)
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: patience})
	require.NoError(t, err)
	source, err := redisusage.NewReader(redisusage.Config{Client: client}, store)
	require.NoError(t, err)
	blocked := event.Verdict{At: time.Now(), Tenant: "acme", Outcome: "blocked", Refused: true}
	reaches := func(want int64) {
		t.Helper()
		require.Eventually(t, func() bool {
			n := int64(0)
			rows, _, err := source.Refused(t.Context(), blocked.At, "")
			for _, row := range rows {
				n += row.N
			}
			return err == nil && n == want
		}, patience, soon)
	}
	var instances []*report.Reporter
	for i := range 3 {
		one := instance(t, client, fmt.Sprint("instance-", i))
		for range 5 {
			one.Count(blocked)
		}
		instances = append(instances, one)
	}
	reaches(15)
	server.Kill()
	for _, one := range instances {
		one.Count(blocked)
	}
	require.NoError(t, server.Restart())
	reaches(18)
}
