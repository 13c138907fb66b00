package crashtest_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// The server is this test binary, started again with these variables set.
const (
	addrVariable   = "CRASH_TEST_REDIS"
	refuseVariable = "CRASH_TEST_REFUSE_ABANDONED"
)

// patience is the timeout of everything that is not about time: a busy machine shall not fail the test.
const patience = 30 * time.Second

// policy gives each operation, which is a user of its own here, a budget to which nothing comes back.
const policy = `
version: 1
default: pro
tiers:
  pro:
    users:
      limits:
        points: {capacity: 1000, per: day, window: fixed}
        requests: {unit: requests, capacity: 100, per: day, window: fixed}
`

// effects is the database in which the effects of mutations are counted.
const effects = 1

// step is how long a mutation works at most before its effect, and again after it.
const step = 10 * time.Millisecond

func TestMain(m *testing.M) {
	addr := os.Getenv(addrVariable)
	if addr == "" {
		os.Exit(m.Run())
	}
	if err := serve(addr, os.Getenv(refuseVariable) != ""); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve serves until the process is killed, or its standard input ends because the test is gone.
func serve(addr string, refuseAbandoned bool) error {
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: newClient(addr, 0), Timeout: patience})
	if err != nil {
		return err
	}
	parsed, err := tiers.Parse([]byte(policy))
	if err != nil {
		return err
	}
	snapshot, err := tiers.Compile(parsed)
	if err != nil {
		return err
	}
	resolver := &testserver.Resolver{BeforeCreate: countEffects(newClient(addr, effects))}
	server := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: resolver}))
	server.AddTransport(transport.POST{})
	server.Use(ratelimit.New(ratelimit.Config{
		Store: store, Policy: snapshot, Observe: ratelimit.ObserveConfig{Logger: slog.New(slog.DiscardHandler)},
		Subject: func(_ context.Context, r *ratelimit.Request) (ratelimit.Subject, error) {
			return ratelimit.Subject{Tenant: "acme", User: r.Header.Get("X-User")}, nil
		},
		Idempotency: ratelimit.IdempotencyConfig{Lease: time.Second, RefuseAbandoned: refuseAbandoned},
	}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(os.Stdout, "http://%s\n", listener.Addr()); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return (&http.Server{Handler: ratelimit.Handler(server), ReadHeaderTimeout: patience}).Serve(listener)
}

// countEffects returns what a mutation does: it works, takes effect, and works on.
func countEffects(client *redis.Client) func(context.Context) {
	return func(ctx context.Context) {
		work()
		operation := graphql.GetOperationContext(ctx).Headers.Get("X-User")
		if err := client.Incr(context.WithoutCancel(ctx), operation).Err(); err != nil {
			panic(err)
		}
		work()
	}
}

func work() {
	<-time.After(rand.N(step))
}

// newClient returns a client that waits as long as the store lets it.
func newClient(addr string, database int) *redis.Client {
	options := &redis.Options{Addr: addr, DB: database}
	redisclient.Bound(options)
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.PoolTimeout = patience, patience, patience, patience
	return redis.NewClient(options)
}
