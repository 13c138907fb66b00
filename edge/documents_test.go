package edge_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"

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
