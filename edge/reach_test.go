package edge_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql/introspection"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/edge"
)

// found are documents within all other bounds that took a server hundreds of milliseconds.
var found = map[string]string{
	"a long name in the last fragment":    numbered(16, "query q%d{...f0}") + chainTo(100, strings.Repeat("x", 60_000)),
	"a long text in the last fragment":    numbered(16, "query q%d{...f0}") + chainTo(100, `b(x:"`+strings.Repeat("x", 60_000)+`")`),
	"missing fields in the last fragment": "{...f0}" + chainTo(100, strings.Repeat(" w", 600)),
	"operations with a chain":             numbered(16, "query q%d{...f0}") + chain(127, strings.Repeat(" a", 3)),
}

// chainTo is a chain whose last fragment selects something.
func chainTo(n int, last string) string { return strings.ReplaceAll(chain(n, ""), "{a}", "{"+last+"}") }

func TestDocumentsThatReachTooMuchAreRefusedUnread(t *testing.T) {
	t.Parallel()
	for name, document := range found {
		g := newGuarded(t, edge.DocumentConfig{})
		refused := g.ask(t, "192.0.2.1", document)
		require.Equal(t, "QUERY_LIMIT_EXCEEDED", refused.code(), name)
		require.Contains(t, []any{"name", "reach"}, refused.Errors[0].Extensions["rule"], name)
		require.Zero(t, g.validated.Load(), name)
	}
}

func TestNoDocumentOfAClientComesNearTheBounds(t *testing.T) {
	t.Parallel()
	const most = 32_000 // the default
	documents := map[string]string{"introspection": introspection.Query}
	for _, folder := range []string{"../example", "../cmd", "../cost/testdata", "../contrib"} {
		require.NoError(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && filepath.Ext(path) == ".graphql" {
				text, err := os.ReadFile(path)
				documents[path] = string(text)
				return err
			}
			return err
		}))
	}
	require.Greater(t, len(documents), 15)
	for path, document := range documents {
		g := newGuarded(t, edge.DocumentConfig{MaxReach: most / 8})
		require.NotEqual(t, "QUERY_LIMIT_EXCEEDED", g.ask(t, "192.0.2.1", document).code(), path)
	}
}
