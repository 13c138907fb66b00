package bucket_test

import (
	"context"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// A customer of 1 000 000 points in 30 days spends them, and changes to a plan of 1 000. What was spent comes back as
// fast as it was spent, until the smaller plan has room to charge it. Going back to the larger plan refills nothing.
func Example_planChange() {
	const month = 30 * 24 * time.Hour
	clock := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	store := bucket.NewMemory(bucket.MemoryConfig{Clock: func() time.Time { return clock }})
	large, err := bucket.Compile(bucket.Limit{Name: "month", Capacity: 1_000_000, Period: month})
	if err != nil {
		fmt.Println(err)
		return
	}
	small, err := bucket.Compile(bucket.Limit{Name: "month", Capacity: 1000, Period: month})
	if err != nil {
		fmt.Println(err)
		return
	}
	take := func(day int, plan *bucket.Limits, cost int64) {
		result, err := store.Take(context.Background(), bucket.Take{
			Tenant: "acme", Buckets: []bucket.Bucket{{Limits: plan}}, Amounts: bucket.Amounts{{Unit: bucket.Points, N: cost}},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		state := result.Limits[0]
		fmt.Printf("day %d: %d points under %d: %v, %d left, %d over\n", day, cost, state.Limit.Capacity, result.Verdict, state.Remaining, state.Overdraft)
	}

	take(0, large, 1_000_000)
	take(0, small, 1)
	take(0, large, 1)
	clock = clock.Add(15 * 24 * time.Hour)
	take(15, small, 1)
	clock = clock.Add(15 * 24 * time.Hour)
	take(30, small, 1000)
	// Output:
	// day 0: 1000000 points under 1000000: admitted, 0 left, 0 over
	// day 0: 1 points under 1000: limited, 0 left, 999000 over
	// day 0: 1 points under 1000000: limited, 0 left, 0 over
	// day 15: 1 points under 1000: limited, 0 left, 499000 over
	// day 30: 1000 points under 1000: admitted, 0 left, 0 over
}
