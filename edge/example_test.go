package edge_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/edge"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// A door before a server. What stands for ratelimit.Handler(srv) here answers everything.
func Example() {
	graphQL := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, `{"data":{}}`) })
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
