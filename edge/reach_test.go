package edge_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql/introspection"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator/core"

	"github.com/gqlgen-ratelimit/ratelimit/edge"
)

// reachOf measures a document with more and more room.
func reachOf(document string) int {
	for most := 0; ; most = 2*most + 1 {
		if reached := edge.ReachOf(document, most); reached > most {
			continue
		} else if most == 0 {
			return 0
		}
		// It is more than the half of it.
		low, high := (most-1)/2, most
		for low+1 < high {
			if middle := (low + high) / 2; edge.ReachOf(document, middle) > middle {
				low = middle
			} else {
				high = middle
			}
		}
		return high
	}
}

func TestTheReachIsWhatAWalkerComesTo(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n := 1 + r.IntN(8)
		spreads := func() string {
			var b strings.Builder
			for range r.IntN(4) {
				// One that is not defined, fragments that spread themselves, and one of the name of a keyword.
				b.WriteString([]string{" ...f%d", " ...on Query{...f%d}", " q{...f%d}", " ...@include(if:true){q{...f%d}}", " ...fragment # ...f%d\n"}[r.IntN(5)])
			}
			filled := b.String()
			for strings.Contains(filled, "%d") {
				filled = strings.Replace(filled, "%d", fmt.Sprint(r.IntN(n+1)), 1)
			}
			return filled
		}
		var b strings.Builder
		for i := range 1 + r.IntN(3) {
			fmt.Fprintf(&b, "query q%d($i:In={x:[1]}){ FIELD%s}", i, spreads())
		}
		b.WriteString("fragment fragment on Query{ FIELD" + spreads() + "}") //nolint:dupword // it has that name
		for i := range n {
			fmt.Fprintf(&b, "fragment f%d on Query{%s FIELD FIELD}", i, spreads())
		}
		text := b.String()
		plain, aliased := strings.ReplaceAll(text, "FIELD", "a"), strings.ReplaceAll(text, "FIELD", "x:a")
		parsed, err := parser.ParseQuery(&ast.Source{Input: plain})
		require.NoError(t, err, plain)
		visits, events := 0, &core.Events{}
		events.OnField(func(_ *core.Walker, field *ast.Field) {
			if field.Name == "a" {
				visits++
			}
		})
		core.Walk(schema, parsed, events)
		// An alias has two tokens.
		require.Equal(t, 2*visits, reachOf(aliased)-reachOf(plain), plain)
	}
}

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

func TestCountingAReachEndsWhereItIsTooMuch(t *testing.T) {
	t.Parallel()
	for _, n := range []int{100, 1000, 10_000} {
		reached := edge.ReachOf("{...f0}"+chain(n, ""), 100_000)
		require.LessOrEqual(t, reached, 100_000+9*n)
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
	largest := 0
	for path, document := range documents {
		largest = max(largest, reachOf(document))
		require.Less(t, reachOf(document), most/8, path)
		g := newGuarded(t, edge.DocumentConfig{})
		require.NotEqual(t, "name", fmt.Sprint(g.ask(t, "192.0.2.1", document).code()), path)
	}
	t.Logf("%d documents reach %d tokens at most", len(documents), largest)
}
