package mongofeed_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/mongofeed"
	"github.com/gqlgen-ratelimit/ratelimit/contrib/mongofeed/internal/ferrettest"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// serve calls what an example does with a server of its own.
func serve(example func(ctx context.Context, uri, lastGood string) error) error {
	folder, err := os.MkdirTemp("", "policy")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	server, err := ferrettest.Launch(program, folder)
	if err != nil {
		return err
	}
	defer func() { _ = server.Stop() }()
	return example(context.Background(), server.URI, filepath.Join(folder, "policy.revision"))
}

// Revisions that are published, and followed by an instance.
func ExampleNew() {
	err := serve(func(ctx context.Context, uri, lastGood string) error {
		client, err := mongo.Connect(options.Client().ApplyURI(uri))
		if err != nil {
			return err
		}
		defer func() { _ = client.Disconnect(ctx) }()
		feed, err := mongofeed.New(mongofeed.Config{Collection: client.Database("ratelimit").Collection("policies")})
		if err != nil {
			return err
		}
		document := []byte("{version: 1, default: free, tiers: {free: {maxCost: 500}}}")
		next := &policy.Revision{Number: 1, Document: document, Hash: policy.HashOf(document), Author: "ada", Published: time.Now()}
		if err := feed.Publish(ctx, next, 0); err != nil {
			return err // policy.ErrConflict: read what is there, and decide again
		}
		follower, err := policy.Follow(ctx, feed, policy.Config{
			Interval: 2 * time.Second,
			LastGood: lastGood, // such as /var/lib/shop/policy.revision
			Observe:  policy.ObserveConfig{Logger: quiet},
		})
		if err != nil {
			return err
		}
		defer func() { _ = follower.Close() }()
		fmt.Println("revision", follower.Status().Number, "is", follower.Status().State)

		second := &policy.Revision{Number: 1, Document: []byte(translated), Hash: policy.HashOf([]byte(translated))}
		fmt.Println("somebody was faster:", errors.Is(feed.Publish(ctx, second, 0), policy.ErrConflict))
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// revision 1 is current
	// somebody was faster: true
}

// A document with the limits of a service, as somebody else writes it.
func ExampleNewLimits() {
	err := serve(func(ctx context.Context, uri, lastGood string) error {
		client, err := mongo.Connect(options.Client().ApplyURI(uri))
		if err != nil {
			return err
		}
		defer func() { _ = client.Disconnect(ctx) }()
		collection := client.Database("gateway").Collection("limits")
		_, err = collection.InsertOne(ctx, bson.M{
			"service":        "shop",
			"general_limits": bson.M{"minute": 100, "day": 10_000},
			"custom_limits":  bson.M{"tenant:acme": bson.M{"minute": 500}},
			"last_updated":   time.Now(),
		})
		if err != nil {
			return err
		}
		limits, err := mongofeed.NewLimits(mongofeed.LimitsConfig{Collection: collection, Service: "shop"})
		if err != nil {
			return err
		}
		follower, err := policy.Follow(ctx, limits, policy.Config{
			Interval: 30 * time.Second, // how soon a change is there, where the server has no change streams
			LastGood: lastGood,
			Observe:  policy.ObserveConfig{Logger: quiet},
		})
		if err != nil {
			return err
		}
		defer func() { _ = follower.Close() }()
		for _, tenant := range []string{"acme", "globex"} {
			rules := follower.Snapshot().Rules(tiers.Subject{Tenant: tenant}, tiers.Selection{})
			for _, limit := range rules.Buckets[0].Limits.All() {
				fmt.Println(tenant, limit.Capacity, limit.Unit, "per", limit.Period)
			}
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// acme 500 requests per 1m0s
	// acme 10000 requests per 24h0m0s
	// globex 100 requests per 1m0s
	// globex 10000 requests per 24h0m0s
}
