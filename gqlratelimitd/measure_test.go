package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/internal/postgrestest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

var raises = flag.Int("raises", 1, "how often a limit is raised, and the time measured")

// shop is a server with the limiter.
type shop struct{ http.Handler }

func newShop(t *testing.T, addr, policy string) shop {
	t.Helper()
	client, err := redisclient.Open(addr, redisclient.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	// Tests of much else run beside it.
	budgets, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: 5 * time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, budgets.Close()) })
	source, err := tiers.Load([]byte(policy), 1)
	require.NoError(t, err)
	srv := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
	srv.AddTransport(transport.POST{})
	limiter := ratelimit.New(ratelimit.Config{Store: budgets, Policy: source, Observe: ratelimit.ObserveConfig{Logger: slog.New(slog.DiscardHandler)}, Subject: ratelimit.ByHeader("Tenant", func(_ context.Context, tenant string) (ratelimit.Subject, bool) {
		return ratelimit.Subject{Tenant: tenant}, true
	})})
	t.Cleanup(func() { require.NoError(t, limiter.Shutdown(t.Context())) })
	srv.Use(limiter)
	return shop{ratelimit.Handler(srv)}
}

// ask sends an operation of a tenant, and reports whether it has run.
func (i shop) ask(t *testing.T, tenant string) bool {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/query", bytes.NewReader([]byte(`{"query": "{ me { name } }"}`)))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Tenant", tenant)
	w := httptest.NewRecorder()
	i.ServeHTTP(w, r)
	var answer struct{ Errors []json.RawMessage }
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer), w.Body.String())
	return len(answer.Errors) == 0
}

// TestARaiseOverHTTPReachesTheNextRequestsOnEveryInstance asks three instances for a tenant who has nothing left, raises its limit through
// the daemon, and asks until it is admitted on each of them. With -raises=50 -v it says how long that took.
func TestARaiseOverHTTPReachesTheNextRequestsOnEveryInstance(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	small := strings.Replace(document, "{capacity: 1000, per: minute}", "{capacity: 3, per: hour}", 1)
	r := start(t, t.TempDir()+"/state", "-redis", "redis://"+server.Addr)
	token := r.first()
	r.ask(http.StatusOK, http.MethodPut, "/v1/ratelimit/policies", token, small, "If-Match", `"1"`)
	instances := []shop{newShop(t, server.Addr, small), newShop(t, server.Addr, small), newShop(t, server.Addr, small)}
	var took []time.Duration
	for n := range *raises {
		tenant := fmt.Sprint("tenant", n)
		for instances[0].ask(t, tenant) {
			require.NoError(t, t.Context().Err())
		}
		for _, i := range instances {
			require.False(t, i.ask(t, tenant), "it has nothing left")
		}
		began := time.Now()
		r.ask(http.StatusOK, http.MethodPut, "/v1/orgs/"+tenant+"/ratelimit/overrides?level=tenant&limit=minute", token,
			`{"capacity": 300, "expires": "`+inAnHour()+`"}`, "If-None-Match", "*")
		for _, i := range instances {
			for !i.ask(t, tenant) {
				require.NoError(t, t.Context().Err())
			}
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	t.Logf("%d raises: from the request to the daemon until a request passed on each of three instances: p50 %v, p99 %v, at most %v",
		len(took), took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
}

// processorTime is what this process has used so far.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkADaemonThatNobodyAsks measures what a daemon takes of a processor that has a policy, an override and a Redis, and that nobody asks.
// Each iteration is a second in which the benchmark waits, so that the process is the daemon's.
func BenchmarkADaemonThatNobodyAsks(b *testing.B) {
	postgres, err := postgrestest.Launch()
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, postgres.Close()) })
	for name, args := range map[string][]string{"SQLite": nil, "PostgreSQL": {"-database", postgres.URL("postgres")}} {
		b.Run(name, func(b *testing.B) {
			server := redistest.Start(b)
			r := start(b, b.TempDir()+"/state", append(args, "-redis", "redis://"+server.Addr)...)
			token := r.first()
			r.ask(http.StatusOK, http.MethodPut, "/v1/orgs/acme/ratelimit/overrides?level=tenant&limit=minute", token,
				`{"capacity": 300, "expires": "`+inAnHour()+`"}`, "If-None-Match", "*")
			pause(b, 5*time.Second)
			before, began := processorTime(b), time.Now()
			for b.Loop() {
				pause(b, time.Second)
			}
			used, over := processorTime(b)-before, time.Since(began)
			b.ReportMetric(100*float64(used)/float64(over), "%processor")
			require.Zero(b, r.stop())
		})
	}
}

// pause waits for a time that is measured.
func pause(b *testing.B, d time.Duration) {
	b.Helper()
	select {
	case <-time.After(d):
	case <-b.Context().Done():
		b.Fatal("it was interrupted")
	}
}
