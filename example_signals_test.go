package ratelimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

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
