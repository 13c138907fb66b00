package ratelimit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// tenantOfKey stands for a look-up in the server's own table of API keys.
func tenantOfKey(_ context.Context, key string) (ratelimit.Subject, bool) {
	tenants := map[string]string{"key-of-acme": "acme"}
	tenant, ok := tenants[key]
	return ratelimit.Subject{Tenant: tenant}, ok
}

// A server with one tier. The second request asks for more than is left.
func Example() {
	policy, err := tiers.Compile(tiers.Policy{
		Default: "free",
		Tiers: map[string]tiers.Tier{
			"free":      {Limits: map[string]*tiers.Limit{"minute": {Capacity: 100, Per: tiers.Minute}}},
			"anonymous": {Blocked: true},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	schema := testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}})

	srv := handler.New(schema)
	srv.AddTransport(transport.POST{})
	srv.Use(ratelimit.New(ratelimit.Config{
		Store:  bucket.NewMemory(bucket.MemoryConfig{}), // bucket.NewRedis for several replicas
		Policy: policy,                                  // tiers, limits, who is in which
		Subject: ratelimit.FirstOf( // who pays
			ratelimit.ByHeader("X-API-Key", tenantOfKey),
			ratelimit.ByPeer(ratelimit.PeerConfig{Tier: "anonymous"}),
		),
	}))
	http.Handle("/query", ratelimit.Handler(srv))

	for range 2 {
		request := httptest.NewRequest(http.MethodPost, "/query", strings.NewReader(`{"query": "{ users(first: 60) { name } }"}`))
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("X-API-Key", "key-of-acme")
		recorder := httptest.NewRecorder()
		http.DefaultServeMux.ServeHTTP(recorder, request)

		response, err := ratelimitclient.FromResponse(recorder.Body.Bytes())
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(recorder.Code, "cost", response.RateLimit.Cost, "charged", response.RateLimit.Charged)
	}
	// Output:
	// 200 cost 62 charged 62
	// 429 cost 62 charged 0
}

// Who is told that budgets run out.
func ExampleConfig_events() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var cfg ratelimit.Config

	events := event.NewChannel(1000)
	cfg.Observe = ratelimit.ObserveConfig{Observer: events, Thresholds: []float64{0.8, 1}}
	go events.Forward(ctx, event.NewLogger(nil)) // until ctx ends; or send mail

	fmt.Println(events.Dropped())
	// Output: 0
}

// Weights and list sizes for a schema that one does not own.
func ExampleConfig_weightsByCoordinate() {
	var cfg ratelimit.Config
	one := 1
	cfg.Pricing.Cost = cost.Config{
		Weights: map[string]float64{
			"Query.search":        10,
			"Repository":          2,
			"Query.search(text:)": 1,
		},
		ValueWeights: map[string]map[string]float64{
			"Query.search(order:)": {"RELEVANCE": 5},
		},
		ListSizes: map[string]cost.ListSize{
			"Query.search": {SlicingArguments: []string{"first"}},
			"*.errors":     {AssumedSize: &one}, // of every type; a list that something else sizes keeps its size
		},
	}
	cfg.Pricing.Cost.Connections = cost.Connections{
		SlicingArguments: []string{"first", "last"}, SizedFields: []string{"nodes", "edges"},
	}
	fmt.Println(len(cfg.Pricing.Cost.Weights))
	// Output: 3
}

// Limits beside the cost. GitHub's is that of list nodes.
func ExampleConfig_limits() {
	var cfg ratelimit.Config
	cfg.Pricing.Cost.Shape = cost.Shape{MaxDepth: 12, MaxAliases: 30, MaxListNodes: 500_000}
	fmt.Println(cfg.Pricing.Cost.Shape.MaxListNodes)
	// Output: 500000
}

// Budgets that all replicas share.
func ExampleConfig_redis() {
	connect := func() (bucket.Store, error) {
		client, err := redisclient.New("redis://127.0.0.1:6379")
		if err != nil {
			return nil, err
		}
		store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Namespace: "shop-eu"})
		if err != nil {
			return nil, err
		}
		return store, nil
	}
	store, err := connect()
	fmt.Println(store, err)
}

