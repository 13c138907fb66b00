package redisdigest_test

import (
	"context"
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
	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/digest/redisdigest"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
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

// instance starts to write what a collector has. It ends with the test.
func instance(t testing.TB, client redis.UniversalClient, name string) (*digest.Collector, *redisdigest.Writer) {
	t.Helper()
	c, err := digest.New(digest.Config{})
	require.NoError(t, err)
	w, err := redisdigest.Start(redisdigest.WriterConfig{
		Config: redisdigest.Config{Client: client}, Collector: c, Instance: name, Logger: quiet,
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.Close() })
	return c, w
}

func reader(t testing.TB, client redis.UniversalClient) *redisdigest.Reader {
	t.Helper()
	r, err := redisdigest.NewReader(redisdigest.Config{Client: client})
	require.NoError(t, err)
	return r
}

func refused(id, tenant string) event.Decided {
	return event.Decided{At: time.Now(), RefusalID: id, Outcome: "limited", Tenant: tenant, Revision: 3}
}

func asked(tenant string) event.Verdict {
	return event.Verdict{At: time.Now(), Tenant: tenant, Outcome: "admitted", Cost: 2}
}

func chunks(t testing.TB, r *redisdigest.Reader, since time.Time) (all []digest.Chunk) {
	t.Helper()
	for chunk, err := range r.Chunks(t.Context(), since) {
		require.NoError(t, err)
		all = append(all, chunk)
	}
	return all
}

func testInstances(t *testing.T, client redis.UniversalClient) {
	t.Helper()
	r := reader(t, client)
	_, err := r.Refusal(t.Context(), "nobody has it")
	require.ErrorIs(t, err, redisdigest.ErrNotFound)
	none, err := r.Digests(t.Context())
	require.NoError(t, err)
	require.Empty(t, none)

	for i := range 5 {
		c, _ := instance(t, client, fmt.Sprint("instance-", i))
		for range i + 1 {
			c.Count(asked("acme"))
		}
		c.Observe(t.Context(), refused(fmt.Sprint("id-", i), "acme"))
	}
	require.Eventually(t, func() bool {
		all, err := r.Digests(t.Context())
		return err == nil && len(all) == 5 && digest.Merge(all).Recent.Decisions == 15
	}, patience, soon)
	for i := range 5 {
		found, err := r.Refusal(t.Context(), fmt.Sprint("id-", i))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint("instance-", i), found.Instance)
	}
	n := int64(0)
	for _, chunk := range chunks(t, r, time.Time{}) {
		for _, record := range chunk.Records {
			n += record.N
		}
	}
	require.Equal(t, int64(15), n)
	require.Empty(t, chunks(t, r, time.Now().Add(time.Minute)))
}

func TestWhatInstancesWriteIsReadFromAllOfThem(t *testing.T) {
	t.Parallel()
	testInstances(t, redistest.Connect(t, redistest.Start(t).Addr))
}

func TestInstancesOfAClusterAreInAllShards(t *testing.T) {
	t.Parallel()
	testInstances(t, redistest.ConnectWith(t, "", redisclient.Config{Addresses: redistest.StartCluster(t).Addrs, Cluster: true}))
}

func TestARefusalIsFoundAfterItsInstanceIsGone(t *testing.T) {
	t.Parallel()
	client := redistest.Connect(t, redistest.Start(t).Addr)
	c, w := instance(t, client, "gone")
	c.Count(asked("acme"))
	c.Observe(t.Context(), refused("last words", "acme"))
	require.NoError(t, w.Close())
	found, err := reader(t, client).Refusal(t.Context(), "last words")
	require.NoError(t, err)
	require.Equal(t, uint64(3), found.Decided.Revision)
	require.Len(t, chunks(t, reader(t, client), time.Time{}), 1)
	require.NoError(t, w.Close(), "again")
}

func TestAFlushedRedisGetsTheRefusalsBackAndARestartedOneTheDigest(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redistest.Connect(t, server.Addr)
	c, _ := instance(t, client, "one")
	c.Observe(t.Context(), refused("id", "acme"))
	r := reader(t, client)
	found := func() bool {
		_, err := r.Refusal(t.Context(), "id")
		return err == nil
	}
	require.Eventually(t, found, patience, soon)
	require.NoError(t, plain(t, server.Addr).FlushAll(t.Context()).Err())
	require.Eventually(t, found, patience, soon)
	server.Kill()
	c.Observe(t.Context(), refused("while it was away", "acme"))
	require.NoError(t, server.Restart())
	require.Eventually(t, func() bool {
		_, err := r.Refusal(t.Context(), "while it was away")
		return err == nil && found()
	}, patience, soon)
}

