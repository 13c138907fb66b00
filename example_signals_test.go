package ratelimit_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// What is left, asked by a query.
func ExampleBudgetFromContext() {
	policy, err := tiers.Compile(tiers.Policy{Default: "free", Tiers: map[string]tiers.Tier{
		"free": {Limits: map[string]*tiers.Limit{"minute": {Capacity: 100, Per: tiers.Minute}}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	// The resolver of rateLimit in it returns ratelimit.BudgetFromContext(ctx).
	srv := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
	srv.AddTransport(transport.POST{})
	srv.Use(ratelimit.New(ratelimit.Config{
		Store: bucket.NewMemory(bucket.MemoryConfig{}), Policy: policy, Subject: ratelimit.ByPeer(ratelimit.PeerConfig{}),
	}))
	for _, query := range []string{
		`{ rateLimit { cost limit remaining } users(first: 1) { name } }`,
		`{ rateLimit { cost } }`,
	} {
		r := httptest.NewRequest(http.MethodPost, "/query", strings.NewReader(`{"query": "`+query+`"}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		ratelimit.Handler(srv).ServeHTTP(w, r)
		data, _, _ := strings.Cut(w.Body.String(), `,"extensions"`)
		fmt.Println(data)
	}
	// Output:
	// {"data":{"rateLimit":{"cost":3,"limit":100,"remaining":97},"users":[{"name":"user 1"}]}
	// {"data":{"rateLimit":{"cost":0}}
}

// Clients of Shopify's API read extensions.cost.
func ExampleFromContext_shopify() {
	policy, err := tiers.Compile(tiers.Policy{Default: "free", Tiers: map[string]tiers.Tier{
		"free": {Limits: map[string]*tiers.Limit{"minute": {Capacity: 120, Per: tiers.Minute}}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	srv := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
	srv.AddTransport(transport.POST{})
	limiter := ratelimit.New(ratelimit.Config{
		Store: bucket.NewMemory(bucket.MemoryConfig{}), Policy: policy, Subject: ratelimit.ByPeer(ratelimit.PeerConfig{}),
		Settlement: ratelimit.SettlementConfig{Refund: true}, // as Shopify's API does
	})
	srv.AroundResponses(shopifyCost) // before srv.Use, so that it sees what the response has come to
	srv.Use(limiter)
	for _, query := range []string{`{ users(first: 60) { name } }`, `{ users(first: 90) { name } }`} {
		r := httptest.NewRequest(http.MethodPost, "/query", strings.NewReader(`{"query": "`+query+`"}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		ratelimit.Handler(srv).ServeHTTP(w, r)
		_, extensions, _ := strings.Cut(w.Body.String(), `"extensions":{"cost":`)
		cost, _, _ := strings.Cut(extensions, `,"rateLimit"`)
		fmt.Println(cost)
	}
	// Output:
	// {"actualQueryCost":62,"requestedQueryCost":62,"throttleStatus":{"currentlyAvailable":58,"maximumAvailable":120,"restoreRate":2}}
	// {"actualQueryCost":null,"requestedQueryCost":92,"throttleStatus":{"currentlyAvailable":58,"maximumAvailable":120,"restoreRate":2}}
}

func shopifyCost(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	response := next(ctx)
	decision, decided := ratelimit.FromContext(ctx)
	if response == nil || !decided {
		return response
	}
	for _, l := range decision.Limits {
		if l.Limit.Unit != bucket.Points {
			continue
		}
		if response.Extensions == nil {
			response.Extensions = map[string]any{}
		}
		response.Extensions["cost"] = map[string]any{
			"requestedQueryCost": decision.Points,
			"actualQueryCost":    decision.Actual, // null for what was refused
			"throttleStatus": map[string]any{
				"maximumAvailable":   l.Limit.Capacity,
				"currentlyAvailable": l.Remaining,
				"restoreRate":        float64(l.Limit.Refill) / l.Limit.Period.Seconds(), // of a token bucket
			},
		}
		return response
	}
	return response
}
