package cost_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// drawnFunctions are functions for the schema of the generated documents. They do not fall when there is
// more below them, whatever the arguments are.
func drawnFunctions() map[string]cost.ComplexityFunc {
	first := func(arguments map[string]any) int {
		n, _ := arguments["first"].(int64)
		return int(min(max(0, n), math.MaxInt32))
	}
	return map[string]cost.ComplexityFunc{
		"Query.a":          func(child int, _ map[string]any) (int, bool) { return 2*child + 3, true },
		"Query.users":      func(child int, arguments map[string]any) (int, bool) { return first(arguments)*child + 3, true },
		"Query.conn":       func(child int, arguments map[string]any) (int, bool) { return first(arguments) + child, true },
		"Query.paged":      always(7),
		"Query.items":      always(-1),
		"Item.rel":         func(child int, arguments map[string]any) (int, bool) { return child + 2*first(arguments), true },
		"Item.heavy":       always(999),
		"Connection.edges": func(child int, _ map[string]any) (int, bool) { return 5 + child, true },
	}
}

func TestAPlanWithFunctionsIsExactForEveryAssignment(t *testing.T) {
	t.Parallel()
	functions := drawnFunctions()
	estimator, schema := newEstimator(t, "bypass", cost.Config{Complexity: functions})
	rapid.Check(t, func(t *rapid.T) {
		text := drawDocument(t).String()
		doc, plan := compileText(t, estimator, text)
		variables := drawVariables(t)
		got, err := plan.Evaluate(variables)
		require.NoError(t, err)
		o := oracle{schema: schema, doc: doc, variables: variables, functions: functions}
		typ, field := o.price(schema.Query, []ast.SelectionSet{doc.Operations[0].SelectionSet}, -1)
		require.Equal(t, cost.Cost{Type: 1 + typ, Field: field, Free: got.Free}, got, "%s %v", text, variables)

		outline, err := estimator.Outline(doc, doc.Operations[0])
		require.NoError(t, err)
		explained := outline.Explain(variables, cost.ExplainOptions{MaxEntries: rapid.SampledFrom([]int{0, 3}).Draw(t, "max")})
		requireSum(t, explained, text)
	})
}

func TestTheSumIsNeverBelowTheMergedPriceWithFunctions(t *testing.T) {
	t.Parallel()
	estimator, _ := newEstimator(t, "bypass", cost.Config{Complexity: drawnFunctions()})
	rapid.Check(t, func(t *rapid.T) {
		text := drawDocument(t).String()
		doc, err := parser.ParseQuery(&ast.Source{Input: text})
		require.NoError(t, err)
		sum, _, err := estimator.CompileSummed(doc, doc.Operations[0])
		require.NoError(t, err)
		plan, err := estimator.Compile(doc, doc.Operations[0])
		require.NoError(t, err)
		variables := drawVariables(t)
		merged, err := plan.Evaluate(variables)
		require.NoError(t, err)
		summed, err := sum.Evaluate(variables)
		require.NoError(t, err)
		require.GreaterOrEqual(t, summed.Type, merged.Type, text)
		require.GreaterOrEqual(t, summed.Field, merged.Field, text)
	})
}

func TestTheActualCostWithFunctionsIsNeverAboveTheEstimate(t *testing.T) {
	t.Parallel()
	estimator, schema := newEstimator(t, "bypass", cost.Config{Complexity: drawnFunctions()})
	rapid.Check(t, func(t *rapid.T) {
		text := drawDocument(t).String()
		doc, err := parser.ParseQuery(&ast.Source{Input: text})
		require.NoError(t, err)
		outline, err := estimator.Outline(doc, doc.Operations[0])
		require.NoError(t, err)
		plan, err := estimator.Plan(doc, doc.Operations[0])
		require.NoError(t, err)
		variables := drawVariables(t)
		told, untold := outline.Tally(variables), outline.Tally(variables)
		r := responder{oracle{schema: schema, doc: doc, variables: variables}, t, told.Observe}
		var b strings.Builder
		r.object(&b, schema.Query, []ast.SelectionSet{doc.Operations[0].SelectionSet}, -1, nil)
		require.NoError(t, told.Add([]byte(b.String())))
		require.NoError(t, untold.Add([]byte(b.String())))
		actual, err := told.Cost()
		require.NoError(t, err)
		atMost, err := untold.Cost()
		require.NoError(t, err)
		estimate, err := plan.Evaluate(variables)
		require.NoError(t, err)
		requireOrder(t, actual, atMost, text)
		requireOrder(t, atMost, estimate, text)
	})
}
