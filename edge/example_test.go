package edge_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/edge"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
	"github.com/gqlgen-ratelimit/ratelimit/validation"
)

// The door stands before the limiter, and both before the server.
func Example() {
	schema := testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}})
	policy, err := tiers.Compile(tiers.Policy{Default: "free", Tiers: map[string]tiers.Tier{
		"free": {Limits: map[string]*tiers.Limit{"minute": {Capacity: 1000, Per: tiers.Minute}}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	limiter := ratelimit.New(ratelimit.Config{
		Store: bucket.NewMemory(bucket.MemoryConfig{}), Policy: policy, Subject: ratelimit.ByPeer(ratelimit.PeerConfig{}),
	})
	server := &http.Server{MaxHeaderBytes: 32 << 10, ReadHeaderTimeout: 5 * time.Second}

	door, err := edge.New(edge.Config{Server: server})
	if err != nil {
		fmt.Println(err)
		return
	}
	srv := handler.New(schema)
	srv.AddTransport(transport.POST{})
	srv.SetValidationRulesFn(validation.Rules)
	srv.SetDisableSuggestion(true) // strangers are told no names
	srv.Use(door)
	srv.Use(limiter)
	http.Handle("/query", door.Handler(ratelimit.Handler(srv)))

	body := strings.NewReader(`{"query":"{ me { id } } #` + strings.Repeat("x", 200_000) + `"}`)
	r := httptest.NewRequest(http.MethodPost, "/query", body)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	http.DefaultServeMux.ServeHTTP(w, r)
	fmt.Println(w.Code)
	fmt.Println(w.Body)
	// Output:
	// 413
	// {"errors":[{"message":"the body may have 131072 bytes at most: send less at once","extensions":{"code":"PAYLOAD_TOO_LARGE","layer":"document"}}]}
}

// A server behind a load balancer, whose clients send API keys. What stands for ratelimit.Handler(srv) here answers
// everything.
func ExampleConfig() {
	graphQL := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"data":{}}`)
	})
	server := &http.Server{MaxHeaderBytes: 32 << 10, ReadHeaderTimeout: 5 * time.Second}

	door, err := edge.New(edge.Config{
		// The load balancer, which appends the addresses of clients to X-Forwarded-For.
		Proxies: edge.ProxyConfig{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
		Key:     edge.KeyConfig{Header: "X-Api-Key"},
		Address: edge.AddressConfig{Limits: []bucket.Limit{
			{Name: "second", Unit: bucket.Requests, Capacity: 20, Refill: 10, Period: time.Second},
			{Name: "bytes", Unit: edge.Bytes, Capacity: 32 << 20, Period: time.Minute},
		}},
		Server:  server,
		Observe: edge.ObserveConfig{Logger: slog.New(slog.DiscardHandler)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	server.Handler = door.Handler(graphQL)

	for range 21 {
		r := httptest.NewRequest(http.MethodPost, "/query", strings.NewReader(`{"query":"{ me { id } }"}`))
		w := httptest.NewRecorder()
		server.Handler.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			answer, _ := ratelimitclient.FromResponse(w.Body.Bytes())
			fmt.Println(w.Code, answer.Refusal.Code, answer.Refusal.Layer, answer.Refusal.Limit)
			fmt.Println("Retry-After:", w.Header().Get("Retry-After"))
		}
	}
	// Output:
	// 429 RATE_LIMITED address second
	// Retry-After: 1
}