func TestWhatSomebodyHasWrittenThereIsSaidAndLeftOut(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client, test := redistest.Connect(t, server.Addr), plain(t, server.Addr)
	c, _ := instance(t, client, "good")
	c.Count(asked("acme"))
	c.Observe(t.Context(), refused("good", "acme"))
	r := reader(t, client)
	require.Eventually(t, func() bool {
		_, err := r.Refusal(t.Context(), "good")
		return err == nil
	}, patience, soon)
	ctx := context.Background()
	bad := []string{"0000000000000001", "0000000000000002", "0000000000000003", "no run", "}:x{", strings.Repeat("f", 1<<16)}
	for i, run := range bad {
		require.NoError(t, test.ZAdd(ctx, "rl:main:digest", redis.Z{Score: float64(time.Now().Add(time.Hour).UnixMilli() + int64(i)), Member: run}).Err())
	}
	base := "rl:main:digest:{"
	require.NoError(t, test.Set(ctx, base+bad[0]+"}", strings.Repeat("{", 8<<20), 0).Err())
	require.NoError(t, test.Set(ctx, base+bad[1]+"}", `{"version":1,"id":"another run"}`, 0).Err())
	require.NoError(t, test.LPush(ctx, base+bad[2]+"}", "a list").Err())
	require.NoError(t, test.HSet(ctx, base+bad[0]+"}:refusals", "good", strings.Repeat("x", 1<<20), "evil", strings.Repeat("x", 1<<20)).Err())
	require.NoError(t, test.HSet(ctx, base+bad[1]+"}:refusals", "good", `{"version":1,"decided":{"refusalId":"another"}}`).Err())
	require.NoError(t, test.RPush(ctx, base+bad[0]+"}:records", "no deflate", strings.Repeat("x", 1<<20)).Err())

	all, err := r.Digests(ctx)
	require.ErrorContains(t, err, "of 3 instances")
	require.Len(t, all, 1)
	require.Equal(t, "good", all[0].Instance)
	found, err := r.Refusal(ctx, "good")
	require.NoError(t, err)
	require.Equal(t, "acme", found.Decided.Tenant)
	_, err = r.Refusal(ctx, "evil")
	require.ErrorIs(t, err, digest.ErrUnreadable)
	_, err = r.Refusal(ctx, strings.Repeat("i", 1<<20))
	require.ErrorIs(t, err, redisdigest.ErrNotFound)
	good, unread := 0, 0
	for _, err := range r.Chunks(ctx, time.Time{}) {
		if err == nil {
			good++
		} else {
			require.ErrorIs(t, err, digest.ErrUnreadable)
			unread++
		}
	}
	require.Equal(t, []int{1, 2}, []int{good, unread})
}

func TestRecordsStayWithinTheirBytes(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redistest.Connect(t, server.Addr)
	c, err := digest.New(digest.Config{})
	require.NoError(t, err)
	w, err := redisdigest.Start(redisdigest.WriterConfig{
		Config: redisdigest.Config{Client: client}, Collector: c, RecordBytes: 16 << 10, Instance: "one", Logger: quiet,
	})
	require.NoError(t, err)
	defer func() { _ = w.Close() }()
	test := plain(t, server.Addr)
	var key string
	require.Eventually(t, func() bool {
		for i := range 60 {
			v := asked(fmt.Sprint("tenant-", i))
			v.User = fmt.Sprint(time.Now().UnixNano())
			v.RootFields = []string{fmt.Sprint("Query.field", time.Now().UnixNano())}
			c.Count(v)
		}
		w.Once(t.Context())
		keys, err := test.Keys(t.Context(), "rl:main:digest:{*:records").Result()
		if err != nil || len(keys) != 1 {
			return false
		}
		key = keys[0]
		n, err := test.LLen(t.Context(), key).Result()
		return err == nil && n > 3
	}, patience, time.Millisecond)
	for range 20 {
		for i := range 60 {
			v := asked(fmt.Sprint("tenant-", i))
			v.User = fmt.Sprint(time.Now().UnixNano())
			c.Count(v)
		}
		w.Once(t.Context())
	}
	parts, err := test.LRange(t.Context(), key, 0, -1).Result()
	require.NoError(t, err)
	require.LessOrEqual(t, len(strings.Join(parts, "")), 16<<10)
	require.Greater(t, len(parts), 2)
}

