package edge_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/edge"
)

// evicting fills the cache before gqlgen asks it for a document.
type evicting struct {
	cache *edge.Documents
	full  bool
}

func (*evicting) ExtensionName() string                   { return "Evicting" }
func (*evicting) Validate(graphql.ExecutableSchema) error { return nil }
func (e *evicting) MutateOperationParameters(context.Context, *graphql.RawParams) *gqlerror.Error {
	ctx := context.Background()
	for i := 0; e.full && i < 30_000; i++ {
		text := fmt.Sprintf("{a%d}", i)
		e.cache.Add(ctx, text, &ast.QueryDocument{})
		_, _ = e.cache.Get(ctx, text)
	}
	return nil
}

func TestADocumentThatLeavesTheCacheWhileItsOperationIsReadIsNotParsedAgain(t *testing.T) {
	t.Parallel()
	for _, handled := range []bool{true, false} {
		e := &evicting{}
		g := newGuarded(t, edge.DocumentConfig{}, e)
		e.cache = g.documents
		var h http.Handler = g.Server
		if handled {
			h = g.door.Handler(g.Server)
		}
		ask := func() string {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/query", strings.NewReader(`{"query":"{a}"}`))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Body.String()
		}
		require.Contains(t, ask(), `"a":1`)
		e.full = true
		require.Contains(t, ask(), `"a":1`)
		_, there := g.documents.Get(t.Context(), "{a}")
		require.False(t, there, "it has left")
		require.EqualValues(t, 1, g.validated.Load())
	}
}
