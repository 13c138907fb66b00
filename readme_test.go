package ratelimit_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// blocks returns the fenced blocks of a language in a page. docs/pages_test.go has the tests of all pages.
func blocks(t *testing.T, page, language string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	var found []string
	for _, fence := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		found = append(found, fence[1])
	}
	require.NotEmpty(t, found)
	return found
}

func TestTheREADMEIsShort(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	require.LessOrEqual(t, len(text), 10_000, "what is longer belongs below docs")
}

func TestTheSchemasInTheDocumentsAreAccepted(t *testing.T) {
	t.Parallel()
	definitions, err := os.ReadFile("schema.graphqls")
	require.NoError(t, err)
	for _, page := range []string{"README.md", filepath.Join("docs", "guide", "pricing.md"), filepath.Join("docs", "guide", "start.md")} {
		accepted := 0
		for _, block := range blocks(t, page, "graphql") {
			if !strings.HasPrefix(block, "type ") {
				continue
			}
			schema, err := gqlparser.LoadSchema(
				&ast.Source{Name: "schema.graphqls", Input: string(definitions)}, &ast.Source{Name: page, Input: block})
			require.NoError(t, err)
			_, err = cost.New(schema, cost.Config{RequireListSizes: true})
			require.NoError(t, err)
			accepted++
		}
		require.Positive(t, accepted, page)
	}
}

// TestTheQueryInTheREADMEHasThePriceInItsMargin prices it against the schema of the example.
func TestTheQueryInTheREADMEHasThePriceInItsMargin(t *testing.T) {
	t.Parallel()
	var sources []*ast.Source
	for _, path := range []string{"schema.graphqls", filepath.Join("example", "schema.graphqls")} {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		sources = append(sources, &ast.Source{Name: path, Input: string(text)})
	}
	schema, err := gqlparser.LoadSchema(sources...)
	require.NoError(t, err)
	query := blocks(t, "README.md", "graphql")[0]
	doc, errs := gqlparser.LoadQueryWithRules(schema, query, nil)
	require.Empty(t, errs)
	estimator, err := cost.New(schema, cost.Config{})
	require.NoError(t, err)
	plan, err := estimator.Compile(doc, doc.Operations[0])
	require.NoError(t, err)
	price, err := plan.Evaluate(nil)
	require.NoError(t, err)

	margin := regexp.MustCompile(`# (\d+) points, with 1 for the query itself`).FindStringSubmatch(query)
	require.Len(t, margin, 2)
	want, err := strconv.ParseInt(margin[1], 10, 64)
	require.NoError(t, err)
	require.Equal(t, want, price.Points())
}
