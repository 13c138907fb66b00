package bucket_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// A take of a tenant that is leased, of one limit and of three, beside one of a Memory without leases.
func BenchmarkLeased(b *testing.B) {
	second := bucket.Limit{Name: "second", Capacity: 1 << 40, Refill: 1 << 40, Period: time.Second}
	requests := second
	requests.Name, requests.Unit = "requests", bucket.Requests
	minute := bucket.Limit{Name: "minute", Capacity: 1 << 40, Period: time.Minute}
	for name, limits := range map[string][]bucket.Limit{"1 limit": {second}, "3 limits": {second, requests, minute}} {
		compiled, err := bucket.Compile(limits...)
		require.NoError(b, err)
		buckets, amounts := []bucket.Bucket{{Limits: compiled}}, bucket.Amounts{{Unit: bucket.Points, N: 7}, {Unit: bucket.Requests, N: 1}}
		memory := bucket.NewMemory(bucket.MemoryConfig{})
		leased, end := runLeased(b, memory)
		ctx := b.Context()
		for kind, store := range map[string]bucket.Store{"leased": leased, "memory": memory} {
			b.Run(kind+"/"+name, func(b *testing.B) {
				take := bucket.Take{
					Tenant: "acme", Buckets: buckets, Amounts: amounts, Lease: bucket.LeaseAlways, States: make([]bucket.LimitState, len(limits)),
				}
				b.ReportAllocs()
				began := processorTime()
				for b.Loop() {
					result, err := store.Take(ctx, take)
					if err != nil || result.Verdict != bucket.Admitted {
						b.Fatal(result.Verdict, err)
					}
				}
				// On a machine that does other work too it says more than the time that has passed.
				b.ReportMetric(float64(processorTime()-began)/float64(b.N), "cpu-ns/op")
			})
		}
		b.Logf("%+v", leased.Stats())
		end()
	}
}

// runLeased returns a Leased that runs until end is called.
func runLeased(b *testing.B, store bucket.LeaseStore) (leased *bucket.Leased, end func()) {
	b.Helper()
	leased = bucket.NewLeased(store, bucket.LeasedConfig{})
	leased.Allow(true)
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan struct{})
	go func() {
		leased.Run(ctx)
		close(ended)
	}()
	return leased, func() {
		cancel()
		<-ended
	}
}

// Takes of one tenant that is leased, by as many callers at once as there are processors.
func BenchmarkLeasedShared(b *testing.B) {
	limits, err := bucket.Compile(bucket.Limit{Name: "second", Capacity: 1 << 40, Refill: 1 << 40, Period: time.Second})
	require.NoError(b, err)
	buckets, amounts := []bucket.Bucket{{Limits: limits}}, bucket.Amounts{{Unit: bucket.Points, N: 7}}
	leased, end := runLeased(b, bucket.NewMemory(bucket.MemoryConfig{}))
	b.ReportAllocs()
	b.ResetTimer()
	began := processorTime()
	b.RunParallel(func(caller *testing.PB) {
		take := bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: amounts, Lease: bucket.LeaseAlways, States: make([]bucket.LimitState, 1)}
		for caller.Next() {
			if result, err := leased.Take(b.Context(), take); err != nil || result.Verdict != bucket.Admitted {
				b.Error(result.Verdict, err)
				return
			}
		}
	})
	b.ReportMetric(float64(processorTime()-began)/float64(b.N), "cpu-ns/op")
	end()
}
