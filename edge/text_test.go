package edge_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/gqlgen-ratelimit/ratelimit/edge"
)

// disguises are ways to write a document that gqlparser reads as others do not: each is given what it hides.
var disguises = map[string]func(text string) string{
	"after a text that ends with more than three quotes": func(text string) string { return `{a(x:"""a""""""){a}}` + text },
	"after an empty text and a quote":                    func(text string) string { return `{a(x:"""""""){a}}` + text },
	"with byte order marks": func(text string) string {
		return strings.NewReplacer("...", "...\ufeff", "fragment", "\ufefffragment").Replace(text)
	},
	"after other ends of lines": func(text string) string { return "#\r" + text },
}

func TestADocumentHidesNothingFromTheBoundsThatTheParserReads(t *testing.T) {
	t.Parallel()
	for way, hide := range disguises {
		for rule, text := range map[string]string{
			"tokens":     "{" + strings.Repeat("a ", 2_100) + "}",
			"nesting":    strings.Repeat("{a", 70) + strings.Repeat("}", 70),
			"name":       "{" + strings.Repeat("a", 300) + "}",
			"operations": numbered(20, "query q%d{a}"),
			"fragments":  "{a}" + numbered(130, "fragment f%d on Query{a}"),
			"reach":      "{...f0}" + chain(100, " a"),
		} {
			text = hide(text)
			_, err := parser.ParseQuery(&ast.Source{Input: text})
			require.NoError(t, err, "%s %s", rule, way)
			g := newGuarded(t, edge.DocumentConfig{})
			answer := g.ask(t, "192.0.2.1", text)
			require.Equal(t, "QUERY_LIMIT_EXCEEDED", answer.code(), "%s %s", rule, way)
			require.Equal(t, rule, answer.Errors[0].Extensions["rule"], way)
		}
	}
}

func TestNumbersAndNamesThatNothingSeparatesAreTokensOfTheirOwn(t *testing.T) {
	t.Parallel()
	for _, pair := range []string{"-1", "-1.5", "1a ", "1e5a "} {
		text := "{a(x:[" + strings.Repeat(strings.Repeat(pair, 40)+" ", 30)
		text += "])}"
		_, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: text}, 1_000)
		require.ErrorContains(t, err, "exceeded token limit")
		g := newGuarded(t, edge.DocumentConfig{MaxTokens: 1_000})
		answer := g.ask(t, "192.0.2.1", text)
		require.Equal(t, "QUERY_LIMIT_EXCEEDED", answer.code(), pair)
		require.Equal(t, "tokens", answer.Errors[0].Extensions["rule"], pair)
	}
}