func TestAWriterAndAReaderNeedNoMoreRightsThanAreSaid(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	test := plain(t, server.Addr)
	rules, err := bucket.ACLRules("main", false)
	require.NoError(t, err)
	more, err := redisdigest.ACLRules("")
	require.NoError(t, err)
	args := []any{"ACL", "SETUSER", "limiter", "on", ">secret"}
	for _, rule := range append(rules, more...) {
		args = append(args, rule)
	}
	require.NoError(t, test.Do(t.Context(), args...).Err())
	client := redistest.Connect(t, "redis://limiter:secret@"+server.Addr)
	testInstances(t, client)
	_, err = redisdigest.ACLRules("a:b")
	require.Error(t, err)
}

func TestEveryMistakeInAConfigurationIsReported(t *testing.T) {
	t.Parallel()
	_, err := redisdigest.Start(redisdigest.WriterConfig{
		Config: redisdigest.Config{Namespace: "a:b"}, Instance: "\x00", Keep: time.Second, RecordBytes: 1,
	})
	for _, field := range []string{"Client", "Namespace", "Collector", "Instance", "Keep", "RecordBytes"} {
		require.ErrorContains(t, err, field)
	}
	_, err = redisdigest.NewReader(redisdigest.Config{})
	require.ErrorContains(t, err, "Client")
}

// used is the processor time that a Redis has taken, in seconds.
func used(b *testing.B, client *redis.Client) (seconds float64) {
	b.Helper()
	info, err := client.Info(b.Context(), "cpu").Result()
	require.NoError(b, err)
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_sys" || name == "used_cpu_user" {
			var n float64
			_, err := fmt.Sscan(value, &n)
			require.NoError(b, err)
			seconds += n
		}
	}
	return seconds
}

// BenchmarkFleet says which share of a processor a Redis takes for a hundred instances, each of which decides fifty operations a second.
func BenchmarkFleet(b *testing.B) {
	server := redistest.Start(b)
	test := plain(b, server.Addr)
	var all []*digest.Collector
	for i := range 100 {
		c, _ := instance(b, test, fmt.Sprint("instance-", i))
		all = append(all, c)
	}
	before, seconds := used(b, test), 0
	for b.Loop() {
		for _, c := range all {
			for i := range 50 {
				v := asked(fmt.Sprint("tenant-", i))
				v.User, v.RootFields = fmt.Sprint("user-", i), []string{"Query.search"}
				c.Count(v)
			}
			c.Observe(b.Context(), refused(fmt.Sprint("id-", seconds), "tenant-1"))
		}
		seconds++
		<-time.After(time.Second)
	}
	b.ReportMetric(100*(used(b, test)-before)/float64(seconds), "redis-%")
}

// BenchmarkWrite says what writing the digest of one busy second takes an instance and its Redis.
func BenchmarkWrite(b *testing.B) {
	server := redistest.Start(b)
	test := plain(b, server.Addr)
	c, w := instance(b, test, "busy")
	fill := func(n int) {
		for i := range 500 {
			v := asked(fmt.Sprint("tenant-", i%200))
			v.User, v.RootFields = fmt.Sprint("user-", i), []string{"Query.search"}
			c.Count(v)
		}
		for i := range 10 {
			c.Observe(b.Context(), refused(fmt.Sprint("id-", n, "-", i), fmt.Sprint("tenant-", i)))
		}
	}
	before, n := used(b, test), 0
	for b.Loop() {
		b.StopTimer()
		fill(n)
		n++
		b.StartTimer()
		w.Once(b.Context())
	}
	b.ReportMetric((used(b, test)-before)*1e6/float64(b.N), "redis-µs/op")
	keys, err := test.Keys(b.Context(), "rl:main:digest*").Result()
	require.NoError(b, err)
	stored := int64(0)
	for _, key := range keys {
		size, err := test.MemoryUsage(b.Context(), key, 0).Result()
		require.NoError(b, err)
		stored += size
	}
	b.ReportMetric(float64(stored), "stored-B")
}
