package docs_test

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

// TestThePageOnPricingPricesItsQuery prices the first query of the page by the first schema with directives.
func TestThePageOnPricingPricesItsQuery(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("guide", "pricing.md"))
	require.NoError(t, err)
	directives, err := os.ReadFile(filepath.Join(root, "schema.graphqls"))
	require.NoError(t, err)
	said := regexp.MustCompile(`this query costs (\d+) points`).FindStringSubmatch(string(text))
	require.Len(t, said, 2)
	want, err := strconv.ParseInt(said[1], 10, 64)
	require.NoError(t, err)

	var query, schema string
	for _, block := range (page{"pricing.md", string(text)}).blocks("graphql") {
		switch {
		case query == "" && strings.HasPrefix(block, "{"):
			query = block
		case schema == "" && strings.Contains(block, "repositories("):
			schema = block
		}
	}
	loaded := gqlparser.MustLoadSchema(&ast.Source{Input: string(directives) + schema})
	estimator, err := cost.New(loaded, cost.Config{})
	require.NoError(t, err)
	document, errs := gqlparser.LoadQueryWithRules(loaded, query, nil)
	require.Nil(t, errs)
	plan, err := estimator.Plan(document, document.Operations[0])
	require.NoError(t, err)
	price, err := plan.Evaluate(nil)
	require.NoError(t, err)
	require.Equal(t, want, price.Points())
}
