package redisusage_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
	"github.com/gqlgen-ratelimit/ratelimit/usage/redisusage"
	"github.com/gqlgen-ratelimit/ratelimit/usage/usagetest"
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

// instance starts to tell what a recorder has. It ends with the test.
func instance(t testing.TB, client redis.UniversalClient, name string) (*usage.Recorder, *redisusage.Writer) {
	t.Helper()
	r, err := usage.NewRecorder(usage.RecorderConfig{})
	require.NoError(t, err)
	w, err := redisusage.Start(redisusage.WriterConfig{
		Config: redisusage.Config{Client: client}, Recorder: r, Instance: name, Logger: quiet,
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.Close() })
	return r, w
}

// scene is that of the contract. Instances write with one client, and the collector reads with another.
func scene(t *testing.T, writes, reads redis.UniversalClient) usagetest.Scene {
	t.Helper()
	var mu sync.Mutex
	tellers := map[string]*redisusage.Teller{}
	return usagetest.Scene{
		Source: reader(t, reads), Store: storeOf(t, writes),
		Tell: func(ctx context.Context, told time.Time, instance, boot string, batch usage.Batch) error {
			mu.Lock()
			defer mu.Unlock()
			if tellers[boot] == nil {
				tellers[boot] = redisusage.NewTeller(redisusage.Config{Client: writes}, instance, boot)
			}
			return tellers[boot].Tell(ctx, told, batch)
		},
	}
}

