package bucket_test

import (
	"context"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// A region has 30 % of each limit for itself, and leases more of home.
func ExampleNewRegional() {
	// With a Redis each these are bucket.NewRedis: that of the region is near, and that of home is the same everywhere.
	region, home := bucket.NewMemory(bucket.MemoryConfig{}), bucket.NewMemory(bucket.MemoryConfig{})
	store, err := bucket.NewRegional(region, home, bucket.RegionalConfig{
		Region: "eu", Shares: map[string]int{"eu": 30, "us": 20},
	})
	if err != nil {
		panic(err)
	}
	limits, err := bucket.Compile(bucket.Limit{Name: "minute", Capacity: 1000, Period: time.Minute})
	if err != nil {
		panic(err)
	}
	// Without a lease there is the share.
	states, err := store.Peek(context.Background(), "acme", []bucket.Bucket{{Limits: limits}})
	if err != nil {
		panic(err)
	}
	fmt.Println(states[0].Remaining, "of", states[0].Limit.Capacity)
	// Output: 300 of 1000
}
