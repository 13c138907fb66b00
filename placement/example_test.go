package placement_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/placement"
)

// A tenant is in one of the stores. It starts full when the map says that it is in another one.
func ExampleStore() {
	ctx := context.Background()
	first := &placement.Map{Generation: 1, Candidates: 2, Stores: []placement.Member{{Name: "north"}, {Name: "south"}, {Name: "west"}}}
	store, err := placement.New(ctx, placement.Config{Open: func(context.Context, placement.Member) (placement.Opened, error) {
		return placement.Opened{Backend: bucket.NewMemory(bucket.MemoryConfig{})}, nil
	}}, first)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = store.Close() }()
	limits, err := bucket.Compile(bucket.Limit{Name: "day", Capacity: 100, Period: 24 * time.Hour})
	if err != nil {
		fmt.Println(err)
		return
	}
	take := bucket.Take{Tenant: "acme", Buckets: []bucket.Bucket{{Limits: limits}}, Amounts: bucket.Amounts{{Unit: bucket.Points, N: 60}}}
	result, err := store.Take(ctx, take)
	fmt.Println(store.Map().CandidatesOf("acme"), result.Verdict, err)

	drained := first.Next([]placement.Member{{Name: "north", Draining: true}, {Name: "south"}, {Name: "west"}})
	if err := store.Apply(ctx, drained); err != nil {
		fmt.Println(err)
		return
	}
	result, err = store.Take(ctx, take)
	fmt.Println(store.Map().CandidatesOf("acme"), result.Verdict, err)
	// Output:
	// [north west] admitted <nil>
	// [west south] admitted <nil>
}

// Who changes the map says which one it replaces.
func ExampleRecord_Publish() {
	drain := func(ctx context.Context, client redis.UniversalClient) error {
		record, err := placement.NewRecord(client, "main")
		if err != nil {
			return err
		}
		was, err := record.Newest(ctx)
		if err != nil {
			return err // placement.ErrEmpty: publish a first one with an expected generation of 0
		}
		next := was.Next([]placement.Member{
			{Name: "north-1", Address: "$REDIS_NORTH_1"},
			{Name: "north-2", Address: "$REDIS_NORTH_2", Draining: true},
			{Name: "south-1", Address: "$REDIS_SOUTH_1"},
		})
		return record.Publish(ctx, next, was.Generation)
	}
	fmt.Println(drain(context.Background(), nil))
	// Output:
	// placement: the client is nil: redisclient.Open makes one
}

// An instance follows the map that is published.
func ExampleStore_Follow() {
	serve := func(ctx context.Context, record *placement.Record, was *placement.Map) error {
		store, err := placement.New(ctx, placement.Config{Open: placement.OpenRedis(placement.RedisConfig{})}, was)
		if err != nil {
			return err
		}
		defer func() { _ = store.Close() }()
		go store.Follow(ctx, record, 0) // until ctx ends
		return nil
	}
	fmt.Println(serve(context.Background(), nil, &placement.Map{Generation: 1, Candidates: 1, Stores: []placement.Member{{Name: "north-1"}}}))
	// Output:
	// placement: generation 1 does not hold: the store north-1 is refused: it has no address
}
