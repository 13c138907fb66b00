package bucket_test

import (
	"context"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// Two instances of one shard take from what it leases of home.
func ExampleNewSharded() {
	// With Redis these are bucket.NewRedis: home is the same everywhere, and a shard that of some instances.
	home, shard := bucket.NewMemory(bucket.MemoryConfig{}), bucket.NewMemory(bucket.MemoryConfig{})
	limits, err := bucket.Compile(bucket.Limit{Name: "second", Capacity: 10_000, Refill: 10_000, Period: time.Second})
	if err != nil {
		panic(err)
	}
	take := bucket.Take{
		Tenant: "acme", Buckets: []bucket.Bucket{{Limits: limits}}, Amounts: bucket.Amounts{{Unit: bucket.Points, N: 5}}, Lease: bucket.LeaseAlways,
	}
	for range 2 {
		instance, err := bucket.NewSharded(home, shard, bucket.ShardedConfig{})
		if err != nil {
			panic(err)
		}
		// Run does so when home says that all instances can.
		instance.Allow(true)
		result, err := instance.Take(context.Background(), take)
		if err != nil {
			panic(err)
		}
		stats := instance.Stats()
		fmt.Println(result.Verdict, "by the shard:", stats.Admitted, "with exchanges:", stats.Exchanges)
	}
	// Output:
	// admitted by the shard: 1 with exchanges: 1
	// admitted by the shard: 1 with exchanges: 0
}
