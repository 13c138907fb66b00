package ratelimit_test

import (
	"context"
	"fmt"
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
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
	"github.com/gqlgen-ratelimit/ratelimit/usage/redisusage"
)

const countedPolicy = `version: 1
default: free
tiers:
  free:
    usage: totals
    limits:
      minute: {capacity: 100, per: 1m}
`

// usageOf answers one operation of a tenant and refuses another one, and reads what was counted.
func usageOf(ctx context.Context, client redis.UniversalClient) error {
	policy, err := tiers.Load([]byte(countedPolicy), 1)
	if err != nil {
		return err
	}
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Namespace: "shop", Timeout: 10 * time.Second})
	if err != nil {
		return err
	}
	cfg := ratelimit.Config{
		Store: store, Policy: policy,
		Subject: func(context.Context, *ratelimit.Request) (ratelimit.Subject, error) {
			return ratelimit.Subject{Tenant: "acme"}, nil
		},
	}
	reporter, err := report.Start(report.Config{Place: report.Place{Client: client, Namespace: "shop"}})
	if err != nil {
		return err
	}
	defer func() { _ = reporter.Close() }()
	cfg.Observe.Observer = reporter

	srv := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
	srv.AddTransport(transport.POST{})
	srv.Use(ratelimit.New(cfg))
	for range 2 {
		// Both ask for 62 points.
		_, _ = askToBeRefused(ratelimit.Handler(srv))
	}
	// It writes each second, and when it ends.
	_ = reporter.Close()

	source, err := redisusage.NewReader(redisusage.Config{Client: client, Namespace: "shop"}, store)
	if err != nil {
		return err
	}
	found, _, err := source.Found(ctx, "")
	if err != nil {
		return err
	}
	var points, requests, refused int64
	for _, hour := range found {
		read, err := source.ReadUsage(ctx, hour.Tenant, hour.Hour, hour.Grade)
		if err != nil {
			return err
		}
		points, requests = points+read.Counts[0].Net(), requests+read.Counts[1].Net()
	}
	// The hour may have ended in the middle.
	for _, hour := range []time.Time{time.Now().Add(-time.Hour), time.Now()} {
		rows, _, err := source.Refused(ctx, hour, "")
		if err != nil {
			return err
		}
		for _, row := range rows {
			refused += row.N
		}
	}
	fmt.Println(points, "points,", requests, "admitted,", refused, "refused")
	return nil
}

// A server counts what it charges in the store, and what it refuses by the hour. A collector reads both.
func Example_usage() {
	folder, err := os.MkdirTemp("", "usage")
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
	client, err := redisclient.New(redisServer.Addr)
	if err == nil {
		defer func() { _ = client.Close() }()
		err = usageOf(context.Background(), client)
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// 62 points, 1 admitted, 1 refused
}
