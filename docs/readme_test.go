package docs_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// readme returns the README as a page.
func readme(t *testing.T) page {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	return page{"README.md", string(text)}
}

// TestTheRefusalOfTheREADMEIsWhatAClientGets asks a tenant of 100 points a minute for 60, and then for 52.
func TestTheRefusalOfTheREADMEIsWhatAClientGets(t *testing.T) {
	t.Parallel()
	policy, err := tiers.Compile(tiers.Policy{Default: "free", Tiers: map[string]tiers.Tier{
		"free": {Limits: map[string]*tiers.Limit{"minute": {Capacity: 100, Per: tiers.Minute}}},
	}})
	require.NoError(t, err)
	srv := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
	srv.AddTransport(transport.POST{})
	srv.Use(ratelimit.New(ratelimit.Config{
		Store:   bucket.NewMemory(bucket.MemoryConfig{Clock: (&ratelimittest.Clock{}).Now}),
		Policy:  policy,
		Subject: ratelimit.ByPeer(ratelimit.PeerConfig{}),
	}))
	var last *httptest.ResponseRecorder
	for _, users := range []string{"58", "50"} {
		request := httptest.NewRequest(http.MethodPost, "/query", strings.NewReader(`{"query": "{ users(first: `+users+`) { name } }"}`))
		request.Header.Set("Content-Type", "application/json")
		last = httptest.NewRecorder()
		ratelimit.Handler(srv).ServeHTTP(last, request)
	}
	require.Equal(t, http.StatusTooManyRequests, last.Code)
	require.Contains(t, readme(t).text, "`Retry-After: "+last.Header().Get("Retry-After")+"`")

	var shown, got map[string]any
	require.NoError(t, json.Unmarshal([]byte(readme(t).blocks("json")[0]), &shown))
	require.NoError(t, json.Unmarshal(last.Body.Bytes(), &got))
	for _, answer := range []map[string]any{shown, got} {
		delete(answer["errors"].([]any)[0].(map[string]any)["extensions"].(map[string]any), "refusalId")
		delete(answer["errors"].([]any)[0].(map[string]any), "path")
	}
	require.Equal(t, shown["errors"], got["errors"])
	for key, value := range shown["extensions"].(map[string]any)["rateLimit"].(map[string]any) {
		if key != "…" {
			require.Equal(t, value, got["extensions"].(map[string]any)["rateLimit"].(map[string]any)[key], key)
		}
	}
}

// TestTheOverheadInTheREADMEStandsInTheReport compares it with the table of the whole server.
func TestTheOverheadInTheREADMEStandsInTheReport(t *testing.T) {
	t.Parallel()
	report, err := os.ReadFile(filepath.Join("reports", "performance.md"))
	require.NoError(t, err)
	figures := regexp.MustCompile(`([\d.]+ µs) of processor time on a request, and ([\d.]+ µs)\s+more`).FindStringSubmatch(readme(t).text)
	require.Len(t, figures, 3)
	require.Regexp(t, `(?m)^\| gqlgen \|.* `+figures[1]+` \|`, string(report))
	require.Regexp(t, `(?m)^\| \*\*gqlgen with ratelimit\*\* \|.* `+figures[2]+` \|`, string(report))
}
