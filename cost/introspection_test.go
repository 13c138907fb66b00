package cost_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// wideSchema has as many object types of eight fields, and one of sixty that a quarter of these return.
func wideSchema(t testing.TB, types int) *ast.Schema {
	t.Helper()
	return loadSchema(t, "type Query { hub: Hub query: Query } interface Node { id: ID } enum State {"+repeat(20, " S%[1]d")+" }"+
		" type Hub implements Node { id: ID"+repeat(60, " f%[1]d(state: State, first: Int): T0")+" }"+
		repeat(types, " type T%[1]d implements Node { id: ID hub: Hub next: T0 a: Int b: Int c: Int other: Hub states: [State] }"), "")
}

func fieldCost(t testing.TB, estimator *cost.Estimator, doc *ast.QueryDocument) float64 {
	t.Helper()
	plan, err := estimator.Compile(doc, doc.Operations[0])
	require.NoError(t, err)
	price, err := plan.Evaluate(nil)
	require.NoError(t, err)
	outline, err := estimator.Outline(doc, doc.Operations[0])
	require.NoError(t, err)
	require.Equal(t, price, outline.Explain(nil, cost.ExplainOptions{}).Cost)
	requireSum(t, outline.Explain(nil, cost.ExplainOptions{}), "")
	summed, _, err := estimator.CompileSummed(doc, doc.Operations[0])
	require.NoError(t, err)
	bound, err := summed.Evaluate(nil)
	require.NoError(t, err)
	require.GreaterOrEqual(t, bound.Field, price.Field-1e-9)
	return price.Field
}

// introspected counts the calls below an introspection object of a schema: of the schema itself, a type,
// a field, or anything else, which has no lists.
func introspected(schema *ast.Schema, set ast.SelectionSet, of any) int {
	calls := 0
	for _, selection := range set {
		if inline, ok := selection.(*ast.InlineFragment); ok {
			calls += introspected(schema, inline.SelectionSet, of)
			continue
		}
		field, ok := selection.(*ast.Field)
		if !ok {
			continue
		}
		calls++
		for _, element := range introspect(schema, field, of) {
			calls += introspected(schema, field.SelectionSet, element)
		}
	}
	return calls
}

// introspect returns what a field of an introspection object returns, without scalars.
func introspect(schema *ast.Schema, field *ast.Field, of any) (elements []any) {
	switch of := of.(type) {
	case *ast.Schema:
		switch field.Name {
		case "types":
			for _, def := range schema.Types {
				elements = append(elements, def)
			}
		case "queryType":
			elements = append(elements, schema.Query)
		}
	case *ast.Definition:
		switch {
		case field.Name == "fields" && of.Kind != ast.InputObject:
			for _, f := range of.Fields {
				if !strings.HasPrefix(f.Name, "__") {
					elements = append(elements, f)
				}
			}
		case field.Name == "possibleTypes" && of.IsAbstractType():
			for _, def := range schema.GetPossibleTypes(of) {
				elements = append(elements, def)
			}
		case field.Name == "enumValues":
			for range of.EnumValues {
				elements = append(elements, nil)
			}
		}
	case *ast.FieldDefinition:
		switch field.Name {
		case "type":
			elements = append(elements, schema.Types[of.Type.Name()])
		case "args":
			for range of.Arguments {
				elements = append(elements, nil)
			}
		}
	}
	return elements
}

func TestIntrospectionThatRepeatsListsIsPricedByTheSizeOfTheSchema(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"aliases of a list":            "{ __schema { types { " + repeat(30, " a%[1]d: fields { name args { name } }") + " } } }",
		"a list below itself":          "{ __schema { types { fields { type { fields { name } } } } } }",
		"aliases below another":        "{ __schema { types { fields { type {" + repeat(100, " a%[1]d: fields { name }") + " } } } } }",
		"aliases of __type":            `{ a: __type(name: "Hub") { fields { name } } b: __type(name: "Hub") { fields { name } } }`,
		"aliases of __schema":          "{" + repeat(20, " a%[1]d: __schema { types { name } }") + " }",
		"aliases of what leads to one": `{ __type(name: "Hub") { fields {` + repeat(9, " a%[1]d: type { fields { name } }") + ` } } }`,
		"__schema and __type":          `{ __schema { types { fields { name } } } __type(name: "Hub") { fields { name } } }`,
		"aliases of possible types":    `{ __type(name: "Node") { possibleTypes { name } a: possibleTypes { fields { name } } } }`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, types := range []int{10, 300} {
				schema := wideSchema(t, types)
				estimator, err := cost.New(schema, cost.Config{})
				require.NoError(t, err)
				doc := parse(t, schema, text, false)
				calls := 0
				for _, selection := range doc.Operations[0].SelectionSet {
					root, ok := selection.(*ast.Field)
					require.True(t, ok)
					var of any = schema
					if root.Name == "__type" {
						of = schema.Types[root.Arguments[0].Value.Raw]
					}
					calls += introspected(schema, root.SelectionSet, of)
				}
				require.GreaterOrEqual(t, fieldCost(t, estimator, doc), 0.05*float64(calls))
			}
		})
	}
}

// However merged and however often fragments are used: what is called is what counts.
func TestAListOfIntrospectionIsRepeatedByItsCalls(t *testing.T) {
	t.Parallel()
	small, wide := wideSchema(t, 10), wideSchema(t, 300)
	price := func(schema *ast.Schema, text string) float64 {
		estimator, err := cost.New(schema, cost.Config{})
		require.NoError(t, err)
		return fieldCost(t, estimator, parse(t, schema, text, false))
	}
	for name, text := range map[string]string{
		"once":                     "{ __schema { types { name fields { name args { name } } } directives { args { name } } } }",
		"merged":                   "{ __schema { types { fields { name } } ...F ...F } __schema { types { name } } } fragment F on __Schema { types { fields { name type { name } } } }",
		"no lists":                 `{ a: __type(name: "Hub") { name ofType { name } } b: __type(name: "Hub") { name } c: __schema { queryType { name } } }`,
		"one has lists":            `{ a: __type(name: "Hub") { name } b: __schema { types { name } } }`,
		"left out":                 "{ __schema { types { name } a: types @skip(if: true) { name } } }",
		"lists of the schema":      "{ query { query { hub { id } } } __schema { types { name } } }",
		"different lists of types": `{ __type(name: "Hub") { interfaces { fields { name } } } }`,
	} {
		require.Equal(t, price(small, text), price(wide, text), name)
	}
	for name, text := range map[string]string{
		"a fragment under two aliases": `{ __schema { queryType { ...F } mutationType { ...F } types { name } } } fragment F on __Type { fields { type { possibleTypes { name } } } }`,
		"two conditions":               `query ($a: Boolean = true, $b: Boolean = true) { __schema { types @include(if: $a) { name } b: types @include(if: $b) { name } } }`,
		"below one shared selection":   `{ __schema { types { a: ofType { ...F } b: ofType { ...F } } } } fragment F on __Type { ofType { possibleTypes { name } } }`,
		"below merged selections":      `{ __schema { types { a: ofType { ...F ...G } b: ofType { ...F ...G } } } } fragment F on __Type { ofType { possibleTypes { name } } } fragment G on __Type { ofType { name } }`,
		"below another field":          "{ query { __schema { types { name } } } }",
		"merged and not merged":        "{ __schema { types { name } ...F } } fragment F on __Schema { types { name } a: types { name } }",
	} {
		require.Greater(t, price(wide, text), price(small, text), name)
	}
}
