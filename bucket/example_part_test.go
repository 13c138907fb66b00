package bucket_test

import (
	"context"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// One bucket for each account that somebody tries to log in to, asked for as many attempts as an operation makes.
func ExampleOwner() {
	ctx := context.Background()
	store := bucket.NewMemory(bucket.MemoryConfig{})
	limits, mistakes := bucket.Compile(bucket.Limit{Name: "account", Unit: bucket.Requests, Capacity: 5, Period: time.Hour})
	if mistakes != nil {
		fmt.Println(mistakes)
		return
	}
	part := "across:6c0f0a3a"
	attempt := func(times int64) {
		result, err := store.Take(ctx, bucket.Take{Tenant: "", Buckets: []bucket.Bucket{{
			Owner:  bucket.Owner{Level: bucket.Operation, Name: "Mutation.login", Part: part},
			Limits: limits, Amounts: bucket.Amounts{{Unit: bucket.Requests, N: times}},
		}}})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(result.Verdict, "after", times, "left", result.Limits[0].Remaining)
	}
	attempt(3)
	attempt(3)
	_, err := store.SetOverride(ctx, "", bucket.Override{
		Owner: bucket.Owner{Level: bucket.Operation, Name: "Mutation.login", Part: part},
		Limit: "account", Capacity: 100, Expires: time.Now().Add(time.Hour),
		Reason: "locked out by a guesser, ticket 19", Actor: "jo@example.com",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	attempt(3)
	// Output:
	// admitted after 3 left 2
	// limited after 3 left 2
	// admitted after 3 left 94
}
