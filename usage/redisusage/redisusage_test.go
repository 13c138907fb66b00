package redisusage_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
	"github.com/gqlgen-ratelimit/ratelimit/usage/redisusage"
	"github.com/gqlgen-ratelimit/ratelimit/usage/usagetest"
)

const (
	patience = 30 * time.Second
	soon     = 20 * time.Millisecond
	run      = "00000000000000b0"
)

// plain returns a client for the test itself, which may wait.
func plain(t testing.TB, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// store writes what an instance has refused.
func store(ctx context.Context, client redis.UniversalClient, run string, refused []usage.Refused) error {
	// Without a deadline the client has a tenth of a second.
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	pipe := client.Pipeline()
	redisusage.AppendRefusals(ctx, pipe, "", run, refused)
	_, err := pipe.Exec(ctx)
	return err
}

func storeOf(t testing.TB, client redis.UniversalClient) *bucket.Redis {
	t.Helper()
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: patience})
	require.NoError(t, err)
	return store
}

func reader(t testing.TB, client redis.UniversalClient) *redisusage.Reader {
	t.Helper()
	r, err := redisusage.NewReader(redisusage.Config{Client: client}, storeOf(t, client))
	require.NoError(t, err)
	return r
}

// scene is that of the contract. Instances write with one client, and the collector reads with another.
func scene(t *testing.T, writes, reads redis.UniversalClient) usagetest.Scene {
	t.Helper()
	return usagetest.Scene{
		Source: reader(t, reads), Store: storeOf(t, writes),
		Refuse: func(ctx context.Context, run string, refused []usage.Refused) error {
			return store(ctx, writes, run, refused)
		},
	}
}

func TestSourceContract(t *testing.T) {
	t.Parallel()
	usagetest.RunSource(t, func(t *testing.T) usagetest.Scene {
		t.Helper()
		client := redistest.Connect(t, redistest.Start(t).Addr)
		return scene(t, client, client)
	})
}

func cluster(t *testing.T, addrs []string, user string) redis.UniversalClient {
	t.Helper()
	cfg := redisclient.Config{Addresses: addrs, Cluster: true, Username: user}
	if user != "" {
		cfg.Password = "secret"
	}
	return redistest.ConnectWith(t, "", cfg)
}

// rights are those of the user that writes, and of the one that reads.
var rights = map[string]func(namespace string) ([]string, error){"limiter": report.ACLRules, "collector": redisusage.ACLRules}

// allow makes users with the rights that are documented.
func allow(t *testing.T, cluster bool, addrs ...string) {
	t.Helper()
	for user, rulesOf := range rights {
		rules, err := bucket.ACLRules("", cluster)
		require.NoError(t, err)
		more, err := rulesOf("")
		require.NoError(t, err)
		for _, addr := range addrs {
			args := []any{"ACL", "SETUSER", user, "on", ">secret"}
			for _, rule := range append(rules, more...) {
				args = append(args, rule)
			}
			require.NoError(t, plain(t, addr).Do(t.Context(), args...).Err())
		}
	}
}

func TestDocumentedRightsSuffice(t *testing.T) {
	t.Parallel()
	t.Run("one server", func(t *testing.T) {
		t.Parallel()
		usagetest.RunSource(t, func(t *testing.T) usagetest.Scene {
			t.Helper()
			addr := redistest.Start(t).Addr
			allow(t, false, addr)
			return scene(t, redistest.Connect(t, "redis://limiter:secret@"+addr), redistest.Connect(t, "redis://collector:secret@"+addr))
		})
	})
	t.Run("a cluster", func(t *testing.T) {
		t.Parallel()
		addrs := redistest.StartCluster(t).Addrs
		allow(t, true, addrs...)
		s := scene(t, cluster(t, addrs, "limiter"), cluster(t, addrs, "collector"))
		var want []bucket.UsageFound
		var refused []usage.Refused
		for i := range 300 {
			tenant := fmt.Sprint("tenant ", i)
			result, err := s.Store.Take(t.Context(), bucket.Take{
				Tenant: tenant, Amounts: bucket.Amounts{{Unit: bucket.Points, N: 1}}, Usage: &bucket.Usage{},
			})
			require.NoError(t, err)
			at, counted := result.Receipt.Counted()
			require.True(t, counted)
			want = append(want, bucket.UsageFound{Tenant: tenant, Hour: at.UTC().Truncate(time.Hour)})
			refused = append(refused, usage.Refused{Tenant: tenant, Limit: "blocked", Hour: want[0].Hour, N: 1})
		}
		for i := range 10 {
			require.NoError(t, s.Refuse(t.Context(), fmt.Sprintf("%016x", i), refused))
		}
		require.ElementsMatch(t, want, all(t, func(cursor string) ([]bucket.UsageFound, string, error) { return s.Source.Found(t.Context(), cursor) }))
		require.Len(t, all(t, func(cursor string) ([]usage.Refused, string, error) {
			return s.Source.Refused(t.Context(), want[0].Hour, cursor)
		}), 10*300)
	})
}

// all reads all pages.
func all[T any](t *testing.T, read func(cursor string) ([]T, string, error)) (items []T) {
	t.Helper()
	for cursor := ""; ; {
		page, next, err := read(cursor)
		require.NoError(t, err)
		items = append(items, page...)
		if next == "" {
			return items
		}
		cursor = next
	}
}

func TestEachRightIsNeeded(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t).Addr
	admin, ctx := plain(t, addr), t.Context()
	base, err := bucket.ACLRules("", false)
	require.NoError(t, err)
	// Budgets need some of them anyway.
	more := map[string][]string{}
	for user, rulesOf := range rights {
		more[user], err = rulesOf("")
		require.NoError(t, err)
	}
	use := func(without string) error {
		for user := range more {
			args := []any{"ACL", "SETUSER", user, "reset", "on", ">secret"}
			for _, rule := range slices.Concat(base, more[user]) {
				if rule != without {
					args = append(args, rule)
				}
			}
			require.NoError(t, admin.Do(ctx, args...).Err())
		}
		require.NoError(t, admin.ScriptFlush(ctx).Err())
		require.NoError(t, admin.FlushAll(ctx).Err())
		client := redistest.Connect(t, "redis://limiter:secret@"+addr)
		hour := time.Now().UTC().Truncate(time.Hour)
		err := store(ctx, client, run, []usage.Refused{{Tenant: "acme", Limit: "blocked", Hour: hour, N: 1}})
		if err == nil {
			_, err = storeOf(t, client).Take(ctx, bucket.Take{Tenant: "ac me", Usage: &bucket.Usage{}, Amounts: bucket.Amounts{{Unit: bucket.Points, N: 1}}})
		}
		if err != nil {
			return err
		}
		source := reader(t, redistest.Connect(t, "redis://collector:secret@"+addr))
		if _, err = source.Now(ctx); err != nil {
			return err
		}
		if _, _, err = source.Refused(ctx, hour, ""); err != nil {
			return err
		}
		found, _, err := source.Found(ctx, "")
		if err == nil && len(found) == 0 {
			err = redis.Nil
		}
		return err
	}
	require.NoError(t, use(""))
	for _, rule := range append(more["collector"], "+hset") {
		if strings.HasPrefix(rule, "+") {
			require.Error(t, use(rule), rule)
		}
	}
	_, err = redisusage.ACLRules("a:b")
	require.Error(t, err)
}
