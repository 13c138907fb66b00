package bucket_test

import (
	"context"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// What is admitted is counted in the step that charges it.
func ExampleMemory_ReadUsage() {
	noon := time.Date(2026, time.November, 22, 12, 0, 0, 0, time.UTC)
	store := bucket.NewMemory(bucket.MemoryConfig{Clock: func() time.Time { return noon }})
	limits, err := bucket.Compile(bucket.Limit{Name: "minute", Capacity: 100, Period: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	take := bucket.Take{
		Tenant: "acme", Buckets: []bucket.Bucket{{Limits: limits}},
		Amounts: bucket.Amounts{{Unit: bucket.Points, N: 60}, {Unit: bucket.Requests, N: 1}},
		Usage:   &bucket.Usage{},
	}
	for range 2 {
		result, err := store.Take(ctx, take)
		fmt.Println(result.Verdict, err)
	}
	usage, err := store.ReadUsage(ctx, "acme", noon, bucket.UsageExact)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, count := range usage.Counts {
		fmt.Println(count.Unit, count.Net())
	}
	// Output:
	// admitted <nil>
	// limited <nil>
	// points 60
	// requests 1
}
