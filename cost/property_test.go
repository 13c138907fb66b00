package cost_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

func drawVariables(t *rapid.T) map[string]any {
	variables := map[string]any{
		"x": rapid.Bool().Draw(t, "x"),
		"y": rapid.Bool().Draw(t, "y"),
		"m": rapid.Int64Range(-2, 50).Draw(t, "m"),
	}
	switch rapid.IntRange(0, 3).Draw(t, "n given") {
	case 0:
	case 1:
		variables["n"] = nil
	default:
		variables["n"] = rapid.Int64Range(-2, 50).Draw(t, "n")
	}
	return variables
}

func compileText(t require.TestingT, e *cost.Estimator, text string) (*ast.QueryDocument, *cost.Plan) {
	doc, err := parser.ParseQuery(&ast.Source{Input: text})
	require.NoError(t, err, text)
	plan, err := e.Compile(doc, doc.Operations[0])
	require.NoError(t, err, text)
	return doc, plan
}

// One plan, for every assignment of its variables, says what collecting fields for that assignment
// says.
func TestAPlanIsExactForEveryAssignment(t *testing.T) {
	t.Parallel()
	signed := map[string]float64{"Item": -3, "User": 2, "Query.a": -1, "Item.rel": -2, "Item.heavy": 7, "User.posts": 5, "Edge": -1}
	for name, config := range map[string]cost.Config{
		"directives": {}, "signed": {Weights: signed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			estimator, schema := newEstimator(t, "bypass", config)
			rapid.Check(t, func(t *rapid.T) {
				text := drawDocument(t).String()
				doc, plan := compileText(t, estimator, text)
				variables := drawVariables(t)
				for _, x := range []bool{false, true} {
					for _, y := range []bool{false, true} {
						variables["x"], variables["y"] = x, y
						got, err := plan.Evaluate(variables)
						require.NoError(t, err)
						require.False(t, got.Approximate)
						o := oracle{schema: schema, doc: doc, variables: variables, weights: config.Weights}
						typ, field := o.price(schema.Query, []ast.SelectionSet{doc.Operations[0].SelectionSet}, -1)
						require.Equal(t, cost.Cost{Type: max(0, 1+typ), Field: field, Free: got.Free}, got, "%s %v", text, variables)
					}
				}
			})
		})
	}
}

func TestSpellingAndOrderDoNotChangeThePrice(t *testing.T) {
	t.Parallel()
	estimator, _ := newEstimator(t, "bypass", cost.Config{})
	rapid.Check(t, func(t *rapid.T) {
		d := drawDocument(t)
		other := respell(t, d)
		_, plan := compileText(t, estimator, d.String())
		_, respelled := compileText(t, estimator, other.String())
		variables := drawVariables(t)
		want, err := plan.Evaluate(variables)
		require.NoError(t, err)
		got, err := respelled.Evaluate(variables)
		require.NoError(t, err)
		require.Equal(t, want, got, "%s\n%s", d, other)
	})
}

func TestALargerListNeverCostsLess(t *testing.T) {
	t.Parallel()
	estimator, _ := newEstimator(t, "bypass", cost.Config{})
	rapid.Check(t, func(t *rapid.T) {
		_, plan := compileText(t, estimator, drawDocument(t).String())
		variables := drawVariables(t)
		variables["n"] = rapid.Int64Range(-2, math.MaxInt64).Draw(t, "n")
		small, err := plan.Evaluate(variables)
		require.NoError(t, err)
		name := rapid.SampledFrom([]string{"n", "m"}).Draw(t, "name")
		variables[name] = rapid.Int64Range(variables[name].(int64), math.MaxInt64).Draw(t, "larger")
		large, err := plan.Evaluate(variables)
		require.NoError(t, err)
		requireSane(t, small)
		requireSane(t, large)
		require.GreaterOrEqual(t, large.Type, small.Type)
		require.GreaterOrEqual(t, large.Field, small.Field)
		require.GreaterOrEqual(t, large.Points(), small.Points())
	})
}

func TestTheSumIsNeverBelowTheMergedPrice(t *testing.T) {
	t.Parallel()
	weights := map[string]float64{"Item": -3, "User": 2, "Query.a": -1, "Item.rel": -2, "Item.heavy": 7}
	exact, _ := newEstimator(t, "bypass", cost.Config{Weights: weights})
	rapid.Check(t, func(t *rapid.T) {
		text := drawDocument(t).String()
		doc, err := parser.ParseQuery(&ast.Source{Input: text})
		require.NoError(t, err)
		sum, _, err := exact.CompileSummed(doc, doc.Operations[0])
		require.NoError(t, err)
		plan, err := exact.Compile(doc, doc.Operations[0])
		require.NoError(t, err)
		variables := drawVariables(t)
		merged, err := plan.Evaluate(variables)
		require.NoError(t, err)
		summed, err := sum.Evaluate(variables)
		require.NoError(t, err)
		requireSane(t, merged)
		requireSane(t, summed)
		require.GreaterOrEqual(t, summed.Type, merged.Type, text)
		require.GreaterOrEqual(t, summed.Field, merged.Field, text)
	})
}

func requireSane(t require.TestingT, c cost.Cost) {
	// A comparison with NaN is false.
	require.True(t, c.Type >= 0 && c.Field >= 0 && c.Base >= 0, "%+v", c)
	require.True(t, c.Points() >= 0 && c.Points() <= cost.MaxPoints, "%+v", c)
}
