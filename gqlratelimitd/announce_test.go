package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event/redisstream"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// announced are the events of the topic of changes in a Redis.
func announced(t *testing.T, client *redis.Client) (all []stream.Envelope) {
	t.Helper()
	const topic = "ratelimit.policy.updates"
	entries, err := client.XRange(t.Context(), redisstream.Key("", topic), "-", "+").Result()
	require.NoError(t, err)
	for _, entry := range entries {
		e, err := redisstream.Decode(topic, entry)
		require.NoError(t, err)
		all = append(all, e)
	}
	return all
}

func TestWhatIsDoneIsAnnouncedInTheRedisOfTheInstances(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	r := start(t, t.TempDir(), "-redis", "redis://"+server.Addr)
	token := r.first()
	r.ask(http.StatusOK, http.MethodPut, "/v1/orgs/acme/ratelimit/overrides?level=tenant&limit=minute", token,
		`{"capacity": 5000, "expires": "`+time.Now().Add(time.Hour).UTC().Format(time.RFC3339)+`"}`, "If-None-Match", "*")
	var got []stream.Envelope
	require.Eventually(t, func() bool { got = announced(t, client); return len(got) >= 4 }, time.Minute, 10*time.Millisecond)
	var names []string
	for _, e := range got {
		names = append(names, e.Type)
		require.Equal(t, "ratelimit:main/audit", e.Source)
		require.NotContains(t, string(e.Data), token)
		require.NotContains(t, string(e.Data), r.token)
		_, err := audit.ParseRecord(e.Data)
		require.NoError(t, err)
	}
	require.Equal(t, []string{
		"ratelimit.token.issued.v1", "ratelimit.token.issued.v1", "ratelimit.policy.published.v1", "ratelimit.override.set.v1",
	}, names)
	require.Equal(t, "acme", got[3].Subject)
	require.Contains(t, r.ask(http.StatusOK, http.MethodGet, "/metrics", token, ""), "ratelimit_announce_lag_seconds")
}

func TestARedisOfStreamsThatIsFrozenOrAwayDelaysNothing(t *testing.T) {
	t.Parallel()
	streams := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: streams.Addr})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	streams.Freeze(t)
	r := start(t, t.TempDir(), "-stream", "redis://"+streams.Addr)
	token := r.first()
	r.ask(http.StatusOK, http.MethodPut, "/v1/ratelimit/policies", token, document+"# two\n", "If-Match", `"1"`)
	streams.Thaw(t)
	require.Eventually(t, func() bool { return len(announced(t, client)) >= 4 }, time.Minute, 10*time.Millisecond)
	streams.Kill()
	r.ask(http.StatusOK, http.MethodPut, "/v1/ratelimit/policies", token, document+"# three\n", "If-Match", `"2"`)
}

func TestNothingIsAnnouncedWhereNoneIsAskedFor(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	r := start(t, t.TempDir(), "-redis", "redis://"+server.Addr, "-stream", "none")
	require.NotContains(t, r.ask(http.StatusOK, http.MethodGet, "/metrics", r.first(), ""), "ratelimit_announce_lag_seconds")
	require.Empty(t, announced(t, client))
}

func TestTheRightsThatTheGuideNamesAreEnoughToAnnounce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	budgets, err := bucket.ACLRules("", false)
	require.NoError(t, err)
	rules, err := redisstream.ACLRules("")
	require.NoError(t, err)
	user := []any{"ACL", "SETUSER", "announcer", "on", ">secret"}
	for _, rule := range append(budgets, rules...) {
		user = append(user, rule)
	}
	require.NoError(t, client.Do(t.Context(), user...).Err())
	start(t, t.TempDir(), "-stream", "redis://announcer:secret@"+server.Addr)
	require.Eventually(t, func() bool { return len(announced(t, client)) == 1 }, time.Minute, 10*time.Millisecond)
	denied, err := client.Do(t.Context(), "ACL", "LOG").Slice()
	require.NoError(t, err)
	require.Empty(t, denied)
}
