package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

// roomyPolicy never refuses what a benchmark asks for, and has four limits.
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

// requestBody is the body of that request.
var requestBody = []byte(`{"query":"` + requestText + `","variables":{"first":10}}`)

// The rows of the whole server that others are compared with, or that an aim is about.
const (
	rowBare = iota
	rowAgain
	rowShortFloor
	rowShort
	rowFullFloor
	rowFull
)

// collectedAtLeast is how often garbage is collected in a turn, so that one collection more or less counts little.
const collectedAtLeast = 5

// wholeServer compares a gqlgen server with and without the extension. Requests are handed to the
// server in memory, because a network would only make the difference look smaller.
func wholeServer(ctx context.Context, e effort) (*findings, error) {
	contenders, err := wholeServers(ctx, e)
	if err != nil {
		return nil, err
	}
	// What is compared here differs by less than the machine does from one second to the next: it takes many rounds.
	e.rounds *= 4
	outcomes, err := contest(ctx, e, contenders)
	if err != nil {
		return nil, err
	}
	bare := &outcomes[rowBare]
	t := &table{
		title: "The whole server",
		note: fmt.Sprintf("One caller, ten objects, query cache on, memory store, four limits. Garbage was collected %s times in a turn of the first row. "+
			"The floor is a server that adds as many bytes of extension and the same headers, all of them constant.", digits(bare.median(collections))),
		header: []string{"", "requests/s", "processor", "added", "× gqlgen", "without collection", "added", "× gqlgen", "allocations", "bytes"},
	}
	for i := range outcomes {
		o := &outcomes[i]
		t.add(o.name, digits(o.median(perSecond)),
			duration(o.median(processor)), micros(o.difference(bare, processor))+" µs", digits(bare.ratio(o, processor)),
			duration(o.median(uncollected)), micros(o.difference(bare, uncollected))+" µs", digits(bare.ratio(o, uncollected)),
			digits(o.median(allocations)), digits(o.median(bytesAllocated)))
	}
	if n := bare.median(collections); e.long >= usual.long && n < collectedAtLeast {
		return nil, fmt.Errorf("garbage was collected %s times in a turn: take longer ones", digits(n))
	}
	const processorOf = "processor time of a server with trivial resolvers ÷ that with the limiter: "
	return &findings{tables: []*table{t}, aims: []aim{
		atLeast(processorOf+"short answers", 0.90, bare.ratio(&outcomes[rowShort], processor), times),
		atLeast(processorOf+"all limits told", 0.85, bare.ratio(&outcomes[rowFull], processor), times),
	}}, nil
}

// wholeServers returns the servers in the order of their rows.
func wholeServers(ctx context.Context, e effort) ([]contender, error) {
	short, err := limitedServer()
	if err != nil {
		return nil, err
	}
	full, err := limitedServer(func(c *ratelimit.Config) { c.Response.Full = true })
	if err != nil {
		return nil, err
	}
	shortFloor, err := floor(ctx, short, &shortAnswer{})
	if err != nil {
		return nil, err
	}
	fullFloor, err := floor(ctx, full, &fullAnswer{})
	if err != nil {
		return nil, err
	}
	complexity := plainServer()
	complexity.Use(extension.FixedComplexityLimit(1_000_000))
	bare := plainServer()
	return []contender{
		rowBare:       collecting(e, "gqlgen", serve(ctx, bare, requestBody, tellsNothing)),
		rowAgain:      collecting(e, "gqlgen, once more", serve(ctx, bare, requestBody, tellsNothing)),
		rowShortFloor: collecting(e, "the floor of short answers", serve(ctx, shortFloor, requestBody, tellsOne)),
		rowShort:      collecting(e, "**gqlgen with ratelimit**", serve(ctx, short, requestBody, tellsOne)),
		rowFullFloor:  collecting(e, "the floor of all limits", serve(ctx, fullFloor, requestBody, tellsAll)),
		rowFull:       collecting(e, "**gqlgen with ratelimit, all limits told**", serve(ctx, full, requestBody, tellsAll)),
		collecting(e, "gqlgen with its FixedComplexityLimit", serve(ctx, complexity, requestBody, tellsNothing)),
	}, nil
}

func plainServer() *handler.Server {
	server := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
	server.AddTransport(transport.POST{})
	server.SetQueryCache(lru.New[*ast.QueryDocument](100))
	return server
}

// limitedServer returns a server with a limiter of roomyPolicy, with changes to its configuration.
func limitedServer(changes ...func(*ratelimit.Config)) (http.Handler, error) {
	limiter, err := roomyLimiter(changes...)
	if err != nil {
		return nil, err
	}
	server := plainServer()
	server.Use(limiter)
	return ratelimit.Handler(server), nil
}

// roomyLimiter returns a limiter of roomyPolicy, with changes to its configuration.
func roomyLimiter(changes ...func(*ratelimit.Config)) (*ratelimit.Extension, error) {
	policy, err := tiers.Load([]byte(roomyPolicy), 1)
	if err != nil {
		return nil, err
	}
	config := ratelimit.Config{
		Store:  bucket.NewMemory(bucket.MemoryConfig{}),
		Policy: policy,
		Subject: ratelimit.ByHeader("X-Tenant", func(_ context.Context, value string) (ratelimit.Subject, bool) {
			return ratelimit.Subject{Tenant: value}, true
		}),
		Observe: ratelimit.ObserveConfig{Logger: slog.New(slog.DiscardHandler)},
	}
	for _, change := range changes {
		change(&config)
	}
	return ratelimit.New(config), nil
}

// telling is what a client is told of limits.
type telling int

const (
	tellsNothing telling = iota
	// tellsOne is the default of the extension.
	tellsOne
	tellsAll
)

var (
	errNotServed = errors.New("the server answered with an error")
	errNotTold   = errors.New("the answer tells another number of limits")
	errStoreAway = errors.New("the server decided without its store")
)

// check returns what is wrong with an answer, so that a server that does less work is not measured as a fast one.
func check(status int, body []byte, told telling) error {
	is := tellsNothing
	switch {
	case status != http.StatusOK || bytes.Contains(body, []byte(`"errors"`)) || !bytes.Contains(body, []byte(`"users":[`)):
		return errNotServed
	case bytes.Contains(body, []byte(`"storeUnavailable":true`)):
		return errStoreAway
	case bytes.Contains(body, []byte(`"limits":[`)):
		is = tellsAll
	case bytes.Contains(body, []byte(`"rateLimit":{`)):
		is = tellsOne
	}
	if is != told {
		return errNotTold
	}
	return nil
}

// serve returns a function that sends one request and checks the answer.
func serve(ctx context.Context, server http.Handler, body []byte, told telling) func() error {
	return func() error {
		recorder := answer(ctx, server, body)
		return check(recorder.Code, recorder.Body.Bytes(), told)
	}
}

// answer sends one request of a tenant.
func answer(ctx context.Context, server http.Handler, body []byte) *httptest.ResponseRecorder {
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Tenant", "bench")
	recorder := httptest.NewRecorder()
	server.ServeHTTP(recorder, request)
	return recorder
}
