package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
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
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

const reportedPolicy = `version: 1
default: free
tiers:
  free:
    limits:
      minute: {capacity: 100, per: 1m}
tenants:
  acme:
    limits:
      minute: {capacity: 40, per: 1m}
`

// ask sends the operation of a client that is refused, and returns the id that it is given.
func askToBeRefused(server http.Handler) (string, error) {
	r := httptest.NewRequest(http.MethodPost, "/query", strings.NewReader(`{"query": "{ users(first: 60) { name } }"}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	response, err := ratelimitclient.FromResponse(w.Body.Bytes())
	if err != nil || response.Refusal == nil {
		return "", errors.Join(errors.New("it was not refused"), err)
	}
	return response.Refusal.ID, nil
}

// A server reports into a Redis, and whoever has the id of a refusal finds the line of the policy and who has published it.
func Example_report() {
	folder, err := os.MkdirTemp("", "report")
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
	path := folder + "/policy.yaml"
	if err := os.WriteFile(path, []byte(reportedPolicy), 0o600); err != nil {
		fmt.Println(err)
		return
	}

	serve := func(ctx context.Context, client redis.UniversalClient) error {
		place := report.Place{Client: client, Namespace: "shop"}
		reporter, err := report.Start(report.Config{Place: place})
		if err != nil {
			return err
		}
		defer func() { _ = reporter.Close() }()

		follower, err := policy.OpenFile(path, policy.Config{
			Observe: policy.ObserveConfig{Observer: event.All(reporter, event.NewLogger(nil))},
		})
		if err != nil {
			return err
		}
		defer func() { _ = follower.Close() }()

		srv := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
		srv.AddTransport(transport.POST{})
		srv.Use(ratelimit.New(ratelimit.Config{
			Store: bucket.NewMemory(bucket.MemoryConfig{}), Policy: follower,
			Subject: func(context.Context, *ratelimit.Request) (ratelimit.Subject, error) {
				return ratelimit.Subject{Tenant: "acme"}, nil
			},
			Observe: ratelimit.ObserveConfig{Observer: event.All(reporter)},
		}))
		id, err := askToBeRefused(ratelimit.Handler(srv))
		if err != nil {
			return err
		}
		// It writes each second, and when it ends.
		_ = reporter.Close()

		reader, err := report.NewReader(place)
		if err != nil {
			return err
		}
		refusal, err := reader.Refusal(ctx, id)
		if err != nil {
			return err // report.ErrNotFound
		}
		for _, limit := range refusal.Limits {
			if limit.Refuses {
				fmt.Println(limit.Limit, limit.Capacity, limit.Origin.Rule, "line", limit.Origin.Line)
			}
		}
		fmt.Println("revision", refusal.Policy.Revision, "from", refusal.Policy.Origin)

		lately, err := reader.Summary(ctx, time.Minute)
		if err != nil {
			return err
		}
		for _, tenant := range lately.Tenants {
			fmt.Println(tenant.Name, tenant.Decisions, "asked", tenant.Refused, "refused")
		}
		for _, instance := range lately.Instances {
			if instance.Feed != nil && instance.Feed.Refused != nil {
				fmt.Println(instance.Name, "serves", instance.Policy.Revision, "and refuses", instance.Feed.Refused.Revision, instance.Feed.Refused.Error)
			}
		}
		return nil
	}
	client, err := redisclient.New(redisServer.Addr)
	if err == nil {
		defer func() { _ = client.Close() }()
		err = serve(context.Background(), client)
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// minute 40 [tiers.free.limits.minute tenants.acme.limits.minute] line 10
	// revision 1 from feed
	// acme 1 asked 1 refused
}
