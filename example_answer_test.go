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
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// No answer has more than 400 bytes, however little it costs.
func ExampleAnswerConfig() {
	policy, err := tiers.Compile(tiers.Policy{Default: "free", Tiers: map[string]tiers.Tier{
		"free": {Limits: map[string]*tiers.Limit{"minute": {Capacity: 1000, Per: tiers.Minute}}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	srv := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
	srv.AddTransport(transport.POST{})
	srv.Use(ratelimit.New(ratelimit.Config{
		Store: bucket.NewMemory(bucket.MemoryConfig{}), Policy: policy, Subject: ratelimit.ByPeer(ratelimit.PeerConfig{}),
		Answer: ratelimit.AnswerConfig{MaxBytes: 400},
	}))

	for _, first := range []int{2, 50} {
		body := fmt.Sprintf(`{"query":"{ users(first: %d) { id name } }"}`, first)
		r := httptest.NewRequest(http.MethodPost, "/query", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		ratelimit.Handler(srv).ServeHTTP(w, r)
		answer, err := ratelimitclient.FromResponse(w.Body.Bytes())
		if err != nil {
			fmt.Println(err)
			return
		}
		if refusal := answer.Refusal; refusal != nil {
			fmt.Println(w.Code, refusal.Code, refusal.Rule, refusal.Allowed)
		} else {
			fmt.Println(w.Code, "answered")
		}
	}
	// Output:
	// 200 answered
	// 200 QUERY_LIMIT_EXCEEDED responseBytes 400
}
