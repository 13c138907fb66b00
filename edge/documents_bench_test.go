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

// numbered is a text n times, with the number in the place of each %d.
func numbered(n int, text string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(text, "%d", fmt.Sprint(i)))
	}
	return b.String()
}

// chain has n fragments of which each spreads the next beside other fields, and a last one.
func chain(n int, beside string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "fragment f%d on Query{...f%d%s}", i, i+1, beside)
	}
	fmt.Fprintf(&b, "fragment f%d on Query{a}", n)
	return b.String()
}

// dearest are the documents within the default bounds that take longest to be parsed and validated.
var dearest = map[string]string{
	"operations with a chain of fragments": numbered(16, "query q%d{...f0}") + chain(60, strings.Repeat(" a", 3)),
	"a chain of fragments":                 "{...f0}" + chain(86, ""),
	"one field":                            "{" + strings.Repeat("a ", 1990) + "}",
	"__typename":                           "{" + strings.Repeat("__typename ", 1990) + "}",
	"unknown fields":                       "{" + strings.Repeat("nopeq ", 1990) + "}",
	"aliases":                              "{" + numbered(600, "a%d:a ") + "}",
	"{a}":                                  "{a}",
}

func TestTheDearestDocumentsAreWithinTheBounds(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, edge.DocumentConfig{RememberInvalid: edge.None})
	for name, document := range dearest {
		require.NotEqual(t, "QUERY_LIMIT_EXCEEDED", g.ask(t, "192.0.2.1", document).code(), name)
	}
}

// What parsing and validating takes, in time and memory that stays, beside what the cache takes it for.
func BenchmarkDearestDocuments(b *testing.B) {
	for name, document := range dearest {
		b.Run(name, func(b *testing.B) {
			var parsed *ast.QueryDocument
			parse := func() {
				parsed, _ = parser.ParseQuery(&ast.Source{Input: strings.Clone(document)})
				_ = validator.ValidateWithRules(schema, parsed, validation.Rules())
			}
			before := heap()
			parse()
			kept := float64(heap() - before)
			for b.Loop() {
				parse()
			}
			runtime.KeepAlive(parsed)
			cache := edge.NewDocuments(0)
			cache.Add(b.Context(), document, parsed)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(document)), "ns/byte")
			b.ReportMetric(kept, "kept-B")
			b.ReportMetric(float64(cache.Bytes()), "counted-B")
		})
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(min(m.HeapAlloc, 1<<62))
}
