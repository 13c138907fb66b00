package ratelimit_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// A client hands in the id of a refusal, and the event of it says which line of the policy is the reason.
func ExampleObserveConfig() {
	policy, err := tiers.Compile(tiers.Policy{
		Default: "free",
		Tiers:   map[string]tiers.Tier{"free": {Limits: map[string]*tiers.Limit{"minute": {Capacity: 100, Per: tiers.Minute}}}},
		Tenants: map[string]tiers.Exception{"acme": {Limits: map[string]*tiers.Limit{"minute": {Capacity: 40, Per: tiers.Minute}}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	refusals := map[string]event.Decided{}
	srv := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
	srv.AddTransport(transport.POST{})
	srv.Use(ratelimit.New(ratelimit.Config{
		Store: bucket.NewMemory(bucket.MemoryConfig{}), Policy: policy,
		Subject: func(context.Context, *ratelimit.Request) (ratelimit.Subject, error) {
			return ratelimit.Subject{Tenant: "acme"}, nil
		},
		// A server puts an event.Channel here, and a goroutine behind it.
		Observe: ratelimit.ObserveConfig{
			Observer: event.Func(func(_ context.Context, e event.Event) {
				if d, ok := e.(event.Decided); ok {
					refusals[d.RefusalID] = d
				}
			}),
		},
	}))
	r := httptest.NewRequest(http.MethodPost, "/query", strings.NewReader(`{"query": "{ users(first: 60) { name } }"}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	ratelimit.Handler(srv).ServeHTTP(w, r)

	response, err := ratelimitclient.FromResponse(w.Body.Bytes())
	if err != nil || response.Refusal == nil {
		fmt.Println("not refused:", err)
		return
	}
	why := refusals[response.Refusal.ID]
	for _, l := range why.Limits {
		fmt.Println(why.Outcome, l.Limit, l.Capacity, strings.Join(l.Origin.Rule, " < "))
	}
	// Output:
	// too_expensive minute 40 tiers.free.limits.minute < tenants.acme.limits.minute
}
