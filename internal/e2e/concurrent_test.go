package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestEachOf64CallersPaysForItsOwnVariables(t *testing.T) {
	t.Parallel()
	policy, err := tiers.Parse([]byte(fourLimits))
	require.NoError(t, err)
	snapshot, err := tiers.Compile(policy)
	require.NoError(t, err)
	// price is what the operation costs for n users, without and with their friends, of which each has two.
	queries := []struct {
		text, operation string
		price           func(n int, friends bool) int
	}{
		{`query ($n: Int) { users(first: $n) { id } }`, "", func(n int, _ bool) int { return 2 + n }},
		{
			`query ($n: Int, $x: Boolean! = false) { users(first: $n) { friends(first: 2) @include(if: $x) { id } } }`, "",
			func(n int, friends bool) int {
				if friends {
					return 2 + n + 3*n
				}
				return 2 + n
			},
		},
		{
			`query A($n: Int) { a: users(first: $n) { id } b: users(first: $n) { secret } } query B { me { id } }`, "A",
			func(n int, _ bool) int { return 3 + 2*n + 3*n + 1 },
		},
	}
	for _, cached := range []bool{true, false} {
		t.Run(fmt.Sprintf("with cached documents %t", cached), func(t *testing.T) {
			t.Parallel()
			server := newGraphQLServer(&testserver.Resolver{})
			if !cached {
				server.SetQueryCache(graphql.NoCache[*ast.QueryDocument]{})
			}
			server.Use(ratelimit.New(ratelimit.Config{
				Store: bucket.NewMemory(bucket.MemoryConfig{}), Policy: snapshot, Subject: byTenantHeader, Observe: ratelimit.ObserveConfig{Logger: discard},
			}))
			limited := ratelimit.Handler(server)
			ask := func(text, operation string, variables map[string]any) (price int, err error) {
				body, err := json.Marshal(map[string]any{"query": text, "operationName": operation, "variables": variables})
				if err != nil {
					return 0, err
				}
				r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("X-Tenant", "bench")
				recorder := httptest.NewRecorder()
				limited.ServeHTTP(recorder, r)
				var reply struct {
					Extensions struct {
						RateLimit struct{ Cost *int }
					}
				}
				err = json.Unmarshal(recorder.Body.Bytes(), &reply)
				if err != nil || reply.Extensions.RateLimit.Cost == nil {
					return 0, fmt.Errorf("%w: %s", err, recorder.Body)
				}
				return *reply.Extensions.RateLimit.Cost, nil
			}
			var group sync.WaitGroup
			start := make(chan struct{})
			for caller := range 64 {
				group.Go(func() {
					<-start
					for i := range 12 {
						query, n, friends := queries[(caller+i)%len(queries)], (caller*12+i)%97, i%2 == 0
						variables := map[string]any{"n": n, "x": friends}
						if price, err := ask(query.text, query.operation, variables); err != nil || price != query.price(n, friends) {
							t.Errorf("%s with %v costs %d, not %d: %v", query.text, variables, price, query.price(n, friends), err)
							return
						}
					}
				})
			}
			close(start)
			group.Wait()
		})
	}
}
