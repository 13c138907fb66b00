package document_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/document"
)

// most is how many bytes a cache has by default.
const most = 64 << 20

func TestACacheOfDocumentsIsBoundedByBytesAndForgetsTheLeastRecentlyUsed(t *testing.T) {
	t.Parallel()
	cache := document.NewCache(64 << 10)
	used := "{ used }"
	cache.Keep(used, &ast.QueryDocument{})
	for i := range 1000 {
		cache.Keep(fmt.Sprintf("{ a%d } # %s", i, strings.Repeat("x", 8<<10)), &ast.QueryDocument{})
		require.NotNil(t, cache.Find(used), "what is used stays")
		require.LessOrEqual(t, cache.Bytes(), 64<<10)
	}
	require.Greater(t, cache.Len(), 1)
	require.Nil(t, cache.Find(fmt.Sprintf("{ a%d } # %s", 0, strings.Repeat("x", 8<<10))))
}

func TestAHashLeadsToATextAsLongAsItsDocumentIsKept(t *testing.T) {
	t.Parallel()
	cache := document.NewCache(64 << 10)
	text := func(i int) string { return fmt.Sprintf("{ a%d } # %s", i%40, strings.Repeat("x", 8<<10)) }
	for i := range 400 {
		cache.Keep(text(i*7), &ast.QueryDocument{})
		found := 0
		for j := range 40 {
			if kept, ok := cache.Text(sha256.Sum256([]byte(text(j)))); ok {
				require.Equal(t, text(j), kept)
				require.NotNil(t, cache.Find(kept))
				found++
			}
		}
		require.Equal(t, cache.Len(), found)
	}
}

func TestADocumentThatIsLargerThanTheCacheDrivesOutNothing(t *testing.T) {
	t.Parallel()
	cache := document.NewCache(16 << 10)
	cache.Keep("{ a }", &ast.QueryDocument{})
	cache.Keep("{"+strings.Repeat("a ", 1000)+"}", &ast.QueryDocument{})
	require.Equal(t, 1, cache.Len())
}

// TestDocumentsOfOneDoNotDriveOutThoseThatOthersUse has an attacker who fills the cache three times over with the largest of documents,
// each sent twice.
func TestDocumentsOfOneDoNotDriveOutThoseThatOthersUse(t *testing.T) {
	t.Parallel()
	cache := document.NewCache(most)
	send := func(text string) (cached bool) {
		if cached = cache.Find(text) != nil; !cached {
			cache.Keep(text, &ast.QueryDocument{})
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
	require.LessOrEqual(t, cache.Bytes(), most)
}

func TestDocumentsThatAreUsedNoMoreMakeRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cache := document.NewCache(1 << 20)
		for day := range 3 {
			found := 0
			for range 3 {
				for i := range 300 {
					text := fmt.Sprintf("{ day%d n%d }", day, i)
					if cache.Find(text) != nil {
						found++
					} else {
						cache.Keep(text, &ast.QueryDocument{})
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
	cache, second := document.NewCache(most), &ast.QueryDocument{}
	cache.Keep("{ a }", &ast.QueryDocument{})
	once := cache.Bytes()
	cache.Keep("{ a }", second)
	require.Equal(t, once, cache.Bytes())
	require.Same(t, second, cache.Find("{ a }").Document)
}