// Who pays behind a load balancer: the user whom the server's own authentication has found, and
// otherwise the address that the balancer reports.
func ExampleFirstOf() {
	type userKey struct{}
	subject := ratelimit.FirstOf(
		ratelimit.ByContext(func(ctx context.Context) (ratelimit.Subject, bool) {
			tenant, ok := ctx.Value(userKey{}).(string)
			return ratelimit.Subject{Tenant: tenant}, ok
		}),
		ratelimit.ByPeer(ratelimit.PeerConfig{Tier: "anonymous"}),
	)
	// The extension fills in the client by Config.Proxies.
	proxies := ratelimit.ProxyConfig{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	peer, header := netip.MustParseAddr("10.1.2.3"), http.Header{"X-Forwarded-For": {"198.51.100.7"}}
	request := &ratelimit.Request{Peer: peer, Header: header, Client: proxies.Client(peer, header)}
	known, err := subject(context.WithValue(context.Background(), userKey{}, "acme"), request)
	fmt.Println(known.Tenant, err)
	unknown, err := subject(context.Background(), request)
	fmt.Println(unknown.Tenant, unknown.Tier, err)
	// Output:
	// acme <nil>
	// ip:198.51.100.7 anonymous <nil>
}

// Support gives a customer budget back, and more for a day.
func Example_support() {
	ctx := context.Background()
	store := bucket.NewMemory(bucket.MemoryConfig{Clock: (&ratelimittest.Clock{}).Now})
	policy, err := tiers.Compile(tiers.Policy{Default: "free", Tiers: map[string]tiers.Tier{
		"free": {Limits: map[string]*tiers.Limit{"day": {Capacity: 1000, Per: tiers.Day}}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	spend := bucket.Take{
		Tenant:  "acme",
		Buckets: policy.Rules(ratelimit.Subject{Tenant: "acme"}, tiers.Selection{}).Buckets,
		Amounts: bucket.Amounts{{Unit: bucket.Points, N: 900}},
	}
	if _, err := store.Take(ctx, spend); err != nil {
		fmt.Println(err)
		return
	}

	source := tiers.Source(policy)
	rules := source.Snapshot().Rules(ratelimit.Subject{Tenant: "acme"}, tiers.Selection{})
	limits, err := store.Grant(ctx, "acme", rules.Buckets, bucket.Amounts{{Unit: bucket.Points, N: 500}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(limits[0].Limit.Name, limits[0].Remaining)

	replaced, err := store.SetOverride(ctx, "acme", bucket.Override{
		Limit: "day", Capacity: 5000, Expires: time.Now().Add(24 * time.Hour),
		Reason: "import of the old shop, ticket 17", Actor: "jo@example.com",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	limits, err = store.Peek(ctx, "acme", rules.Buckets)
	fmt.Println(replaced, limits[0].Limit.Capacity, limits[0].Remaining, err)
	// Output:
	// day 600
	// <nil> 5000 4600 <nil>
}

// A resolver charges for what only it can know.
func ExampleCharge() {
	export := func(ctx context.Context, rows int) (*string, error) {
		if err := ratelimit.Charge(ctx, "exports", int64(rows)); err != nil {
			return nil, err // a GraphQL error with RATE_LIMITED
		}
		url := "https://example.com/export.csv"
		return &url, nil
	}
	_, err := export(context.Background(), 10_000)
	fmt.Println(errors.Is(err, ratelimit.ErrNoDecision))
	// Output: true
}

// A resolver does less when little is left.
func ExampleFromContext() {
	resolve := func(ctx context.Context) string {
		if decision, ok := ratelimit.FromContext(ctx); ok && decision.Tier == "free" {
			return "the short report"
		}
		return "the whole report"
	}
	fmt.Println(resolve(context.Background()))
	// Output: the whole report
}

// What a Go client does with a refusal.
func Example_client() {
	type graphQLResponse struct {
		Errors json.RawMessage `json:"errors"`
	}
	var response graphQLResponse
	body := strings.NewReader(`{"errors": [{"message": "rate limit exceeded", "extensions": {"code": "RATE_LIMITED", "retryAfter": 0.001}}]}`)
	if err := json.NewDecoder(io.LimitReader(body, 1<<20)).Decode(&response); err != nil {
		fmt.Println(err)
		return
	}
	refusal, refused := ratelimitclient.FromErrors(response.Errors)
	if refused && refusal.Temporary() {
		time.Sleep(refusal.RetryAfter)
	}
	fmt.Println("try again after", refusal.RetryAfter)
	// Output: try again after 1ms
}

// A test of one's own server: a clock that stands still and a store that remembers.
func Example_ownTests() {
	srv := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
	srv.AddTransport(transport.POST{})
	policy, err := tiers.Compile(tiers.Policy{Default: "free", Tiers: map[string]tiers.Tier{
		"free": {Limits: map[string]*tiers.Limit{"minute": {Capacity: 100, Per: tiers.Minute}}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	everybody := func(context.Context, *ratelimit.Request) (ratelimit.Subject, error) {
		return ratelimit.Subject{Tenant: "acme"}, nil
	}
	post := func(query string) {
		request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(fmt.Sprintf(`{"query": %q}`, query)))
		request.Header.Set("Content-Type", "application/json")
		srv.ServeHTTP(httptest.NewRecorder(), request)
	}

	clock := &ratelimittest.Clock{}
	store := ratelimittest.NewStore(clock)
	srv.Use(ratelimit.New(ratelimit.Config{Store: store, Policy: policy, Subject: everybody}))

	post(`{ users(first: 60) { name } }`) // your own way to send a request
	taken := store.Takes()[0]
	fmt.Println(taken.Tenant, taken.Amounts.Of(bucket.Points), taken.Result.Verdict)
	clock.Advance(time.Minute)
	// Output: acme 62 admitted
}

// A server that keeps the complexity functions that it already has.
func ExampleConfig_useComplexity() {
	generatedConfig := testserver.Config{Resolvers: &testserver.Resolver{}}
	generatedConfig.Complexity.User.Friends = func(childComplexity, first int) int {
		return first * childComplexity
	}
	policy, err := tiers.Compile(tiers.Policy{Default: "free", Tiers: map[string]tiers.Tier{"free": {Unlimited: true}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg := ratelimit.Config{
		Store:   bucket.NewMemory(bucket.MemoryConfig{}),
		Policy:  policy,
		Subject: ratelimit.ByPeer(ratelimit.PeerConfig{}),
	}
	cfg.Pricing.UseComplexity = true // prices fields by the functions of the ComplexityRoot

	err = ratelimit.New(cfg).Validate(testserver.NewExecutableSchema(generatedConfig))
	fmt.Println(err)
	// Output: <nil>
}

// A list that could have had 300 elements has 100: the rest of its price is given back.
func ExampleSettlementConfig() {
	policy, err := tiers.Compile(tiers.Policy{Default: "free", Tiers: map[string]tiers.Tier{
		"free": {Limits: map[string]*tiers.Limit{"minute": {Capacity: 1000, Per: tiers.Minute}}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	limiter := ratelimit.New(ratelimit.Config{
		Store:      bucket.NewMemory(bucket.MemoryConfig{}),
		Policy:     policy,
		Subject:    ratelimit.ByPeer(ratelimit.PeerConfig{}),
		Settlement: ratelimit.SettlementConfig{Refund: true},
	})
	srv := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
	srv.AddTransport(transport.POST{})
	srv.Use(limiter)
	server := ratelimit.Handler(srv)

	request := httptest.NewRequest(http.MethodPost, "/query", strings.NewReader(`{"query": "{ users(first: 300) { name } }"}`))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	server.ServeHTTP(recorder, request)
	response, err := ratelimitclient.FromResponse(recorder.Body.Bytes())
	if err != nil {
		fmt.Println(err)
		return
	}
	limit := response.RateLimit
	fmt.Println("charged", limit.Charged, "actual", *limit.Actual, "refunded", limit.Refunded, "remaining", limit.Remaining)

	if err := limiter.Shutdown(context.Background()); err != nil { // after http.Server.Shutdown
		fmt.Println(err)
	}
	// Output: charged 302 actual 102 refunded 200 remaining 898
}
