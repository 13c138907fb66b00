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

// Who prices an operation without its variables is told what each would decide: the size of a list, whether
// something is selected, or a few points.
func TestAnOutlineSaysWhatEachVariableDecides(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, `
union _Entity = User scalar _Any
type Query {
  users(first: Int, page: Page, after: String): [User] @listSize(slicingArguments: ["first", "page.size"], requireOneSlicingArgument: false)
  find(text: String @cost(weight: "2"), job: Job): User
  computed(n: Int): Int
  _entities(representations: [_Any!]!): [_Entity]!
}
type User { id: ID friends(last: Int): [User] @listSize(slicingArguments: ["last"]) }
input Page { size: Int }
input Job { name: String @cost(weight: "3") }`, "")
	estimator, err := cost.New(schema, cost.Config{Complexity: map[string]cost.ComplexityFunc{
		"Query.computed": func(int, map[string]any) (int, bool) { return 1, true },
	}})
	require.NoError(t, err)
	doc := parse(t, schema, `
query ($n: Int!, $size: Int = 3, $a: String, $t: String!, $j: Job!, $b: Boolean!, $r: [_Any!]!, $c: Int, $page: Page) {
  users(first: $n, page: {size: $size}, after: $a) { id friends(last: $n) @include(if: $b) { id } }
  more: users(page: $page) { id }
  find(text: $t, job: $j) { id }
  computed(n: $c)
  _entities(representations: $r) { __typename }
}`, false)
	outline, err := estimator.Outline(doc, doc.Operations[0])
	require.NoError(t, err)
	require.Equal(t, []cost.VariableUse{
		{Name: "b", Required: true, Includes: true},
		{Name: "c", Computes: true},
		{Name: "j", Required: true, Weighs: true},
		{Name: "n", Required: true, Sizes: []string{"first", "last"}},
		{Name: "page", Sizes: []string{"page.size"}, Weighs: true},
		{Name: "r", Required: true, Represents: true},
		{Name: "size", Sizes: []string{"page.size"}},
		{Name: "t", Required: true, Weighs: true},
	}, outline.VariableUses())
}
