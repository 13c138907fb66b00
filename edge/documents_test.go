package edge_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/edge"
)

func TestACacheOfDocumentsIsBoundedByBytesAndForgetsTheLeastRecentlyUsed(t *testing.T) {
	t.Parallel()
	ctx, cache := context.Background(), edge.NewDocuments(64<<10)
	used := "{ used }"
	cache.Add(ctx, used, &ast.QueryDocument{})
	for i := range 1000 {
		cache.Add(ctx, fmt.Sprintf("{ a%d } # %s", i, strings.Repeat("x", 8<<10)), &ast.QueryDocument{})
		_, found := cache.Get(ctx, used)
		require.True(t, found, "what is used stays")
		require.LessOrEqual(t, cache.Bytes(), 64<<10)
	}
	require.Greater(t, cache.Len(), 1)
	_, found := cache.Get(ctx, fmt.Sprintf("{ a%d } # %s", 0, strings.Repeat("x", 8<<10)))
	require.False(t, found)
}

func TestADocumentThatIsLargerThanTheCacheDrivesOutNothing(t *testing.T) {
	t.Parallel()
	ctx, cache := context.Background(), edge.NewDocuments(16<<10)
	cache.Add(ctx, "{ a }", &ast.QueryDocument{})
	cache.Add(ctx, "{"+strings.Repeat("a ", 1000)+"}", &ast.QueryDocument{})
	require.Equal(t, 1, cache.Len())
}

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

// TestDocumentsOfOneDoNotDriveOutThoseThatOthersUse has an attacker who fills the cache three times over with the largest of documents,
// each sent twice.
func TestDocumentsOfOneDoNotDriveOutThoseThatOthersUse(t *testing.T) {
	t.Parallel()
	ctx, cache := context.Background(), edge.NewDocuments(0)
	send := func(text string) (cached bool) {
		if _, cached = cache.Get(ctx, text); !cached {
			cache.Add(ctx, text, &ast.QueryDocument{})
		}
		return cached
	}
	honest := func(i int) string { return fmt.Sprintf("{ honest%d %s}", i, strings.Repeat("a ", 100)) }
	for range 4 {
		for i := range 300 {
			send(honest(i))
		}
	}
	large := strings.Repeat("a ", 1990)
	for i := range 72 * 3 {
		for range 2 {
			send(fmt.Sprintf("{ attack%d %s}", i, large))
		}
	}
	for i := range 300 {
		require.True(t, send(honest(i)), "document %d", i)
	}
	require.LessOrEqual(t, cache.Bytes(), edge.DefaultDocumentBytes)
}

func TestDocumentsThatAreUsedNoMoreMakeRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cache := t.Context(), edge.NewDocuments(1<<20)
		for day := range 3 {
			found := 0
			for range 3 {
				for i := range 300 {
					text := fmt.Sprintf("{ day%d n%d }", day, i)
					if _, cached := cache.Get(ctx, text); cached {
						found++
					} else {
						cache.Add(ctx, text, &ast.QueryDocument{})
					}
				}
			}
			require.LessOrEqual(t, cache.Bytes(), 1<<20)
			require.Equal(t, 600, found, "of day %d: each is there the second and the third time", day)
			time.Sleep(11 * time.Minute) //nolint:forbidigo // in a bubble
		}
	})
}

func TestADocumentThatIsAddedAgainCountsOnce(t *testing.T) {
	t.Parallel()
	ctx, cache, second := context.Background(), edge.NewDocuments(0), &ast.QueryDocument{}
	cache.Add(ctx, "{ a }", &ast.QueryDocument{})
	once := cache.Bytes()
	cache.Add(ctx, "{ a }", second)
	require.Equal(t, once, cache.Bytes())
	found, _ := cache.Get(ctx, "{ a }")
	require.Same(t, second, found)
}
