// Package ratelimit limits what clients of a gqlgen server may ask for, by what it costs.
//
// One request of a GraphQL client is not one unit of work: the query { me { id } } and a list of
// lists of lists differ by orders of magnitude. This package prices an operation before it runs,
// takes the price from the budget of whoever asks, in one atomic step that holds across replicas,
// and tells the client what it cost and what is left.
//
// # Use
//
//	srv := handler.New(generated.NewExecutableSchema(cfg))
//	limiter := ratelimit.New(ratelimit.Config{
//		Store:   bucket.NewMemory(bucket.MemoryConfig{}),
//		Policy:  policy,
//		Subject: ratelimit.ByHeader("X-API-Key", lookup),
//	})
//	srv.Use(limiter)
//	http.Handle("/query", ratelimit.Handler(srv))
//	defer limiter.Shutdown(ctx) // after http.Server.Shutdown
//
// Three things are required. The Store keeps the budgets: bucket.Memory in one process, bucket.Redis
// for several. The Policy says which tiers there are, what their limits are and which tenant is in
// which tier; package tiers reads it from a file or from Go values. The Subject function says who
// pays for a request.
//
// Weights and list sizes come from the directives @cost and @listSize in the schema, which
// schema.graphqls of this module defines, or from Config.Pricing.Cost by coordinate.
//
// # The path of a request
//
// The [Handler] puts itself around the gqlgen server, because only there status and headers can be
// set. Inside, the [Extension] prices the operation when gqlgen has parsed and validated it, asks
// Config.Subject who pays, looks the tier up, and makes one call to the store, which charges every
// limit of the subject or none. An operation that is refused never reaches its resolvers. Under an
// Idempotency-Key the same call claims the key, so that a retry is not charged, and a mutation not
// run, twice.
//
// # What clients see
//
// Every response, except to exempt subjects, carries extensions.rateLimit with the cost, what was
// charged and what is left, and on HTTP the headers RateLimit, RateLimit-Policy and Retry-After. A refusal is a
// GraphQL error with one of the codes of package ratelimitclient and the HTTP status that belongs to it. That
// package decodes both in Go clients.
//
// # Telemetry
//
// A decision is a span, ratelimit.decide. The names of the metrics begin with ratelimit. as well;
// docs/reference/metrics.md lists all of them with their attributes. [ObserveConfig] says which tenants and
// operations they name.
//
// # When the store is away
//
// A call to the store has a deadline of ten milliseconds. If it fails, the fail mode of the limits
// decides: bounded admits by this instance's part of twice the limit and says so, closed refuses, local judges by this
// instance's share of what was left, and open admits everything. Whom the store has blocked or refused stays so.
// The server starts and serves without its store.
package ratelimit
