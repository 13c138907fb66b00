package docs_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/edge"
)

// A gateway has authenticated the consumer: Gateway Sentinel of docs/guide/patterns.md.
func Example_gatewaySentinel() {
	var cfg ratelimit.Config
	cfg.Subject = ratelimit.ByHeader("X-Consumer", func(_ context.Context, consumer string) (ratelimit.Subject, bool) {
		return ratelimit.Subject{Tenant: consumer}, true
	})

	header := http.Header{}
	header.Set("X-Consumer", "acme")
	known, err := cfg.Subject(context.Background(), &ratelimit.Request{Header: header})
	fmt.Println(known.Tenant, err)
	// Output: acme <nil>
}

// Addresses before the parser: Layered Defense of docs/guide/patterns.md.
func Example_layeredDefense() {
	door, err := edge.New(edge.Config{
		Address: edge.AddressConfig{
			Limits: []bucket.Limit{
				{Name: "minute", Unit: bucket.Requests, Capacity: 50, Refill: 200, Period: time.Minute},
			},
			UnderWay:    100, // requests of one address at once
			Connections: 100, // WebSockets of one address
		},
	})
	fmt.Println(door != nil, err)
	// Output: true <nil>
}

// Prices by kind of operation: Cost-Weighted Bucket of docs/guide/patterns.md.
func Example_costWeightedBucket() {
	var cfg ratelimit.Config
	cfg.Pricing.Cost = cost.Config{
		Base:            map[ast.Operation]float64{ast.Mutation: 20, ast.Subscription: 50},
		Weights:         map[string]float64{"Query.search": 15},
		DefaultListSize: 10,
	}
	fmt.Println(cfg.Pricing.Cost.Base[ast.Mutation])
	// Output: 20
}

// Further headers for the key: Idempotency Shield of docs/guide/patterns.md.
func Example_idempotencyShield() {
	var cfg ratelimit.Config
	cfg.Idempotency.Headers = []string{"Idempotency-Key", "X-Idempotency-Key"}
	fmt.Println(cfg.Idempotency.Headers)
	// Output: [Idempotency-Key X-Idempotency-Key]
}
