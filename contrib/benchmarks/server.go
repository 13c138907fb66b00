package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/99designs/gqlgen/graphql/handler/lru"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// roomyPolicy never refuses what a benchmark asks for, and shows four limits in each answer.
const roomyPolicy = `
version: 1
default: bench
tiers:
  bench:
    limits:
      second: {capacity: 1000000000, per: second}
      minute: {capacity: 1000000000, per: minute}
      day: {capacity: 1000000000, refill: 1000000, per: day}
      requests: {unit: requests, capacity: 1000000000, per: second}
`

// requestText is what the client of the whole server asks for: ten objects of a resolver that does
// next to nothing, so that all the time is that of the server itself.
const requestText = `query ($first: Int) { users(first: $first) { id name } }`

// wholeServer compares a gqlgen server with and without the extension. Requests are handed to the
// server in memory, because a network would only make the difference look smaller.
func wholeServer(ctx context.Context, e effort) (string, error) {
	limited, err := limitedServer(false)
	if err != nil {
		return "", err
	}
	estimating, err := limitedServer(true)
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(map[string]any{"query": requestText, "variables": map[string]any{"first": 10}})
	if err != nil {
		return "", err
	}
	complexity := plainServer()
	complexity.Use(extension.FixedComplexityLimit(1_000_000))
	// A turn of the server is longer, because its garbage has to be collected in it.
	e.turn = e.call
	outcomes, err := contest(ctx, e, []contender{
		alone(e, "gqlgen", serve(ctx, plainServer(), body)),
		alone(e, "gqlgen with its FixedComplexityLimit", serve(ctx, complexity, body)),
		alone(e, "**gqlgen with ratelimit**", serve(ctx, limited, body)),
		alone(e, "**gqlgen with ratelimit, without actual costs**", serve(ctx, estimating, body)),
	})
	if err != nil {
		return "", err
	}
	t := &table{
		title:  "The whole server",
		note:   "One caller, ten objects, query cache on, memory store, four limits in headers and extensions.",
		header: []string{"", "requests/s", "× gqlgen", "processor", "added", "× gqlgen per processor time", "allocations"},
	}
	for i := range outcomes {
		o, bare := &outcomes[i], &outcomes[0]
		t.add(o.name, digits(o.median(perSecond)), digits(o.ratio(bare, perSecond)), duration(o.median(processor)),
			micros(o.difference(bare, processor))+" µs", digits(bare.ratio(o, processor)), digits(o.median(allocations)))
	}
	return tables(t), nil
}

func plainServer() *handler.Server {
	server := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
	server.AddTransport(transport.POST{})
	server.SetQueryCache(lru.New[*ast.QueryDocument](100))
	return server
}

func limitedServer(noActualCost bool) (http.Handler, error) {
	limiter, err := roomyLimiter(noActualCost)
	if err != nil {
		return nil, err
	}
	server := plainServer()
	server.Use(limiter)
	return ratelimit.Handler(server), nil
}

// roomyLimiter returns a limiter of roomyPolicy.
func roomyLimiter(noActualCost bool) (*ratelimit.Extension, error) {
	document, err := tiers.Parse([]byte(roomyPolicy))
	if err != nil {
		return nil, err
	}
	policy, err := tiers.Compile(document)
	if err != nil {
		return nil, err
	}
	actual := ratelimit.ActualWhereRead
	if noActualCost {
		actual = ratelimit.ActualNever
	}
	return ratelimit.New(ratelimit.Config{
		Store:  bucket.NewMemory(bucket.MemoryConfig{}),
		Policy: policy,
		Subject: ratelimit.ByHeader("X-Tenant", func(_ context.Context, value string) (ratelimit.Subject, bool) {
			return ratelimit.Subject{Tenant: value}, true
		}),
		Pricing: ratelimit.PricingConfig{Actual: actual},
		// Documents of a search have more aliases than they may.
		Observe: ratelimit.ObserveConfig{Logger: slog.New(slog.DiscardHandler)},
	}), nil
}

var errNotServed = errors.New("the server answered with an error")

// serve returns a function that sends one request and checks the answer.
func serve(ctx context.Context, server http.Handler, body []byte) func() error {
	return func() error {
		request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", bytes.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("X-Tenant", "bench")
		recorder := httptest.NewRecorder()
		server.ServeHTTP(recorder, request)
		if recorder.Code != http.StatusOK || bytes.Contains(recorder.Body.Bytes(), []byte(`"errors"`)) {
			return errNotServed
		}
		return nil
	}
}
