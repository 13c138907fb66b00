package redisusage_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
	"github.com/gqlgen-ratelimit/ratelimit/usage/redisusage"
)

func one(n int64, minute time.Time) usage.Batch {
	return usage.Batch{Decisions: []usage.Decisions{{Tenant: "acme", Minute: minute, Numbers: usage.Numbers{Admitted: n}}}}
}

func TestAWriteThatComesAfterALaterOneChangesNothing(t *testing.T) {
	t.Parallel()
	client := redistest.Connect(t, redistest.Start(t).Addr)
	now := time.Now().Truncate(time.Minute).UTC()
	teller := redisusage.NewTeller(redisusage.Config{Client: client}, "one", "00000000000000b0")
	require.NoError(t, teller.Tell(t.Context(), now, one(3, now)))
	require.NoError(t, teller.Tell(t.Context(), now, one(8, now)))
	teller.Late(1)
	require.NoError(t, teller.Tell(t.Context(), now, one(3, now)))
	reports, _, err := reader(t, client).Reports(t.Context(), now, "")
	require.NoError(t, err)
	require.Equal(t, []usage.Report{{Instance: "one", Boot: "00000000000000b0", Decisions: one(8, now).Decisions}}, reports)
}

func TestWhatSomebodyHasWrittenThereIsLeftOut(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t).Addr
	client, test, ctx := redistest.Connect(t, addr), plain(t, addr), t.Context()
	now := time.Now().Truncate(time.Minute).UTC()
	minute := now.Unix() / 60
	const run = "00000000000000b0"
	require.NoError(t, redisusage.NewTeller(redisusage.Config{Client: client}, "one", run).Tell(ctx, now, usage.Batch{
		Decisions: one(3, now).Decisions, Counted: []usage.Counted{{Tenant: "acme", Hour: now.Truncate(time.Hour)}},
	}))
	hash := fmt.Sprintf("rl:main:usage:{%s}:%d", run, minute)
	for field, value := range map[string]string{
		"x": "{}", "12": "{}", "-1:a": "{}", "99999999999:a": "{}", "1:" + strings.Repeat("x", 5000): `{"d":[{"a":1}]}`,
		"1:long": strings.Repeat("x", 1<<20), "1:none": "no JSON", "1:many": `{"d":[{}` + strings.Repeat(",{}", 2000) + `]}`,
		"1:negative": `{"d":[{"a":-1}]}`, "1:dimension": `{"d":[{"b":99}]}`, "1:name": `{"d":[{"n":"` + strings.Repeat("x", 5000) + `"}]}`,
		"1:owner": `{"r":[{"o":"` + strings.Repeat("x", 5000) + `"}]}`,
	} {
		require.NoError(t, test.HSet(ctx, hash, field, value).Err())
	}
	for shard := range 16 {
		key := fmt.Sprintf("rl:main:usage:told:{%d:%d}", minute, shard)
		require.NoError(t, test.SAdd(ctx, key, "", "e", "x1:a", "e-1:a", "ex:a", "e1", "e1:"+strings.Repeat("x", 1<<20)).Err())
	}
	for i, run := range []string{"no run", "}:x{", strings.Repeat("f", 1<<16)} {
		require.NoError(t, test.ZAdd(ctx, "rl:main:usage", redis.Z{Score: float64(time.Now().Add(time.Hour).UnixMilli() + int64(i)), Member: run}).Err())
	}
	for key, value := range map[string]string{
		"rl:main:{x}:n2:": "", "rl:main:{x}:n2:-1": "", "rl:main:{x}:n2:1:u:exports": "", "rl:main:{a b}:n2:1": "", "rl:main:{~none}:n2:1": strings.Repeat("x", 1<<14),
		"rl:main:{x}:n2:99999999999": "", "rl:main:{}:l2:1": "", "rl:other:{x}:n2:1": "",
	} {
		require.NoError(t, test.Set(ctx, key, value, 0).Err())
	}
	require.NoError(t, test.LPush(ctx, "rl:main:{~list}:n2:1", "a list").Err())

	source := reader(t, client)
	reports := all(t, func(cursor string) ([]usage.Report, string, error) { return source.Reports(ctx, now, cursor) })
	require.Equal(t, []usage.Report{{Instance: "one", Boot: run, Decisions: one(3, now).Decisions}}, reports)
	counted := all(t, func(cursor string) ([]usage.Counted, string, error) { return source.Counted(ctx, now, cursor) })
	require.Equal(t, []usage.Counted{{Tenant: "acme", Hour: now.Truncate(time.Hour)}}, counted)
	require.Empty(t, all(t, func(cursor string) ([]usage.Counted, string, error) { return source.Found(ctx, cursor) }))
}

func TestWhatNobodyCollectsStaysWithinItsBytes(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t).Addr
	client := redistest.Connect(t, addr)
	const bytes, minutes = 1 << 20, 400
	now := time.Now().Truncate(time.Minute)
	teller := redisusage.NewBoundedTeller(redisusage.Config{Client: client}, "one", "00000000000000b0", bytes)
	for i := range minutes {
		told := now.Add(time.Duration(i) * time.Minute)
		batch := usage.Batch{}
		for tenant := range 20 {
			for name := range 20 {
				batch.Decisions = append(batch.Decisions, usage.Decisions{
					Tenant: fmt.Sprint("tenant-", tenant), Minute: told, By: usage.ByUser, Name: fmt.Sprint("user-", name), Numbers: usage.Numbers{Admitted: 1},
				})
			}
		}
		require.NoError(t, teller.Tell(t.Context(), told, batch))
		// Told again, it takes no more.
		require.NoError(t, teller.Tell(t.Context(), told, batch))
	}
	keys, err := plain(t, addr).Keys(t.Context(), "rl:main:usage:{*").Result()
	require.NoError(t, err)
	stored := int64(0)
	for _, key := range keys {
		size, err := plain(t, addr).MemoryUsage(t.Context(), key, 0).Result()
		require.NoError(t, err)
		stored += size
	}
	require.Less(t, stored, int64(3*bytes/2))
	require.Greater(t, stored, int64(bytes/3))
	require.Contains(t, keys, fmt.Sprintf("rl:main:usage:{00000000000000b0}:%d", now.Unix()/60+minutes-1), "the newest minutes are kept")
}

func TestEverythingThatIsToldHasALife(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t).Addr
	client := redistest.Connect(t, addr)
	r, w := instance(t, client, "one")
	r.Count(event.Verdict{At: time.Now(), Tenant: "acme", Outcome: "admitted"})
	r.CountUsage(event.UsageCounted{Tenant: "acme", At: time.Now()})
	require.NoError(t, w.Write(t.Context()))
	test := plain(t, addr)
	keys, err := test.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.Len(t, keys, 3)
	for _, key := range keys {
		life, err := test.PTTL(t.Context(), key).Result()
		require.NoError(t, err)
		require.Positive(t, life, key)
		require.LessOrEqual(t, life, usage.ReportLife, key)
	}
}

func TestEveryMistakeInAConfigurationIsReported(t *testing.T) {
	t.Parallel()
	_, err := redisusage.Start(redisusage.WriterConfig{Config: redisusage.Config{Namespace: "a:b"}, Instance: "\x00", Bytes: 1})
	for _, field := range []string{"Client", "Namespace", "Recorder", "Instance", "Bytes"} {
		require.ErrorContains(t, err, field)
	}
	_, err = redisusage.NewReader(redisusage.Config{}, nil)
	require.ErrorContains(t, err, "Client")
	require.ErrorContains(t, err, "store")
}
