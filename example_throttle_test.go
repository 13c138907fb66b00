package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/throttle"
	"github.com/gqlgen-ratelimit/ratelimit/throttle/redisthrottle"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const throttledPolicy = `version: 1
default: free
tiers:
  free:
    limits: {minute: {capacity: 1000, per: 1m}}
  pro:
    limits: {minute: {capacity: 10000, per: 1m}}
    throttle: {order: 2}
  enterprise:
    limits: {minute: {capacity: 100000, per: 1m}}
    throttle: {order: 3, floor: 60}
  internal:
    unlimited: true
    throttle: {acts: none}
`

// A fleet sheds one share of its load while a dependency is slow, the lowest tier first.
func ExampleThrottleConfig() {
	folder, err := os.MkdirTemp("", "throttle")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(folder) }()
	server, err := redistest.Launch(folder)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Kill()

	serve := func(ctx context.Context, client redis.UniversalClient) (err error) {
		store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Namespace: "shop"})
		if err != nil {
			return err
		}
		limits, err := tiers.Load([]byte(throttledPolicy), 1)
		if err != nil {
			return err
		}
		centre, err := redisthrottle.New(redisthrottle.Config{Client: client, Namespace: "shop"})
		if err != nil {
			return err
		}
		shedding, err := throttle.New(throttle.Config{
			Centre:  centre,
			Latency: 200 * time.Millisecond, // of the slowest hundredth of queries and mutations
		})
		if err != nil {
			return err
		}
		go func() { _ = shedding.Run(ctx) }()
		defer func() { err = errors.Join(err, shedding.Shutdown(context.WithoutCancel(ctx))) }()
		limiter := ratelimit.New(ratelimit.Config{
			Store: store, Policy: limits, Subject: ratelimit.ByHeader("X-API-Key", tenantOfKey),
			Throttle: ratelimit.ThrottleConfig{Throttle: shedding},
		})
		srv := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
		srv.AddTransport(transport.POST{})
		srv.Use(limiter)
		http.NewServeMux().Handle("/query", ratelimit.Handler(srv))
		fmt.Println("shed:", shedding.Status().Shed)
		return limiter.Shutdown(ctx)
	}
	client, err := redisclient.New(server.Addr)
	if err == nil {
		defer func() { _ = client.Close() }()
		err = serve(context.Background(), client)
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output: shed: 0
}