func TestASourceInRedisKeepsTheContract(t *testing.T) {
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

func TestInstancesAndCollectorsNeedNoMoreRightsThanAreSaidAlsoInACluster(t *testing.T) {
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
		var want []usage.Counted
		now, err := s.Source.Now(t.Context())
		require.NoError(t, err)
		batch := usage.Batch{}
		for i := range 300 {
			tenant := fmt.Sprint("tenant ", i)
			result, err := s.Store.Take(t.Context(), bucket.Take{
				Tenant: tenant, Amounts: bucket.Amounts{{Unit: bucket.Points, N: 1}}, Usage: &bucket.Usage{},
			})
			require.NoError(t, err)
			at, counted := result.Receipt.Counted()
			require.True(t, counted)
			want = append(want, usage.Counted{Tenant: tenant, Hour: at.UTC().Truncate(time.Hour)})
			batch.Decisions = append(batch.Decisions, usage.Decisions{Tenant: tenant, Minute: now.UTC().Truncate(time.Minute), Numbers: usage.Numbers{Admitted: 1}})
		}
		batch.Counted = want
		for boot := range 10 {
			require.NoError(t, s.Tell(t.Context(), now, "instance", fmt.Sprintf("%016x", boot), batch))
		}
		require.ElementsMatch(t, want, all(t, func(cursor string) ([]usage.Counted, string, error) { return s.Source.Found(t.Context(), cursor) }))
		require.ElementsMatch(t, want, all(t, func(cursor string) ([]usage.Counted, string, error) {
			return s.Source.Counted(t.Context(), now, cursor)
		}))
		n := 0
		for _, r := range all(t, func(cursor string) ([]usage.Report, string, error) { return s.Source.Reports(t.Context(), now, cursor) }) {
			n += len(r.Decisions)
		}
		require.Equal(t, 10*300, n)
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
	admin := plain(t, addr)
	ctx := t.Context()
	base, err := bucket.ACLRules("", false)
	require.NoError(t, err)
	more, err := redisusage.ACLRules("", true)
	require.NoError(t, err)
	use := func(without string) error {
		args := []any{"ACL", "SETUSER", "collector", "reset", "on", ">secret"}
		for _, rule := range slices.Concat(base, more) {
			if rule != without {
				args = append(args, rule)
			}
		}
		require.NoError(t, admin.Do(ctx, args...).Err())
		require.NoError(t, admin.ScriptFlush(ctx).Err())
		require.NoError(t, admin.FlushAll(ctx).Err())
		client := redistest.Connect(t, "redis://collector:secret@"+addr)
		r, w := instance(t, client, "one")
		defer w.Kill()
		r.Count(event.Verdict{At: time.Now(), Tenant: "acme", Outcome: "admitted"})
		_, err := storeOf(t, client).Take(ctx, bucket.Take{Tenant: "ac me", Usage: &bucket.Usage{}, Amounts: bucket.Amounts{{Unit: bucket.Points, N: 1}}})
		r.CountUsage(event.UsageCounted{Tenant: "ac me", At: time.Now()})
		if err == nil {
			err = w.Write(ctx)
		}
		if err != nil {
			return err
		}
		source := reader(t, client)
		now, err := source.Now(ctx)
		if err != nil {
			return err
		}
		if _, _, err = source.Counted(ctx, now, ""); err != nil {
			return err
		}
		if _, _, err = source.Reports(ctx, now, ""); err != nil {
			return err
		}
		found, _, err := source.Found(ctx, "")
		if err == nil && len(found) == 0 {
			err = redis.Nil
		}
		return err
	}
	require.NoError(t, use(""))
	for _, rule := range more {
		if strings.HasPrefix(rule, "+") && rule != "+unlink" {
			require.Error(t, use(rule), rule)
		}
	}
	_, err = redisusage.ACLRules("a:b", false)
	require.Error(t, err)
}

func TestWhatInstancesTellIsThereWithinASecondOrSo(t *testing.T) {
	t.Parallel()
	client := redistest.Connect(t, redistest.Start(t).Addr)
	source := reader(t, client)
	for i := range 3 {
		r, _ := instance(t, client, fmt.Sprint("instance-", i))
		for range 5 {
			r.Count(event.Verdict{At: time.Now(), Tenant: "acme", Outcome: "admitted", Cost: 2})
		}
		r.CountUsage(event.UsageCounted{Tenant: "acme", At: time.Now()})
	}
	require.Eventually(t, func() bool {
		kept := collect(t, source)
		return kept.sum() == usage.Numbers{Admitted: 15, Points: 30} && len(kept.counted) == 1
	}, patience, soon)
}

// collector keeps what was told as the larger one of two numbers of a row.
type collector struct {
	rows    map[string]usage.Numbers
	counted map[usage.Counted]bool
}

func (c *collector) sum() (n usage.Numbers) {
	for _, row := range c.rows {
		n.Admitted, n.Points = n.Admitted+row.Admitted, n.Points+row.Points
	}
	return n
}

// collect reads the minutes that a test may have told in.
func collect(t *testing.T, source usage.Source) *collector {
	t.Helper()
	c := &collector{map[string]usage.Numbers{}, map[usage.Counted]bool{}}
	now, err := source.Now(t.Context())
	require.NoError(t, err)
	for told := now.Add(-5 * time.Minute); !told.After(now.Add(time.Minute)); told = told.Add(time.Minute) {
		for _, one := range all(t, func(cursor string) ([]usage.Counted, string, error) { return source.Counted(t.Context(), told, cursor) }) {
			c.counted[one] = true
		}
		for _, r := range all(t, func(cursor string) ([]usage.Report, string, error) { return source.Reports(t.Context(), told, cursor) }) {
			for _, d := range r.Decisions {
				if d.By != usage.ByTenant {
					continue
				}
				key := fmt.Sprint(r.Boot, d.Tenant, d.Minute.Unix())
				was := c.rows[key]
				c.rows[key] = usage.Numbers{Admitted: max(was.Admitted, d.Admitted), Points: max(was.Points, d.Points)}
			}
		}
	}
	return c
}

func TestWhileTheRedisIsAwayNumbersWaitAndNoRequestDoes(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	client := redistest.Connect(t, server.Addr)
	r, w := instance(t, client, "one")
	truth := int64(0)
	count := func() {
		r.Count(event.Verdict{At: time.Now(), Tenant: "acme", Outcome: "admitted", Cost: 1})
		r.CountUsage(event.UsageCounted{Tenant: "acme", At: time.Now()})
		truth++
	}
	count()
	w.Once(t.Context())
	server.Kill()
	for range 3 {
		count()
		require.Error(t, w.Write(t.Context()))
	}
	require.NoError(t, server.Restart())
	source := reader(t, client)
	require.Eventually(t, func() bool { return w.Write(t.Context()) == nil }, patience, soon)
	require.Equal(t, truth, collect(t, source).sum().Admitted)
	require.Zero(t, r.Losses().Lost)
}

func TestAnInstanceThatIsKilledLosesItsLastSecondAndTheStoreNothing(t *testing.T) {
	t.Parallel()
	client := redistest.Connect(t, redistest.Start(t).Addr)
	source, store := reader(t, client), storeOf(t, client)
	told, lost := int64(0), int64(0)
	truth := map[string]int64{}
	for boot := range 10 {
		r, w := instance(t, client, fmt.Sprint("instance-", boot))
		tenant := fmt.Sprint("tenant-", boot)
		for i := range 10 {
			result, err := store.Take(t.Context(), bucket.Take{Tenant: tenant, Amounts: bucket.Amounts{{Unit: bucket.Points, N: 3}}, Usage: &bucket.Usage{}})
			require.NoError(t, err)
			truth[tenant] += 3
			if i == 7 && boot%2 == 0 {
				require.NoError(t, w.Write(t.Context()))
				told, lost = told+7, lost-7
			}
			at, _ := result.Receipt.Counted()
			r.CountUsage(event.UsageCounted{Tenant: tenant, At: at})
			r.Count(event.Verdict{At: at, Tenant: tenant, Outcome: "admitted"})
			lost++
		}
		w.Kill()
	}
	kept := collect(t, source)
	require.GreaterOrEqual(t, kept.sum().Admitted, told)
	require.LessOrEqual(t, kept.sum().Admitted, told+lost)
	// What nobody told is found, so that what is billed is right.
	found := all(t, func(cursor string) ([]usage.Counted, string, error) { return source.Found(t.Context(), cursor) })
	counted := map[string]int64{}
	for _, c := range found {
		read, err := source.ReadUsage(t.Context(), c.Tenant, c.Hour, c.Grade)
		require.NoError(t, err)
		counted[c.Tenant] += read.Counts[0].Net()
	}
	require.Equal(t, truth, counted)
}

// BenchmarkWrite says what telling the usage of one busy second takes an instance: 500 operations of 200 tenants.
func BenchmarkWrite(b *testing.B) {
	server := redistest.Start(b)
	r, w := instance(b, plain(b, server.Addr), "busy")
	for b.Loop() {
		b.StopTimer()
		for i := range 500 {
			tenant := fmt.Sprint("tenant-", i%200)
			r.Count(event.Verdict{
				At: time.Now(), Tenant: tenant, User: fmt.Sprint("user-", i), Outcome: "admitted", RootFields: []string{"Query.search"}, Cost: 1,
			})
			r.CountUsage(event.UsageCounted{Tenant: tenant, At: time.Now()})
		}
		b.StartTimer()
		w.Once(b.Context())
	}
}
