package main

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/event/redisstream"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
	"github.com/gqlgen-ratelimit/ratelimit/policy/directory/redisdirectory"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisfeed"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisswitch"
	"github.com/gqlgen-ratelimit/ratelimit/usage/redisusage"
)

// rightsOf are the rules that a page names: those of functions, and single commands.
func rightsOf(t *testing.T, paragraph string) (rules []string) {
	t.Helper()
	known := map[string]func() ([]string, error){
		"bucket":         func() ([]string, error) { return bucket.ACLRules("", false) },
		"redisfeed":      func() ([]string, error) { return redisfeed.ACLRules("", "") },
		"redisdirectory": func() ([]string, error) { return redisdirectory.ACLRules("", "") },
		"redisswitch":    func() ([]string, error) { return redisswitch.ACLRules("") },
		"report":         func() ([]string, error) { return report.ACLRules("") },
		"redisusage":     func() ([]string, error) { return redisusage.ACLRules("") },
		"redisstream":    func() ([]string, error) { return redisstream.ACLRules("") },
	}
	for _, named := range regexp.MustCompile("`(\\w+)\\.ACLRules`").FindAllStringSubmatch(paragraph, -1) {
		require.Contains(t, known, named[1])
		more, err := known[named[1]]()
		require.NoError(t, err)
		rules = append(rules, more...)
	}
	for _, command := range regexp.MustCompile("`(\\+\\w+)`").FindAllStringSubmatch(paragraph, -1) {
		rules = append(rules, command[1])
	}
	return rules
}

// works does everything for which a daemon needs its Redis, with a user of the Redis, and returns what the Redis has denied.
func works(t *testing.T, rules []string, reads bool) (denied []string) {
	t.Helper()
	server := redistest.Start(t)
	admin := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { require.NoError(t, admin.Close()) })
	user := []any{"ACL", "SETUSER", "daemon", "on", ">secret"}
	for _, rule := range rules {
		user = append(user, rule)
	}
	require.NoError(t, admin.Do(t.Context(), user...).Err())
	to := newReceiver(t, "127.0.0.1", status(http.StatusNoContent))
	r := start(t, t.TempDir(), "-redis", "redis://daemon:secret@"+server.Addr, "-config", hooksConfig(t, to))
	token := r.first()
	r.ask(http.StatusOK, http.MethodPut, "/v1/orgs/acme/ratelimit/overrides?level=tenant&limit=minute", token,
		`{"capacity": 7, "expires": "`+inAnHour()+`"}`, "If-None-Match", "*", "Idempotency-Key", "once")
	r.register(token, "acme", to)
	queue := queueTo(t, server.Addr)
	if reads {
		reading(t, queue, to, "acme")
	}
	collects := regexp.MustCompile(`(?m)^ratelimit_collector_leads\S* 1$`)
	require.Eventually(t, func() bool {
		return len(announced(t, admin)) > 2 && collects.MatchString(r.ask(http.StatusOK, http.MethodGet, "/metrics", token, "")) &&
			strings.Contains(r.ask(http.StatusOK, http.MethodGet, "/v1/orgs/acme/ratelimit/usage", token, ""), `"capacity":7`)
	}, patient, soon)
	said := func() (all []string) {
		queue.Observe(t.Context(), event.LimitReached{Budget: event.Budget{Tenant: "acme", Limit: "first"}, At: time.Now()})
		entries, err := admin.Do(t.Context(), "ACL", "LOG").Slice()
		require.NoError(t, err)
		for _, entry := range entries {
			all = append(all, fmt.Sprint(entry.(map[any]any)["object"]))
		}
		return all
	}
	if !reads {
		require.Eventually(t, func() bool { return len(said()) > 0 }, patient, soon, "it is denied something")
	}
	denied = said()
	slices.Sort(denied)
	return slices.Compact(denied)
}

func TestTheRightsThatThePageNamesAreEnoughForADaemonAndEachOfWebhooksIsNeeded(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/reference/control-plane.md")
	require.NoError(t, err)
	paragraph := regexp.MustCompile(`(?s)The user of the daemon in Redis needs .*?\n\n`).FindString(string(text))
	rules := rightsOf(t, paragraph)
	for _, want := range []string{"+xread", "+xrevrange", "+hscan", "+scan"} {
		require.Contains(t, rules, want)
	}
	t.Run("all", func(t *testing.T) {
		t.Parallel()
		require.Empty(t, works(t, rules, true))
	})
	for _, without := range []string{"+xread", "+xrevrange"} {
		t.Run("without "+without, func(t *testing.T) {
			t.Parallel()
			less := slices.DeleteFunc(slices.Clone(rules), func(rule string) bool { return rule == without })
			require.Equal(t, []string{without[1:]}, works(t, less, false))
		})
	}
}
