package bucket_test

import (
	"context"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// A store for a million tenants with four limits each: of the entries three quarters are for owners, of the bytes five eighths.
func ExampleMemoryConfig() {
	store := bucket.NewMemory(bucket.MemoryConfig{MaxEntries: 1_400_000, MaxBytes: 200 << 20})

	limits, err := bucket.Compile(bucket.Limit{Name: "minute", Capacity: 1000, Period: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 1000 {
		_, err := store.Take(context.Background(), bucket.Take{
			Tenant:  fmt.Sprint("tenant-", i),
			Buckets: []bucket.Bucket{{Limits: limits}},
			Amounts: bucket.Amounts{{Unit: bucket.Points, N: 42}},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(store.Evicted(), "budgets made room before they were full")
	// Output: 0 budgets made room before they were full
}
