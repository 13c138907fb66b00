package cost_test

import (
	"os"
	"path/filepath"
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

// toolQueries are what tools send to read a whole schema: the GraphiQL of 2017, that of 2026 with the query that
// it falls back to, and the newest form with all of its options.
func toolQueries(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "introspection", "*.graphql"))
	require.NoError(t, err)
	require.Len(t, files, 4)
	queries := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		queries[filepath.Base(file)] = string(text)
	}
	return queries
}

// Reading a whole schema costs about 40 points, whatever its size, so that a tool can open several times a minute
// on a small budget.
func TestReadingAWholeSchemaCostsTheSameOnEverySchema(t *testing.T) {
	t.Parallel()
	for _, schema := range []*ast.Schema{wideSchema(t, 1), wideSchema(t, 10), wideSchema(t, 300), loadShared(t, "library"), loadShared(t, "bypass")} {
		estimator, err := cost.New(schema, cost.Config{Weights: map[string]float64{"Query": 0}, WorkLimit: 1 << 20})
		require.NoError(t, err)
		for name, text := range toolQueries(t) {
			doc := raw(t, text)
			plan, err := estimator.Compile(doc, doc.Operations[0])
			require.NoError(t, err)
			price, err := plan.Evaluate(nil)
			require.NoError(t, err)
			require.Less(t, price.Field, 41.0, name)
			require.Greater(t, price.Field, 30.0, name)
		}
	}
}

// What reads more than the whole schema costs more in proportion, and what repeats or nests its lists soon costs too
// much.
func TestAnIntrospectionBombCostsAsManySchemasAsItWrites(t *testing.T) {
	t.Parallel()
	for _, types := range []int{10, 300} {
		schema := wideSchema(t, types)
		estimator, err := cost.New(schema, cost.Config{WorkLimit: 1 << 20})
		require.NoError(t, err)
		for text, least := range map[string]float64{
			"{" + repeat(100, ` a%[1]d: __type(name: "Hub") { name }`) + " }":                                        1000,
			"{ __schema {" + repeat(100, " a%[1]d: types { fields { name type { name } } }") + " } }":                300,
			"{ __schema { types { fields { type {" + repeat(100, " a%[1]d: fields { name } ") + " } } } } }":         300,
			"{ __schema { types { fields { type { fields { type { fields { type { fields { name } } } } } } } } } }": 300,
			"{ __schema { types { ...a } } } " + "fragment a on __Type { fields { x: type { ...b } y: type { ...b } } } " + "fragment b on __Type { fields { x: type { ...c } y: type { ...c } } } fragment c on __Type { fields { name type { name } } }": 300,
		} {
			require.Greater(t, fieldCost(t, estimator, raw(t, text)), least, text)
		}
	}
}

// Introspection is merged as all selections are, and grows with what is selected.
func TestIntrospectionCostsWhatIsSelected(t *testing.T) {
	t.Parallel()
	estimator, err := cost.New(wideSchema(t, 10), cost.Config{})
	require.NoError(t, err)
	price := func(text string) float64 { return fieldCost(t, estimator, raw(t, text)) }
	names := price("{ __schema { types { name } } }") - 10
	require.Positive(t, names)
	for text, want := range map[string]float64{
		"{ __schema { types { name } } __schema { types { name } } }":       10 + names,
		"{ __schema { types { name } a: types { name } } }":                 10 + 2*names,
		"{ __schema { types { name } a: types @skip(if: true) { name } } }": 10 + names,
		"{ query { __schema { types { name } } } }":                         11 + names,
		"{ __schema { types { ...F } } } fragment F on __Type { name }":     10 + names,
		"{ a: __schema { types { name } } b: __schema { types { name } } }": 20 + 2*names,
	} {
		require.InDelta(t, want, price(text), 1e-9, text)
	}
}
