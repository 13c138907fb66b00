package bucket_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/fleet"
)

// BenchmarkLocal is what the fail mode local costs: where no limit has it, where the store answers, and where it
// does not.
func BenchmarkLocal(b *testing.B) {
	ctx := context.Background()
	var limits []bucket.Limit
	for name, period := range map[string]time.Duration{
		"second": time.Second, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour,
	} {
		limits = append(limits, bucket.Limit{Name: name, Capacity: 1 << 30, Refill: 1 << 20, Period: period})
	}
	bounded := compile(b, limits...)
	for i := range limits {
		limits[i].FailMode = bucket.FailLocal
	}
	local := compile(b, limits...)
	store := bucket.NewMemory(bucket.MemoryConfig{})
	judge, err := bucket.NewLocal(store, fleet.Config{Instances: 2})
	require.NoError(b, err)
	for _, bench := range []struct {
		name   string
		limits *bucket.Limits
	}{{"learn limits that fail bounded", bounded}, {"learn four limits", local}} {
		b.Run(bench.name, func(b *testing.B) {
			take := bucket.Take{Tenant: "acme", Buckets: []bucket.Bucket{{Limits: bench.limits}}, Amounts: points(1)}
			result, err := store.Take(ctx, take)
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				judge.Learn(&take, &result)
			}
		})
	}
	b.Run("take four limits", func(b *testing.B) {
		take := bucket.Take{
			Tenant: "acme", Buckets: []bucket.Bucket{{Limits: local}}, Amounts: points(1), States: make([]bucket.LimitState, 4),
		}
		b.ReportAllocs()
		for b.Loop() {
			judge.Take(&take, false)
		}
	})
}
