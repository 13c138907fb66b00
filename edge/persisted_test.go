package edge_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/edge"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// persisting is a server whose clients persist their queries.
type persisting struct {
	documents *edge.Documents
	handler   http.Handler
}

func newPersisting(t *testing.T, bytes int) *persisting {
	t.Helper()
	policy, err := tiers.Compile(tiers.Policy{Default: "free", Tiers: map[string]tiers.Tier{
		"free": {Limits: map[string]*tiers.Limit{"minute": {Capacity: 1_000_000, Per: tiers.Minute}}},
	}})
	require.NoError(t, err)
	limiter := ratelimit.New(ratelimit.Config{
		Store: bucket.NewMemory(bucket.MemoryConfig{}), Policy: policy,
		Subject: func(_ context.Context, r *ratelimit.Request) (ratelimit.Subject, error) {
			return ratelimit.Subject{Tenant: r.Header.Get("X-Tenant")}, nil
		},
	})
	documents := edge.NewDocuments(bytes)
	door, err := edge.New(edge.Config{
		Documents: edge.DocumentConfig{Cache: documents, Limiter: limiter},
		Address:   edge.AddressConfig{Limits: []bucket.Limit{}},
	})
	require.NoError(t, err)
	srv := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
	srv.AddTransport(transport.POST{})
	srv.SetQueryCache(documents)
	srv.Use(extension.AutomaticPersistedQuery{Cache: documents.Persisted()})
	srv.Use(door)
	srv.Use(limiter)
	return &persisting{documents, door.Handler(ratelimit.Handler(srv))}
}

// ask sends the hash of a text, and the text with it or not.
func (p *persisting) ask(t *testing.T, tenant, text string, withText bool) string {
	t.Helper()
	sum := sha256.Sum256([]byte(text))
	body := map[string]any{"extensions": map[string]any{"persistedQuery": map[string]any{"version": 1, "sha256Hash": hex.EncodeToString(sum[:])}}}
	if withText {
		body["query"] = text
	}
	encoded, err := json.Marshal(body)
	require.NoError(t, err)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/query", strings.NewReader(string(encoded)))
	r.Header.Set("Content-Type", "application/json")
	if tenant != "" {
		r.Header.Set("X-Tenant", tenant)
	}
	w := httptest.NewRecorder()
	p.handler.ServeHTTP(w, r)
	return w.Body.String()
}

const unknownHash = "PERSISTED_QUERY_NOT_FOUND"

func TestATextThatIsRefusedDrivesOutNoPersistedQuery(t *testing.T) {
	t.Parallel()
	p := newPersisting(t, 1<<20)
	const mine = `{ me { id name } }`
	require.Contains(t, p.ask(t, "acme", mine, false), unknownHash)
	require.Contains(t, p.ask(t, "acme", mine, true), `"data"`)
	require.NotContains(t, p.ask(t, "acme", mine, false), unknownHash)
	bytes := p.documents.Bytes()

	padding := "#" + strings.Repeat("y", 5_000)
	for i := range 30 {
		for _, text := range []string{fmt.Sprint("{ me { id } }", padding, i), fmt.Sprint("{ nope }", padding, i)} {
			require.NotContains(t, p.ask(t, "", text, true), `"data":{`, "nobody pays for it")
			require.Contains(t, p.ask(t, "", text, false), unknownHash)
		}
	}
	require.Equal(t, bytes, p.documents.Bytes())
	require.NotContains(t, p.ask(t, "acme", mine, false), unknownHash)
}

func TestAPersistedQueryLeavesWithItsDocument(t *testing.T) {
	t.Parallel()
	p := newPersisting(t, 1<<20)
	padding := "#" + strings.Repeat("y", 50_000)
	text := func(i int) string { return fmt.Sprint("{ me { id } }", padding, i) }
	for i := range 25 {
		require.Contains(t, p.ask(t, "acme", text(i), true), `"data"`)
		require.LessOrEqual(t, p.documents.Bytes(), 1<<20)
	}
	require.Contains(t, p.ask(t, "acme", text(0), false), unknownHash)
	require.NotContains(t, p.ask(t, "acme", text(24), false), unknownHash)
}

func TestAHashThatIsNoneIsUnknown(t *testing.T) {
	t.Parallel()
	persisted := edge.NewDocuments(0).Persisted()
	for _, digits := range []string{"", "abc", strings.Repeat("g", 64), strings.Repeat("a", 63), strings.Repeat("a", 65), strings.Repeat("a", 64)} {
		_, found := persisted.Get(t.Context(), digits)
		require.False(t, found, digits)
	}
}
