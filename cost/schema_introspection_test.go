package cost_test

import (
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

// Introspection has one price: by what is selected, whatever the size of the schema, and once for each
// call that is left when selections are merged.
func TestIntrospectionCostsWhatIsSelectedOnEverySchema(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{
		"{ __schema { queryType { name } } }":                                                 10.1,
		"{ __schema { types { name } } }":                                                     10.25,
		"{ __schema { types { fields { type { fields { name } } } } } }":                      15.05,
		"{ __schema { types { name } } __schema { types { name } } }":                         10.25,
		"{ __schema { types { name } a: types { name } } }":                                   10.5,
		"{ __schema { types { name } a: types @skip(if: true) { name } } }":                   10.25,
		`{ a: __type(name: "Hub") { name } b: __type(name: "Hub") { name } }`:                 20.1,
		"{ query { __schema { types { name } } } }":                                           11.25,
		"{ __schema { types { ...F } } } fragment F on __Type { a: name b: ofType { name } }": 10.65,
	} {
		for _, types := range []int{10, 300} {
			schema := wideSchema(t, types)
			estimator, err := cost.New(schema, cost.Config{})
			require.NoError(t, err)
			require.InDelta(t, want, fieldCost(t, estimator, parse(t, schema, text, false)), 1e-9, text)
		}
	}
}
