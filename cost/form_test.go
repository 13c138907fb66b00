package cost_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// operationsPerCheck times the checks of rapid, 100 unless -rapid.checks says otherwise, is how many random
// operations are compared.
const operationsPerCheck = 10

// A form has two readers of its price: the program that a plan runs, and what reads the form call by call to
// explain it. They say the same of every operation, merged or summed, and what is explained adds up to it.
func TestTheProgramOfAnOperationAndItsInterpreterAgree(t *testing.T) {
	t.Parallel()
	signed := map[string]float64{"Item": -3, "User": 2, "Query.a": -1, "Item.rel": -2, "Item.heavy": 7, "User.posts": 5, "Edge": -1}
	var configured []*cost.Estimator
	for _, config := range []cost.Config{{}, {Weights: signed}, {Complexity: drawnFunctions()}, {Weights: map[string]float64{"Item": 0.25}, Complexity: drawnFunctions()}} {
		estimator, _ := newEstimator(t, "bypass", config)
		configured = append(configured, estimator)
	}
	rapid.Check(t, func(t *rapid.T) {
		generated := drawGenerated(t)
		for i := range operationsPerCheck {
			if i%2 == 0 {
				operation, variables, _ := drawOperation(t, generated.schema)
				requireAgreement(t, generated.estimator, generated.valid(t, operation.String()), variables, generated.sdl)
				continue
			}
			doc, _ := compileText(t, configured[0], drawDocument(t).String())
			requireAgreement(t, rapid.SampledFrom(configured).Draw(t, "configuration"), doc, drawVariables(t), "")
		}
	})
}

func requireAgreement(t *rapid.T, estimator *cost.Estimator, doc *ast.QueryDocument, variables map[string]any, sdl string) {
	op := doc.Operations[0]
	merged, err := estimator.Compile(doc, op)
	require.NoError(t, err)
	outline, err := estimator.Outline(doc, op)
	require.NoError(t, err)
	summed, _, err := estimator.CompileSummed(doc, op)
	require.NoError(t, err)
	sums, err := estimator.OutlineSummed(doc, op)
	require.NoError(t, err)
	for _, form := range []struct {
		plan    *cost.Plan
		outline *cost.Outline
	}{{merged, outline}, {summed, sums}} {
		// Weights are evaluated beside rules that the operation may break.
		computed, _ := form.plan.Evaluate(variables)
		read := form.outline.Interpreted(variables)
		text := describe(computed, nil) + sdl
		require.True(t, near(computed.Type, read.Type), "type %v, interpreted %v\n%s", computed.Type, read.Type, text)
		require.True(t, near(computed.Field, read.Field), "field %v, interpreted %v\n%s", computed.Field, read.Field, text)
		require.Equal(t, computed.Approximate, read.Approximate)
		explained := form.outline.Explain(variables, cost.ExplainOptions{MaxEntries: rapid.SampledFrom([]int{0, 3}).Draw(t, "entries")})
		requireSum(t, explained, text)
	}
}

func near(x, y float64) bool {
	return x == y || math.Abs(x-y) <= 1e-9*max(1, math.Abs(x), math.Abs(y))
}
