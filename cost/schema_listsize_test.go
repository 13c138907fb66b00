package cost_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// requirePrice prices an operation, explains it, and requires its cost.
func requirePrice(t testing.TB, schema *ast.Schema, cfg cost.Config, text string, variables map[string]any, want cost.Cost) cost.Breakdown {
	t.Helper()
	estimator, err := cost.New(schema, withoutAliases(cfg))
	require.NoError(t, err)
	doc := parse(t, schema, text, false)
	plan, err := estimator.Plan(doc, doc.Operations[0])
	require.NoError(t, err)
	price, err := plan.Evaluate(variables)
	require.NoError(t, err)
	require.Equal(t, want, price, text)
	outline, err := estimator.Outline(doc, doc.Operations[0])
	require.NoError(t, err)
	breakdown := outline.Explain(variables, cost.ExplainOptions{})
	requireSum(t, breakdown, text)
	return breakdown
}

// Apollo and Hive name the list of a page through the object that holds it.
func TestAListSizeReachesThroughObjects(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, `
type Query { search(first: Int): Search @listSize(slicingArguments: ["first"], sizedFields: ["results { page { items } total }"], requireOneSlicingArgument: false) }
type Search { results: Results }
type Results { page: Page total: [Item] other: [Item] }
type Page { items: [Item] }
type Item { id: ID }`, "")
	text := "query ($n: Int) { search(first: $n) { results { page { items { id } } total { id } other { id } } } }"
	for _, tt := range []struct {
		variables map[string]any
		elements  float64
	}{
		{map[string]any{"n": int64(3)}, 3 + 3 + 10},
		{map[string]any{"n": int64(0)}, 10},
		{nil, 10 + 10 + 10},
	} {
		requirePrice(t, schema, cost.Config{}, text, tt.variables, cost.Cost{Type: 1 + 3 + tt.elements, Field: 6})
	}
	breakdown := requirePrice(t, schema, cost.Config{}, text, map[string]any{"n": int64(3)}, cost.Cost{Type: 20, Field: 6})
	for _, entry := range breakdown.Entries {
		if entry.Coordinate == "Page.items" {
			require.Equal(t, cost.ListSource{
				Size: 3, Rule: cost.SlicingArgument, Coordinate: "Query.search", Inherited: true, Argument: "first", Source: cost.FromVariable, Variable: "n",
			}, *entry.List)
		}
	}
	estimator, err := cost.New(schema, cost.Config{})
	require.NoError(t, err)
	require.Equal(t, []string{"Results.other"}, estimator.UnsizedLists())
	_, err = cost.New(schema, cost.Config{Complexity: map[string]cost.ComplexityFunc{
		"Search.results": func(child int, _ map[string]any) (int, bool) { return child, true },
	}})
	require.ErrorContains(t, err, "Query.search: sizedFields lead through Search.results, which has a function")
}

// A list size that has both an assumed size and slicing arguments is for requests that give none of them.
func TestAnAssumedSizeCountsWhereNoSlicingArgumentIsGiven(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, `
type Item { id: ID }
type Query {
  items(first: Int, last: Int): [Item] @listSize(slicingArguments: ["first", "last"], assumedSize: 7)
  defaulted(first: Int = 3): [Item] @listSize(slicingArguments: ["first"], assumedSize: 7)
  configured(first: Int): [Item]
}`, "")
	seven := 7
	cfg := cost.Config{ListSizes: map[string]cost.ListSize{"Query.configured": {SlicingArguments: []string{"first"}, AssumedSize: &seven}}}
	for text, want := range map[string]float64{
		"{ items { id } }":                    7,
		"{ items(first: 2) { id } }":          2,
		"{ items(first: 2, last: 4) { id } }": 4,
		"{ defaulted { id } }":                3,
		"{ defaulted(first: null) { id } }":   7,
		"{ configured { id } }":               7,
		"{ configured(first: 9) { id } }":     9,
	} {
		requirePrice(t, schema, cfg, text, nil, cost.Cost{Type: 1 + want, Field: 1})
	}
}

