package ratelimit_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/event/redisstream"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// askOnce has a server with a configuration refuse somebody.
func askOnce(cfg ratelimit.Config) (id string, err error) {
	limits, err := tiers.Load([]byte(reportedPolicy), 1)
	if err != nil {
		return "", err
	}
	cfg.Store, cfg.Policy = bucket.NewMemory(bucket.MemoryConfig{}), limits
	cfg.Subject = func(context.Context, *ratelimit.Request) (ratelimit.Subject, error) {
		return ratelimit.Subject{Tenant: "acme"}, nil
	}
	srv := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
	srv.AddTransport(transport.POST{})
	srv.Use(ratelimit.New(cfg))
	return askToBeRefused(ratelimit.Handler(srv))
}

// A server brings its refusals to a stream of Redis, where a consumer finds them under the ids that clients were given.
func Example_streams() {
	folder, err := os.MkdirTemp("", "streams")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(folder) }()
	redisServer, err := redistest.Launch(folder)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer redisServer.Kill()

	serve := func(client redis.UniversalClient) error {
		sink, err := redisstream.New(redisstream.Config{Client: client, Namespace: "shop"})
		if err != nil {
			return err
		}
		events, err := stream.Start(stream.Config{Sink: sink, Namespace: "shop"})
		if err != nil {
			return err
		}

		id, err := askOnce(ratelimit.Config{
			Observe: ratelimit.ObserveConfig{Observer: event.All(events, event.NewLogger(nil))},
		})
		if err != nil {
			return err
		}

		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := events.Close(ctx); err != nil {
			log.Print(err) // how many were not sent
		}

		entries, err := client.XRange(ctx, redisstream.Key("shop", "ratelimit.denials"), "-", "+").Result()
		if err != nil {
			return err
		}
		for _, entry := range entries {
			e, err := redisstream.Decode("ratelimit.denials", entry)
			if err != nil {
				return err
			}
			fmt.Println(e.Type, "of", e.Subject, e.ID == id)
		}
		return nil
	}
	client, err := redisclient.New(redisServer.Addr)
	if err == nil {
		defer func() { _ = client.Close() }()
		err = serve(client)
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// ratelimit.decision.refused.v1 of acme true
}
