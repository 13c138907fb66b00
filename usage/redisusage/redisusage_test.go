package redisusage_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
	"github.com/gqlgen-ratelimit/ratelimit/usage/redisusage"
	"github.com/gqlgen-ratelimit/ratelimit/usage/usagetest"
)

const (
	patience = 30 * time.Second
	soon     = 20 * time.Millisecond
	run      = "00000000000000b0"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// plain returns a client for the test itself, which may wait.
func plain(t testing.TB, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = client.Close() })
	return client
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
			return redisusage.WriteRefusals(ctx, redisusage.Config{Client: writes}, run, refused)
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

// allow makes users with the rights that are documented.
func allow(t *testing.T, cluster bool, addrs ...string) {
	t.Helper()
	for user, collects := range map[string]bool{"limiter": false, "collector": true} {
		rules, err := bucket.ACLRules("", cluster)
		require.NoError(t, err)
		more, err := redisusage.ACLRules("", collects)
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
	for user, collects := range map[string]bool{"limiter": false, "collector": true} {
		more[user], err = redisusage.ACLRules("", collects)
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
		err := redisusage.WriteRefusals(ctx, redisusage.Config{Client: client}, run, []usage.Refused{{Tenant: "acme", Limit: "blocked", Hour: hour, N: 1}})
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
	for _, rule := range slices.Concat(more["limiter"], more["collector"]) {
		if strings.HasPrefix(rule, "+") {
			require.Error(t, use(rule), rule)
		}
	}
	_, err = redisusage.ACLRules("a:b", false)
	require.Error(t, err)
}

func TestWriter(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	client := redistest.Connect(t, server.Addr)
	source, hour := reader(t, client), time.Now().UTC().Truncate(time.Hour)
	sum := func() (n int64) {
		for cursor := ""; ; {
			page, next, err := source.Refused(t.Context(), hour, cursor)
			if err != nil {
				return -1
			}
			for _, one := range page {
				n += one.N
			}
			if cursor = next; next == "" {
				return n
			}
		}
	}
	reaches := func(want int64) {
		t.Helper()
		require.Eventually(t, func() bool { return sum() == want }, patience, soon)
	}
	instances := make([]*usage.Refusals, 3)
	for i := range instances {
		instances[i] = new(usage.Refusals)
		w, err := redisusage.Start(redisusage.WriterConfig{Config: redisusage.Config{Client: client}, Refusals: instances[i], Logger: quiet})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, w.Close()) })
		for range 5 {
			instances[i].Add(hour, "acme", "blocked")
		}
	}
	reaches(15)
	server.Kill()
	for _, one := range instances {
		one.Add(hour, "acme", "blocked")
	}
	require.NoError(t, server.Restart())
	reaches(18)
}
