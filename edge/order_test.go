package edge_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/edge"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// ordered serves with a door and a limiter, whose tenants may send a single request a minute.
func ordered(t *testing.T, logged *lines, order func(door, limiter graphql.HandlerExtension) []graphql.HandlerExtension) (ask func(document string) string) {
	t.Helper()
	policy, err := tiers.Compile(tiers.Policy{Default: "free", Tiers: map[string]tiers.Tier{
		"free": {Limits: map[string]*tiers.Limit{"minute": {Capacity: 1, Per: tiers.Minute, Unit: string(bucket.Requests)}}},
	}})
	require.NoError(t, err)
	limiter := ratelimit.New(ratelimit.Config{
		Store: bucket.NewMemory(bucket.MemoryConfig{}), Policy: policy, Subject: ratelimit.ByPeer(ratelimit.PeerConfig{}),
		Observe: ratelimit.ObserveConfig{Logger: slog.New(slog.DiscardHandler)},
	})
	documents := edge.NewDocuments(0)
	door, err := edge.New(edge.Config{
		Documents: edge.DocumentConfig{Cache: documents, MaxParsing: 1, MaxWaiting: edge.None, RememberInvalid: edge.None},
		Observe:   edge.ObserveConfig{Logger: slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelWarn}))},
	})
	require.NoError(t, err)
	srv := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
	srv.AddTransport(transport.POST{})
	srv.SetQueryCache(documents)
	for _, extension := range order(door, limiter) {
		srv.Use(extension)
	}
	h := door.Handler(ratelimit.Handler(srv))
	return func(document string) string {
		body, err := json.Marshal(map[string]string{"query": document})
		require.NoError(t, err)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(string(body)))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Body.String()
	}
}

func TestADoorAfterTheLimiterIsToldWithTheFirstOperation(t *testing.T) {
	t.Parallel()
	logged := &lines{}
	ask := ordered(t, logged, func(door, limiter graphql.HandlerExtension) []graphql.HandlerExtension {
		return []graphql.HandlerExtension{limiter, door}
	})
	for range 3 {
		require.Contains(t, ask("{ me { id } }"), "call srv.Use(door) and then srv.Use(limiter)", "it gives the slot back each time")
	}
	require.Equal(t, 1, strings.Count(logged.String(), "srv.Use(door)"), logged.String())
}

func TestADoorBeforeTheLimiterSeesWhatThatRefuses(t *testing.T) {
	t.Parallel()
	logged := &lines{}
	ask := ordered(t, logged, func(door, limiter graphql.HandlerExtension) []graphql.HandlerExtension {
		return []graphql.HandlerExtension{door, limiter}
	})
	require.Contains(t, ask("{ me { id } }"), `"data":{"me":{"id":"1"}}`)
	for range 3 {
		require.Contains(t, ask("{ nope }"), "RATE_LIMITED", "a slot for parsing is free again, although the answer is a refusal")
	}
	require.NotContains(t, logged.String(), "srv.Use(door)")
}
