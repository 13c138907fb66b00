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
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
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

// usageOf answers one operation of a tenant, and tells of it.
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
	recorder, err := usage.NewRecorder(usage.RecorderConfig{})
	if err != nil {
		return err
	}
	writer, err := redisusage.Start(redisusage.WriterConfig{
		Config:   redisusage.Config{Client: client, Namespace: "shop"},
		Recorder: recorder,
	})
	if err != nil {
		return err
	}
	defer func() { _ = writer.Close() }()
	cfg.Observe.Observer = event.All(recorder)

	srv := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
	srv.AddTransport(transport.POST{})
	srv.Use(ratelimit.New(cfg))
	for range 2 {
		// Both ask for 62 points.
		_, _ = askToBeRefused(ratelimit.Handler(srv))
	}
	// It writes each second, and when it ends.
	_ = writer.Close()

	source, err := redisusage.NewReader(redisusage.Config{Client: client, Namespace: "shop"}, store)
	if err != nil {
		return err
	}
	now, err := source.Now(ctx)
	if err != nil {
		return err
	}
	points, minutes := map[usage.Counted]int64{}, map[time.Time]usage.Numbers{}
	for _, told := range []time.Time{now.Add(-time.Minute), now} {
		counted, _, err := source.Counted(ctx, told, "")
		if err != nil {
			return err
		}
		for _, c := range counted {
			read, err := source.ReadUsage(ctx, c.Tenant, c.Hour, c.Grade)
			if err != nil {
				return err
			}
			points[c] = read.Counts[0].Net()
		}
		reports, _, err := source.Reports(ctx, told, "")
		if err != nil {
			return err
		}
		for _, report := range reports {
			for _, d := range report.Decisions {
				if d.By == usage.ByTenant {
					// It only grows, so that what is told later is the larger one.
					minutes[d.Minute] = d.Numbers
				}
			}
		}
	}
	var spent, admitted, refused int64
	for _, n := range points {
		spent += n
	}
	for _, n := range minutes {
		admitted, refused = admitted+n.Admitted, refused+n.Refused
	}
	fmt.Println(spent, "points,", admitted, "admitted,", refused, "refused")
	return nil
}

// A server counts what it charges, and tells a collector whose counts have changed and what it has decided.
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
