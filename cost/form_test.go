package cost_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// operationsPerCheck times the checks of rapid, 50 unless -rapid.checks says otherwise, is how many random
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

// Input coercion makes a list of a single value, in a literal as in a variable.
func TestABreakdownSizesAListByASingleValueAsThePriceDoes(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, `
input In { a: Int }
type Item { id: ID }
type Query { items(ids: [In]): [Item] @listSize(slicingArguments: ["ids"]) }`, "")
	estimator, err := cost.New(schema, cost.Config{})
	require.NoError(t, err)
	for text, variables := range map[string]map[string]any{
		"{ items(ids: {a: 1}) { id } }":                  nil,
		"query ($ids: [In]) { items(ids: $ids) { id } }": {"ids": map[string]any{"a": int64(1)}},
	} {
		doc := parse(t, schema, text, false)
		outline, err := estimator.Outline(doc, doc.Operations[0])
		require.NoError(t, err)
		b := outline.Explain(variables, cost.ExplainOptions{})
		requireSum(t, b, text)
		require.Equal(t, 1.0, b.Entries[1].List.Size, text)
		require.Equal(t, cost.SlicingArgument, b.Entries[1].List.Rule, text)
	}
}

// Of the directives of merged selections the dearest counts among those that are included, in whatever
// order the selections stand.
func TestDirectivesOfASelectionThatIsLeftOutCostNothing(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, `
directive @d0(x: Int @cost(weight: "2")) on FIELD
type Query { o: O }
type O { id: ID }`, "")
	estimator, err := cost.New(schema, cost.Config{})
	require.NoError(t, err)
	selections := []string{"o @include(if: $b) { id }", "o { id }", "o @include(if: $b) @d0(x: 1) { id }"}
	for _, order := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		text := "query ($b: Boolean!) {"
		for _, i := range order {
			text += " " + selections[i]
		}
		doc := parse(t, schema, text+" }", false)
		plan, err := estimator.Plan(doc, doc.Operations[0])
		require.NoError(t, err)
		outline, err := estimator.Outline(doc, doc.Operations[0])
		require.NoError(t, err)
		for included, want := range map[bool]float64{false: 1, true: 3} {
			price, err := plan.Evaluate(map[string]any{"b": included})
			require.NoError(t, err)
			require.Equal(t, want, price.Field, text)
			requireSum(t, outline.Explain(map[string]any{"b": included}, cost.ExplainOptions{}), text)
		}
	}
}
