package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/99designs/gqlgen/graphql/handler/lru"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// besideInEachOrder runs a test on a server that uses another extension after the limiter, as the
// README advises, and on one that uses it before.
func besideInEachOrder(t *testing.T, other func() graphql.HandlerExtension, test func(*testing.T, *fixture)) {
	t.Helper()
	for name, limiterFirst := range map[string]bool{"the limiter is used first": true, "the limiter is used last": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			extensions := []graphql.HandlerExtension{
				ratelimit.New(ratelimit.Config{
					Store: f.store, Policy: compiledPolicy(t), Subject: byTenantHeader, Observe: ratelimit.ObserveConfig{Logger: discard},
				}),
				other(),
			}
			if !limiterFirst {
				slices.Reverse(extensions)
			}
			f.serve(testserver.NewExecutableSchema(testserver.Config{Resolvers: f.resolver}), extensions...)
			test(t, f)
		})
	}
}

// serve puts another server in the place of that of the fixture, with these extensions and no other.
func (f *fixture) serve(schema graphql.ExecutableSchema, extensions ...graphql.HandlerExtension) {
	f.t.Helper()
	f.server = handler.New(schema)
	f.server.AddTransport(transport.Websocket{})
	f.server.AddTransport(transport.POST{})
	for _, e := range extensions {
		f.server.Use(e)
	}
	server := httptest.NewServer(ratelimit.Handler(f.server))
	f.t.Cleanup(server.Close)
	f.url = server.URL
}

func TestWhatTheComplexityLimitRefusesIsNotCharged(t *testing.T) {
	t.Parallel()
	complexityLimit := func() graphql.HandlerExtension { return extension.FixedComplexityLimit(5) }
	besideInEachOrder(t, complexityLimit, func(t *testing.T, f *fixture) {
		t.Helper()
		// 6 by the complexity of gqlgen, which counts scalars and no lists.
		const refused = `{ users(first: 20) { id name friends(first: 1) { id name } } }`
		answer := f.post(request{Query: refused})
		require.Equal(t, "COMPLEXITY_LIMIT_EXCEEDED", answer.errorCode(t))
		require.Equal(t, http.StatusOK, answer.Status)
		require.Empty(t, answer.rateLimit(t))
		require.Empty(t, answer.Header.Get("RateLimit"))
		// Neither is what the limiter would refuse too: the complexity limit is asked before.
		answer = f.post(request{Query: refused, Tenant: "blocked"})
		require.Equal(t, "COMPLEXITY_LIMIT_EXCEEDED", answer.errorCode(t))

		answers := f.dial("free", nil).run("1", request{Query: refused})
		require.Contains(t, answers[0], "COMPLEXITY_LIMIT_EXCEEDED")
		require.NotContains(t, strings.Join(answers, ""), "rateLimit")
		require.Empty(t, f.store.Takes())
		require.Zero(t, f.resolver.Asked.Load())
	})
}

func TestWhatTheComplexityLimitAdmitsIsChargedAsWithoutIt(t *testing.T) {
	t.Parallel()
	complexityLimit := func() graphql.HandlerExtension { return extension.FixedComplexityLimit(5) }
	besideInEachOrder(t, complexityLimit, func(t *testing.T, f *fixture) {
		t.Helper()
		const admitted = `{ users(first: 40) { id } }`
		require.EqualValues(t, 42, f.post(request{Query: admitted}).rateLimit(t)["charged"])
		require.EqualValues(t, 42, f.post(request{Query: admitted}).rateLimit(t)["charged"])
		answer := f.post(request{Query: admitted})
		require.Equal(t, ratelimitclient.CodeRateLimited, answer.errorCode(t))
		require.Equal(t, http.StatusTooManyRequests, answer.Status)
	})
}

func TestAPersistedQueryCostsWhatItsTextCosts(t *testing.T) {
	t.Parallel()
	persisted := func() graphql.HandlerExtension {
		return extension.AutomaticPersistedQuery{Cache: lru.New[string](10)}
	}
	besideInEachOrder(t, persisted, func(t *testing.T, f *fixture) {
		t.Helper()
		const query = `{ users(first: 3) { id } }`
		sum := sha256.Sum256([]byte(query))
		hash := map[string]any{"persistedQuery": map[string]any{"version": 1, "sha256Hash": hex.EncodeToString(sum[:])}}

		unknown := postJSON(t, f, map[string]any{"extensions": hash})
		require.Equal(t, "PERSISTED_QUERY_NOT_FOUND", unknown.errorCode(t))
		require.Empty(t, unknown.rateLimit(t))
		require.Empty(t, f.store.Takes())

		text := postJSON(t, f, map[string]any{"extensions": hash, "query": query})
		require.EqualValues(t, 5, text.rateLimit(t)["charged"])
		again := postJSON(t, f, map[string]any{"extensions": hash})
		require.EqualValues(t, 5, again.rateLimit(t)["charged"])
		require.Len(t, f.store.Takes(), 2)
	})
}

func TestIntrospectionIsPricedWhereverItsExtensionStands(t *testing.T) {
	t.Parallel()
	const query = `{ __schema { queryType { name } } }`
	without := newFixture(t, nil).post(request{Query: query}).rateLimit(t)
	require.Positive(t, without["charged"])

	introspection := func() graphql.HandlerExtension { return extension.Introspection{} }
	besideInEachOrder(t, introspection, func(t *testing.T, f *fixture) {
		t.Helper()
		answer := f.post(request{Query: query})
		require.Contains(t, answer.Body, `"name":"Query"`)
		require.Equal(t, without["charged"], answer.rateLimit(t)["charged"])
	})
}

// postJSON sends a body that is no ordinary request.
func postJSON(t *testing.T, f *fixture, body any) reply {
	t.Helper()
	encoded, err := json.Marshal(body)
	require.NoError(t, err)
	httpRequest, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url, strings.NewReader(string(encoded)))
	require.NoError(t, err)
	httpRequest.Header.Set("Content-Type", "application/json")
	httpRequest.Header.Set("X-Tenant", "free")
	response, err := f.client.Do(httpRequest)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return reply{Status: response.StatusCode, Header: response.Header, Body: string(content)}
}