// The list size of an interface field holds for the fields of the types that have none of their own.
func TestFieldsInheritTheListSizesOfTheirInterfaces(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, `
interface Node { list(first: Int): [Item] @listSize(slicingArguments: ["first"]) page: Page configured: [Item] }
interface Owner { list(first: Int): [Item] @listSize(assumedSize: 50) page: Page @listSize(assumedSize: 4, sizedFields: ["rows"]) }
type A implements Node & Owner { list(first: Int): [Item] page: Page configured: [Item] }
type B implements Owner & Node { list(first: Int): [Item] page: Page configured: [Item] }
type C implements Node { list(first: Int): [Item] @listSize(assumedSize: 2) page: Page configured: [Item] }
type Page { rows: [Item] }
type Item { id: ID }
type Query { a: A b: B c: C }`, "")
	five := 5
	cfg := cost.Config{ListSizes: map[string]cost.ListSize{"Node.configured": {AssumedSize: &five}}}
	for text, want := range map[string]float64{
		"{ a { list(first: 3) { id } } }":    3,
		"{ b { list(first: 3) { id } } }":    50,
		"{ c { list(first: 3) { id } } }":    2,
		"{ a { page { rows { id } } } }":     1 + 4,
		"{ c { page { rows { id } } } }":     1 + 10,
		"{ a { configured { id } } }":        5,
		"{ c { configured { id } } }":        5,
		"{ a { x: list(first: 0) { id } } }": 0,
	} {
		estimator, err := cost.New(schema, cfg)
		require.NoError(t, err)
		doc := parse(t, schema, text, false)
		plan, err := estimator.Compile(doc, doc.Operations[0])
		require.NoError(t, err)
		price, err := plan.Evaluate(nil)
		require.NoError(t, err)
		require.Equal(t, 2+want, price.Type, text)
	}
	breakdown := requirePrice(t, schema, cfg, "{ a { list(first: 3) { id } } }", nil, cost.Cost{Type: 5, Field: 2})
	require.Equal(t, "Node.list", breakdown.Entries[2].List.Coordinate)
	estimator, err := cost.New(schema, cfg)
	require.NoError(t, err)
	require.Empty(t, estimator.UnsizedLists())
}

// From version 2.12 on Apollo Federation lets a field have several list sizes.
func TestAFieldMayHaveSeveralListSizes(t *testing.T) {
	t.Parallel()
	load := func(field string) (*ast.Schema, error) {
		return gqlparser.LoadSchema(&ast.Source{Input: `
directive @listSize(assumedSize: Int, slicingArguments: [String!], sizedFields: [String!], requireOneSlicingArgument: Boolean = true) repeatable on FIELD_DEFINITION
type Query { ` + field + ` }
type Page { a: [Item] b: [Item] }
type Item { id: ID }`})
	}
	for _, tt := range []struct {
		field, text string
		want        float64
	}{
		{`list(first: Int, last: Int): [Item] @listSize(slicingArguments: ["first"]) @listSize(slicingArguments: ["last"])`, "{ list(last: 3) { id } }", 3},
		{`list(first: Int): [Item] @listSize(slicingArguments: ["first"]) @listSize(assumedSize: 4)`, "{ list { id } }", 4},
		{`list(first: Int): [Item] @listSize(assumedSize: 6) @listSize(assumedSize: 4)`, "{ list { id } }", 6},
		{
			`page(first: Int): Page @listSize(slicingArguments: ["first"], sizedFields: ["a"]) @listSize(slicingArguments: ["first"], sizedFields: ["b"])`,
			"{ page(first: 2) { a { id } b { id } } }", 1 + 2 + 2,
		},
	} {
		schema, err := load(tt.field)
		require.NoError(t, err)
		estimator, newErr := cost.New(schema, cost.Config{})
		require.NoError(t, newErr, tt.field)
		doc := parse(t, schema, tt.text, false)
		plan, err := estimator.Compile(doc, doc.Operations[0])
		require.NoError(t, err)
		price, err := plan.Evaluate(nil)
		require.NoError(t, err)
		require.Equal(t, 1+tt.want, price.Type, tt.field)
	}
	schema, err := load(`page(first: Int): Page @listSize(assumedSize: 5, sizedFields: ["a"]) @listSize(slicingArguments: ["first"], sizedFields: ["b"])`)
	require.NoError(t, err)
	_, err = cost.New(schema, cost.Config{})
	require.ErrorContains(t, err, "Query.page: several @listSize have to agree in their sizedFields, or in all else: give a list that others do not size a @listSize at its own field")
}

// A pattern sizes the lists that nothing else does, and of several the one that says most counts.
func TestAPatternSizesListsThatNothingElseSizes(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, `
type Query { errors: [Item] nested(first: Int): [Item] own: [Item] @listSize(assumedSize: 2) payload: UserPayload }
type UserPayload { errors: [Item] name: String hints(first: Int): [Item] }
type Item { id: ID }`, "")
	one, two, nine := 1, 3, 9
	cfg := cost.Config{
		ListSizes: map[string]cost.ListSize{
			"*.errors": {AssumedSize: &one}, "*Payload.*": {AssumedSize: &two}, "Query.*": {AssumedSize: &nine},
			"*.nested": {SlicingArguments: []string{"first"}, RequireOneSlicingArgument: new(bool)},
		},
	}
	for text, want := range map[string]float64{
		"{ errors { id } }":             1,
		"{ payload { errors { id } } }": 1 + 3,
		"{ payload { hints { id } } }":  1 + 3,
		"{ nested(first: 4) { id } }":   4,
		"{ own { id } }":                2,
	} {
		estimator, err := cost.New(schema, cfg)
		require.NoError(t, err)
		require.Empty(t, estimator.UnsizedLists())
		doc := parse(t, schema, text, false)
		plan, err := estimator.Compile(doc, doc.Operations[0])
		require.NoError(t, err)
		price, err := plan.Evaluate(nil)
		require.NoError(t, err)
		require.Equal(t, 1+want, price.Type, text)
	}
}
