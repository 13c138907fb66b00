package bucket_test

import (
	"context"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
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

// A plan is sold by the billing month, which begins on the 15th in Tokyo, beside a limit by the second
// that keeps its exports from coming all at once. The monthly quota is soft: more is charged, and billed.
func ExampleWindow() {
	limits, err := bucket.Compile(
		bucket.Limit{Name: "second", Capacity: 500, Period: time.Second},
		bucket.Limit{Name: "month", Capacity: 1000, Soft: true, Window: bucket.Window{
			Kind: bucket.MonthWindow, AnchorDay: 15, Zone: "Asia/Tokyo",
		}},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	clock := time.Date(2026, time.January, 10, 12, 0, 0, 0, time.UTC)
	store := bucket.NewMemory(bucket.MemoryConfig{Clock: func() time.Time { return clock }})
	for range 3 {
		result, err := store.Take(context.Background(), bucket.Take{
			Tenant: "acme", Buckets: []bucket.Bucket{{Limits: limits}}, Amounts: bucket.Amounts{{Unit: bucket.Points, N: 400}},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		month := &result.Limits[1]
		fmt.Println(result.Verdict, "with", month.Remaining, "left, over by", month.Overdraft,
			"until", time.UnixMilli(month.WindowEnd).UTC().Format(time.DateTime))
		clock = clock.Add(time.Second)
	}
	// Output:
	// admitted with 600 left, over by 0 until 2026-01-14 15:00:00
	// admitted with 200 left, over by 0 until 2026-01-14 15:00:00
	// admitted with 0 left, over by 200 until 2026-01-14 15:00:00
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

// Support raises a limit for a day. The next take of the tenant has it, in every replica.
func ExampleOverrideStore() {
	limits, _ := bucket.Compile(bucket.Limit{Name: "hour", Capacity: 1000, Period: time.Hour})
	store := bucket.NewMemory(bucket.MemoryConfig{})
	ctx := context.Background()

	record := bucket.Override{
		Limit: "hour", Capacity: 5000,
		Expires: time.Now().Add(24 * time.Hour),
		Reason:  "import of the old shop, ticket 17", Actor: "jo@example.com",
	}
	if _, err := record.Apply(limits); err != nil {
		fmt.Println(err) // says what would fit
		return
	}
	if _, err := store.SetOverride(ctx, "acme", record); err != nil {
		fmt.Println(err)
		return
	}
	result, _ := store.Take(ctx, bucket.Take{
		Tenant:  "acme",
		Buckets: []bucket.Bucket{{Limits: limits}},
		Amounts: bucket.Amounts{{Unit: bucket.Points, N: 1200}},
	})
	fmt.Println(result.Verdict, result.Limits[0].Limit.Capacity, result.Limits[0].Remaining)
	// Output: admitted 5000 3800
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
	client, err := redisclient.New("redis://127.0.0.1:6379")
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
