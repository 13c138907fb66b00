package bucket_test

import (
	"context"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// A tenant has two limits. The second take is refused by one of them and charges neither.
func Example() {
	limits, err := bucket.Compile(
		bucket.Limit{Name: "second", Capacity: 100, Period: time.Second},
		bucket.Limit{Name: "minute", Capacity: 1000, Period: time.Minute},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	clock := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	store := bucket.NewMemory(bucket.MemoryConfig{Clock: func() time.Time { return clock }})

	for _, cost := range []int64{80, 42} {
		result, err := store.Take(context.Background(), bucket.Take{
			Tenant:  "acme",
			Buckets: []bucket.Bucket{{Limits: limits}},
			Amounts: bucket.Amounts{{Unit: bucket.Points, N: cost}},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(result.Verdict, "retry after", result.RetryAfter)
		for _, state := range result.Limits {
			fmt.Println(" ", state.Limit.Name, "has", state.Remaining, "left and is full in", state.ResetAfter)
		}
	}
	// Output:
	// admitted retry after 0s
	//   second has 20 left and is full in 800ms
	//   minute has 920 left and is full in 4.8s
	// limited retry after 220ms
	//   second has 20 left and is full in 800ms
	//   minute has 920 left and is full in 4.8s
}

// What an operation was worth is known after it ran: the difference is given back.
func ExampleStore_settle() {
	limits, _ := bucket.Compile(bucket.Limit{Name: "hour", Capacity: 1000, Period: time.Hour})
	store := bucket.NewMemory(bucket.MemoryConfig{})
	ctx := context.Background()

	result, _ := store.Take(ctx, bucket.Take{
		Tenant:  "acme",
		Buckets: []bucket.Bucket{{Limits: limits}},
		Amounts: bucket.Amounts{{Unit: bucket.Points, N: 400}},
	})
	settled, _ := store.Settle(ctx, bucket.Settlement{
		Receipt: result.Receipt,
		Actual:  bucket.Amounts{{Unit: bucket.Points, N: 150}},
	})
	fmt.Println(settled.Applied, settled.Limits[0].Remaining)
	// Output: true 850
}

// Mistakes are reported all at once, and say what would fit.
func ExampleCompile_mistakes() {
	_, err := bucket.Compile(
		bucket.Limit{Name: "second", Capacity: 0, Period: time.Second},
		bucket.Limit{Name: "minute", Capacity: 10, Period: 90 * time.Microsecond},
	)
	fmt.Println(err)
	// Output:
	// bucket: limit "second": the capacity is 0; at least 1 fits
	// bucket: limit "minute": the period is 90µs; at least 1ms fits
}

// Several replicas share their budgets in Redis. The client's calls end when their deadline does.
func ExampleNewRedis() {
	client, err := bucket.NewClient("redis://127.0.0.1:6379")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close() }()
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Namespace: "shop"})
	if err != nil {
		fmt.Println(err)
		return
	}
	var _ bucket.Store = store
	fmt.Println("nothing has been connected yet")
	// Output: nothing has been connected yet
}
