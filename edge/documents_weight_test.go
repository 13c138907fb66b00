package edge_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"

	"github.com/gqlgen-ratelimit/ratelimit/edge"
	"github.com/gqlgen-ratelimit/ratelimit/validation"
)

// heaviest are documents that take much memory for what they say, each of its own kind.
func heaviest() map[string]string {
	fill := func(n int, text string) string { return strings.Repeat(text, n) }
	return map[string]string{
		"one field":           "{" + fill(1990, "a ") + "}",
		"__typename":          "{" + fill(1990, "__typename ") + "}",
		"aliases":             "{" + numbered(650, "a%d:a ") + "}",
		"comments":            "{a" + fill(20_000, "#\n") + "}",
		"comments of one":     "{" + fill(20_000, "#\n") + "a}",
		"comments of fields":  "{" + fill(1990, "#\na ") + "}",
		"nested selections":   fill(60, "{a") + fill(60, "}"),
		"inline fragments":    "{" + fill(490, "...{a}") + "}",
		"spreads":             "{" + fill(990, "...f ") + "} fragment f on Query{a}",
		"fragments":           "{a}" + numbered(128, "fragment f%d on Query{a}"),
		"operations":          numbered(16, "query q%d{a}"),
		"variables":           "query(" + numbered(480, "$v%d:Int ") + "){a}",
		"variables of lists":  "query(" + numbered(180, "$v%d:[[Int!]!]=1 ") + "){a}",
		"directives":          "{a" + fill(990, "@a") + "}",
		"conditions":          "{" + fill(280, "a@skip(if:true)") + "}",
		"a list":              "{a(x:[" + fill(1980, "1 ") + "])}",
		"lists in lists":      "{a(x:" + fill(60, "[") + fill(1800, "1 ") + fill(60, "]") + ")}",
		"empty lists":         "{a(x:[" + fill(990, "[]") + "])}",
		"objects":             "{a(x:{" + fill(650, "b:1 ") + "})}",
		"objects in objects":  "{a(x:" + fill(60, "{b:") + "1" + fill(60, "}") + ")}",
		"arguments":           "{a(" + fill(650, "b:1 ") + ")}",
		"fields of arguments": "{" + fill(320, "a(b:1)") + "}",
		"strings":             "{a(x:[" + fill(990, `""`+" ") + "])}",
		"a string":            `{a(x:"` + fill(60_000, "x") + `")}`,
		"a string of escapes": `{a(x:"` + fill(30_000, `\n`) + `")}`,
		"a block string":      `{a(x:"""` + fill(30_000, "x\n") + `""")}`,
		"a long name":         "{" + fill(60_000, "x") + "}",
		"numbers in a row":    "{a(x:[" + fill(30_000, "-1") + "])}",
		"after seven quotes":  `{a(x:"""""""){` + fill(1990, "a ") + "}}",
	}
}

// add has a cache keep a document of the text, with a number so that it is another one.
func add(t *testing.T, cache *edge.Documents, text string, i int) {
	t.Helper()
	text = fmt.Sprintf("%s #%d", text, i)
	document, err := parser.ParseQuery(&ast.Source{Input: text})
	require.NoError(t, err, text)
	// Whatever is wrong with it, validation adds to what stays.
	_ = validator.ValidateWithRules(schema, document, validation.Rules())
	cache.Add(t.Context(), text, document)
}

// Not parallel: these tests read the heap of the process.
func TestADocumentCountsForWhatItTakesInMemory(t *testing.T) {
	for name, text := range heaviest() {
		const copies = 8
		cache := edge.NewDocuments(1 << 30)
		before := heap()
		for i := range copies {
			add(t, cache, text, i)
		}
		taken, counted := float64(heap()-before)/copies, float64(cache.Bytes())/copies
		t.Logf("%-20s %6d bytes: takes %8.0f, counted %8.0f: %.2f", name, len(text), taken, counted, taken/counted)
		require.LessOrEqual(t, taken, counted, name)
		runtime.KeepAlive(cache)
	}
}

func TestWhateverDocumentsACacheIsGivenItTakesNoMoreMemoryThanItsBound(t *testing.T) {
	const most, copies = 8 << 20, 6
	cache := edge.NewDocuments(most)
	before := heap()
	for name, text := range heaviest() {
		for i := range copies {
			add(t, cache, text, i)
		}
		require.LessOrEqual(t, heap()-before, int64(most), name)
	}
	require.Greater(t, cache.Bytes(), most/2)
	runtime.KeepAlive(cache)
}
