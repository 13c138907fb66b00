package edge_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/99designs/gqlgen/graphql/handler/transport"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/edge"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
	"github.com/gqlgen-ratelimit/ratelimit/validation"
)

// The door bounds what documents take before they have a price, and asks the limiter what it would refuse anyway.
func ExampleDocumentConfig() {
	mux := http.NewServeMux()
	schema := testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}})
	policy, err := tiers.Compile(tiers.Policy{Default: "free", Tiers: map[string]tiers.Tier{
		"free": {Limits: map[string]*tiers.Limit{"minute": {Capacity: 100, Per: tiers.Minute}}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	limiter := ratelimit.New(ratelimit.Config{
		Store: bucket.NewMemory(bucket.MemoryConfig{}), Policy: policy, Subject: ratelimit.ByPeer(ratelimit.PeerConfig{}),
	})

	documents := edge.NewDocuments(64 << 20) // bytes

	door, err := edge.New(edge.Config{
		Documents: edge.DocumentConfig{Cache: documents, Limiter: limiter},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	srv := handler.New(schema)
	srv.AddTransport(transport.POST{})
	srv.SetValidationRulesFn(validation.Rules) // linear time
	srv.SetDisableSuggestion(true)             // no names for strangers
	srv.SetQueryCache(documents)
	srv.Use(extension.AutomaticPersistedQuery{Cache: documents.Persisted()})
	srv.Use(door) // after automatic persisted queries, before all others
	srv.Use(limiter)
	mux.Handle("/query", door.Handler(ratelimit.Handler(srv)))

	// A document of twenty operations, of which a request runs one.
	r := httptest.NewRequest(http.MethodPost, "/query", strings.NewReader(`{"query":"`+strings.Repeat("{me{id}}", 20)+`"}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Body)
	// Output:
	// 400 {"errors":[{"message":"the document has more than 16 operations: send the one that is to run","extensions":{"allowed":16,"code":"QUERY_LIMIT_EXCEEDED","given":17,"layer":"document","rule":"operations"}}],"data":null}
}
