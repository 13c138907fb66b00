package edge_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/edge"
)

func TestTheExtensionsOfAnOperationAreBounded(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, edge.DocumentConfig{})
	unbounded := newGuarded(t, edge.DocumentConfig{MaxExtensions: edge.None})
	send := func(g *guarded, extensions string) string {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/query", strings.NewReader(`{"query":"{a}","extensions":`+extensions+`}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		g.door.Handler(g).ServeHTTP(w, r)
		return w.Body.String()
	}
	const value = `{"":0},` // two of them
	require.NotContains(t, send(g, `null`), "errors")
	require.NotContains(t, send(g, `{"a":[`+strings.Repeat(value, 127)+`0]}`), "errors", "256 of them, while the document is not in the cache")
	for _, tooMany := range []string{
		`{"a":[` + strings.Repeat(value, 128) + `0]}`,
		`{"a":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`,
		`{"a":{"b":[` + strings.Repeat("{},", 9000) + `0]}}`,
	} {
		refused := send(g, tooMany)
		require.Contains(t, refused, `"QUERY_LIMIT_EXCEEDED"`, "and when it is")
		require.Contains(t, refused, `"rule":"extensions"`)
		require.Contains(t, refused, `"given":257,"layer":"document"`)
		require.NotContains(t, send(unbounded, tooMany), "errors")
	}
}
