package bucket_test

import (
	"context"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// A tenant is leased, so that most takes do not ask the store.
func ExampleLeased() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	store := bucket.NewMemory(bucket.MemoryConfig{})
	leased := bucket.NewLeased(store, bucket.LeasedConfig{})
	// Every instance that shares the store is of this version.
	leased.Allow(true)
	go leased.Run(ctx)

	limits, err := bucket.Compile(bucket.Limit{Name: "minute", Capacity: 60_000, Period: time.Minute})
	if err != nil {
		panic(err)
	}
	for range 1000 {
		result, err := leased.Take(ctx, bucket.Take{
			Tenant: "acme", Buckets: []bucket.Bucket{{Limits: limits}},
			Amounts: bucket.Amounts{{Unit: bucket.Points, N: 7}}, Lease: bucket.LeaseAlways,
		})
		if err != nil || result.Verdict != bucket.Admitted {
			panic(fmt.Sprint(result.Verdict, err))
		}
	}
	fmt.Println("decided here:", leased.Stats().Admitted > 0)

	if err := leased.Shutdown(ctx); err != nil {
		panic(err)
	}
	// Output: decided here: true
}
