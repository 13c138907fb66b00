package ratelimittest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
)

func ExampleStore() {
	clock := &ratelimittest.Clock{}
	store := ratelimittest.NewStore(clock)

	// Here stands what is under test: a server that takes from the store.
	limits, _ := bucket.Compile(bucket.Limit{Name: "minute", Capacity: 60, Period: time.Minute})
	request := func() {
		result, err := store.Take(context.Background(), bucket.Take{
			Tenant:  "acme",
			Buckets: []bucket.Bucket{{Limits: limits}},
			Amounts: bucket.Amounts{{Unit: bucket.Points, N: 50}},
		})
		fmt.Println(result.Verdict, err)
	}
	request()
	request()
	clock.Advance(40 * time.Second)
	request()
	store.Fail(bucket.ErrUnavailable)
	request()
	fmt.Println(len(store.Takes()), "takes, the first of tenant", store.Takes()[0].Tenant)
	// Output:
	// admitted <nil>
	// limited <nil>
	// admitted <nil>
	// unknown bucket: store unavailable
	// 4 takes, the first of tenant acme
}
