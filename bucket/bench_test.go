package bucket_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// busyLimits have room for any benchmark and refill so slowly that no state expires meanwhile.
func busyLimits(b *testing.B) *bucket.Limits {
	b.Helper()
	var limits []bucket.Limit
	for name, period := range map[string]time.Duration{
		"second": time.Second, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour,
	} {
		limits = append(limits, bucket.Limit{Name: name, Capacity: 1 << 30, Refill: 1 << 20, Period: period})
	}
	return compile(b, limits...)
}

func BenchmarkMemoryTakeFourLimits(b *testing.B) {
	ctx := context.Background()
	store := bucket.NewMemory(bucket.MemoryConfig{})
	take := bucket.Take{
		Tenant: "acme", Buckets: []bucket.Bucket{{Limits: busyLimits(b)}}, Amounts: points(1),
		States: make([]bucket.LimitState, 4),
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := store.Take(ctx, take); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMemory has takes that are not the usual one.
func BenchmarkMemory(b *testing.B) {
	ctx := context.Background()
	four := busyLimits(b)
	window := compile(b, bucket.Limit{Name: "hour", Capacity: 1 << 29, Period: time.Hour, Window: bucket.Window{Kind: bucket.SlidingWindow}},
		bucket.Limit{Name: "day", Capacity: 1 << 30, Window: bucket.Window{Kind: bucket.DayWindow}})
	owners := []bucket.Bucket{{Limits: four}}
	for _, owner := range []bucket.Owner{{Level: bucket.Team, Name: "core"}, {Level: bucket.User, Name: "ann"}} {
		owners = append(owners, bucket.Bucket{Owner: owner, Limits: four})
	}
	candidate := &bucket.Candidate{ID: "next", Buckets: owners[:1]}
	for _, bench := range []struct {
		name  string
		take  bucket.Take
		keyed bool
	}{
		{name: "three owners of four limits", take: bucket.Take{Buckets: owners, Amounts: points(1)}},
		{name: "refused", take: bucket.Take{Buckets: owners[:1], Amounts: points(1 << 40)}},
		{name: "refused until it is paid back", take: bucket.Take{Buckets: []bucket.Bucket{{Limits: fourLimits(b, 100)}}, Amounts: points(70)}},
		{name: "windows", take: bucket.Take{Buckets: []bucket.Bucket{{Limits: window}}, Amounts: points(1)}},
		{name: "with a key", take: bucket.Take{Buckets: owners[:1], Amounts: points(1)}, keyed: true},
		{name: "with a candidate", take: bucket.Take{Buckets: owners[:1], Candidate: candidate, Amounts: points(1)}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			store, keys := bucket.NewMemory(bucket.MemoryConfig{}), 0
			bench.take.States = make([]bucket.LimitState, 12)
			b.ReportAllocs()
			for b.Loop() {
				if bench.keyed {
					keys++
					bench.take.Claim = &idempotency.Claim{Key: idempotency.Key(fmt.Sprintf("%08d", keys)), Attempt: idempotency.NewAttemptID(), TTL: time.Minute}
				}
				if _, err := store.Take(ctx, bench.take); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRedis compares decisions with the cheapest script there is, in one run: read the ratios.
func BenchmarkRedis(b *testing.B) {
	ctx := context.Background()
	client := patientClient(b, redistest.Start(b).Addr)
	store := newRedisStore(b, client)
	one := redis.NewScript("return 1")
	require.NoError(b, one.Load(ctx, client).Err())
	var owners []bucket.Bucket
	for _, owner := range []bucket.Owner{{}, {Level: bucket.Team, Name: "core"}, {Level: bucket.User, Name: "ann"}} {
		owners = append(owners, bucket.Bucket{Owner: owner, Limits: busyLimits(b)})
	}
	keys := 0
	take := func(take bucket.Take, keyed bool) func(*testing.B) error {
		return func(*testing.B) error {
			if keyed {
				keys++
				take.Claim = &idempotency.Claim{Key: idempotency.Key(fmt.Sprintf("%08d", keys)), Attempt: idempotency.NewAttemptID(), TTL: time.Minute}
			}
			_, err := store.Take(ctx, take)
			return err
		}
	}
	for _, bench := range []struct {
		name string
		call func(*testing.B) error
	}{
		{"return 1", func(*testing.B) error { return one.EvalSha(ctx, client, []string{"x"}).Err() }},
		{"take four limits", take(bucket.Take{Tenant: "a", Buckets: owners[:1], Amounts: points(1)}, false)},
		{"take four limits refused", take(bucket.Take{Tenant: "a", Buckets: owners[:1], Amounts: points(1 << 40)}, false)},
		{"take three owners of four limits with a key", take(bucket.Take{Tenant: "b", Buckets: owners, Amounts: points(1)}, true)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			require.NoError(b, client.ConfigResetStat(ctx).Err())
			b.ReportAllocs()
			for b.Loop() {
				if err := bench.call(b); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			reportScriptTime(b, client)
		})
	}
}

// reportScriptTime reports the time of the server for each script, which the network is no part of.
func reportScriptTime(b *testing.B, client *redis.Client) {
	b.Helper()
	stats, err := client.InfoMap(context.Background(), "commandstats").Result()
	require.NoError(b, err)
	b.Log(stats["Commandstats"]["cmdstat_evalsha"])
}
