package cost_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

func TestThePlanNamesTheVariablesOnWhichThePriceCanDepend(t *testing.T) {
	t.Parallel()
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: `
		type Query {
			users(first: Int, after: String, page: Page): [User!]!
			find(text: String, filter: Filter): User
		}
		type User { name: String! }
		input Page { size: Int }
		input Filter { text: String, deep: Boolean }`})
	users := cost.ListSize{SlicingArguments: []string{"first", "page.size"}, RequireOneSlicingArgument: new(bool)}
	cfg := cost.Config{
		ListSizes: map[string]cost.ListSize{"Query.users": users},
		Weights:   map[string]float64{"Query.find(text:)": 2, "Filter.deep": 3},
	}
	for query, want := range map[string][]string{
		`query ($n: Int!) { users(first: $n) { name } }`:                                           {"n"},
		`query ($a: String!) { users(first: 1, after: $a) { name } }`:                              nil,
		`query ($p: Page!) { users(page: $p) { name } }`:                                           {"p"},
		`query ($n: Int!) { users(page: {size: $n}) { name } }`:                                    {"n"},
		`query ($b: Boolean!) { users(first: 1) @include(if: $b) { name } }`:                       {"b"},
		`query ($f: Filter!) { find(filter: $f) { name } }`:                                        {"f"},
		`query ($t: String) { find(text: $t) { name } }`:                                           {"t"},
		`query ($z: Int!, $a: Int!) { z: users(first: $z) { name } a: users(first: $a) { name } }`: {"a", "z"},
	} {
		doc, errs := gqlparser.LoadQueryWithRules(schema, query, nil)
		require.Empty(t, errs)
		for _, cfg.Shape = range []cost.Shape{{}, {MaxListNodes: 100}} {
			estimator, err := cost.New(schema, cfg)
			require.NoError(t, err)
			plan, err := estimator.Plan(doc, doc.Operations[0])
			require.NoError(t, err)
			require.Equal(t, want, plan.Variables(), query)
		}
	}
}

func TestAVariableThatOnlyALimitReadsIsNamed(t *testing.T) {
	t.Parallel()
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: `type Query { users(first: Int): [User!]! } type User { name: String! }`})
	estimator, err := cost.New(schema, cost.Config{
		Weights:   map[string]float64{"User": 0},
		ListSizes: map[string]cost.ListSize{"Query.users": {SlicingArguments: []string{"first"}, RequireOneSlicingArgument: new(bool)}},
		Shape:     cost.Shape{MaxListNodes: 10},
	})
	require.NoError(t, err)
	doc, errs := gqlparser.LoadQueryWithRules(schema, `query ($n: Int!) { users(first: $n) { name } }`, nil)
	require.Empty(t, errs)
	plan, err := estimator.Plan(doc, doc.Operations[0])
	require.NoError(t, err)
	require.Equal(t, []string{"n"}, plan.Variables())
}
