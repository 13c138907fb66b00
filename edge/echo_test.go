package edge_test

import (
	"bytes"
	"encoding/json"
	"mime/multipart"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/edge"
)

// post sends a body to a server behind its door, and returns how many bytes the answer has.
func (g *guarded) post(t *testing.T, body string) int {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/query", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	g.door.Handler(g).ServeHTTP(w, r)
	require.True(t, json.Valid(w.Body.Bytes()))
	require.Contains(t, w.Body.String(), `"errors"`)
	return w.Body.Len()
}

func TestAnAnswerDoesNotRepeatWhatIsLong(t *testing.T) {
	t.Parallel()
	// Each is six bytes in JSON.
	long := strings.Repeat("<", 60_000)
	for name, body := range map[string]string{
		"a body that is not JSON":   "{" + long,
		"a batch":                   `[{"query": "{a}"}, "` + long + `"]`,
		"a batch of controls":       `[` + strings.Repeat("\x01\x1b", 30_000),
		"the name of an operation":  `{"query": "query Q {a}", "operationName": "` + long + `"}`,
		"the name of a field":       `{"query": "query ($x: In) {b(x: $x)}", "variables": {"x": {"` + long + `": 1}}}`,
		"a value of another type":   `{"query": "query ($x: In) {b(x: $x)}", "variables": {"x": {"x": ["` + long + `"]}}}`,
		"the value of an enum":      `{"query": "query ($e: E) {e(e: $e)}", "variables": {"e": "` + long + `"}}`,
		"the extensions of a query": `{"query": "{a}", "extensions": "` + long + `"}`,
	} {
		g := newGuarded(t, edge.DocumentConfig{})
		require.Less(t, g.post(t, body), 8<<10, name)
		// The second time the document would be in a cache, or known.
		require.Less(t, g.post(t, body), 8<<10, name)
	}
	g := newGuarded(t, edge.DocumentConfig{MaxErrors: edge.None})
	require.Greater(t, g.post(t, "{"+long), 6*len(long), "without a bound it is all there")
}

func TestTheAnswerToAnUploadThatCannotBeReadDoesNotRepeatWhatIsLong(t *testing.T) {
	t.Parallel()
	s := serve(t, edge.Config{}, nil)
	upload := func(name string) answer {
		var form bytes.Buffer
		w := multipart.NewWriter(&form)
		require.NoError(t, w.WriteField("operations", `{"query":"{ me { id } }"}`))
		require.NoError(t, w.WriteField("map", `{"`+name+`":[]}`))
		require.NoError(t, w.WriteField(name, "x"))
		require.NoError(t, w.Close())
		return s.post(t, &form, "Content-Type", w.FormDataContentType())
	}
	require.Contains(t, upload("short").body, "short", "gqlgen tells what is wrong")
	refused := upload(strings.Repeat("<", 50_000))
	require.Less(t, len(refused.body), 1<<10)
	require.Contains(t, refused.body, "the upload cannot be read")
}
