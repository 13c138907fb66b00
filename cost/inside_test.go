package cost_test

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// both is a value of the input type Both with n elements: an object, which has two fields that can
// cost something, and n elements with two each.
func both(n int) map[string]any {
	list := make([]any, n)
	for i := range list {
		list[i] = map[string]any{"q": "x"}
	}
	return map[string]any{"and": list}
}

func TestAVariableIsReadOnceHoweverOftenItIsUsed(t *testing.T) {
	t.Parallel()
	estimator, schema := newEstimator(t, "library", withoutAliases(cost.Config{}))
	for _, uses := range []int{1, 2, 240} {
		doc := parse(t, schema, "query ($b: Both) {"+repeat(uses, " x%[1]d: both(both: $b)")+" }", false)
		plan, err := estimator.Compile(doc, doc.Operations[0])
		require.NoError(t, err)
		variables := map[string]any{"b": both(1000)}
		require.Equal(t, 3+1+3*1000, plan.Values(variables))
		price, err := plan.Evaluate(variables)
		require.NoError(t, err)
		require.Equal(t, float64(uses*(5+1+1+2*1000)), price.Field)
	}
}

func TestPastTheMostValuesAnOperationIsTooExpensiveAndNotReadOn(t *testing.T) {
	t.Parallel()
	const most = 500
	estimator, schema := newEstimator(t, "library", cost.Config{MaxValues: most})
	subgraph, federated := newEstimator(t, "federation", cost.Config{MaxValues: most})
	representations := make([]any, 100)
	for i := range representations {
		representations[i] = map[string]any{"__typename": "Product", "id": i}
	}
	nested := map[string]any{}
	for range 10_000 {
		nested = map[string]any{"and": []any{nested, nil}}
	}
	compile := func(e *cost.Estimator, s *ast.Schema, query string) *cost.Plan {
		doc := parse(t, s, query, false)
		plan, err := e.Compile(doc, doc.Operations[0])
		require.NoError(t, err)
		return plan
	}
	one := compile(estimator, schema, `query ($b: Both) { both(both: $b) }`)
	many := compile(estimator, schema, "query ("+repeat(100, " $b%[1]d: Both")+") {"+repeat(100, " x%[1]d: both(both: $b%[1]d)")+" }")
	split := map[string]any{}
	for i := range 100 {
		split[fmt.Sprintf("b%d", i)] = both(3)
	}
	for name, tt := range map[string]struct {
		plan      *cost.Plan
		variables map[string]any
		over      bool
	}{
		"as many as are allowed": {one, map[string]any{"b": both(165)}, false},
		"one element too many":   {one, map[string]any{"b": both(166)}, true},
		"a long list":            {one, map[string]any{"b": both(100_000)}, true},
		"a list of nothing":      {one, map[string]any{"b": map[string]any{"and": make([]any, 100_000)}}, true},
		"a typed list":           {one, map[string]any{"b": map[string]any{"and": make([]map[string]any, 100_000)}}, true},
		"a list of another type": {one, map[string]any{"b": map[string]any{"and": make([]string, 100_000)}}, true},
		"a deep value":           {one, map[string]any{"b": nested}, true},
		"many variables":         {many, split, true},
		"a few of the variables": {many, map[string]any{"b1": both(3), "b50": both(3)}, false},
		"representations": {
			compile(subgraph, federated, "query ($r: [_Any!]!) {"+repeat(5, " e%[1]d: _entities(representations: $r) { ... on Product { id } }")+" }"),
			map[string]any{"r": representations},
			false,
		},
		"representations in too many fields": {
			compile(subgraph, federated, "query ($r: [_Any!]!) {"+repeat(6, " e%[1]d: _entities(representations: $r) { ... on Product { id } }")+" }"),
			map[string]any{"r": representations},
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			price, err := tt.plan.Evaluate(tt.variables)
			require.NoError(t, err)
			require.Equal(t, tt.over, price.Points() == cost.MaxPoints, "%+v", price)
			// The last step may be an object with its two fields, or a list of representations.
			require.LessOrEqual(t, tt.plan.Values(tt.variables), most+100)
			require.Equal(t, tt.over, tt.plan.Values(tt.variables) > most)
		})
	}
}

func TestAVariableBelowAnEmptyListIsNotReadOnEither(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, `
input I { all: [I!] n: Int @cost(weight: "1") }
type Query { list(first: Int): [Query] @listSize(slicingArguments: ["first"]) a(i: I): Int }`, "")
	estimator, err := cost.New(schema, cost.Config{MaxValues: 10})
	require.NoError(t, err)
	doc := parse(t, schema, `query ($i: I) { list(first: 0) { a(i: $i) } }`, false)
	plan, err := estimator.Compile(doc, doc.Operations[0])
	require.NoError(t, err)
	price, err := plan.Evaluate(map[string]any{"i": map[string]any{"all": make([]any, 20)}})
	require.NoError(t, err)
	require.Equal(t, int64(cost.MaxPoints), price.Points(), "what was not read is not cheap")
}

func TestAnEvaluationOfOrdinaryVariablesAllocatesNothing(t *testing.T) {
	estimator, schema := newEstimator(t, "library", cost.Config{})
	doc := parse(t, schema, `query ($b: Both, $n: Int) { both(both: $b) x: both(both: $b) shelf(first: $n) { page { title } } }`, false)
	plan, err := estimator.Compile(doc, doc.Operations[0])
	require.NoError(t, err)
	variables := map[string]any{"b": both(10), "n": int64(3)}
	// One machine is used again and again, because the race detector makes pools forget.
	require.Zero(t, testing.AllocsPerRun(100, plan.Again(variables)))
}

func TestPastTheMostValuesTheActualCostIsInfiniteToo(t *testing.T) {
	t.Parallel()
	estimator, schema := newEstimator(t, "library", cost.Config{MaxValues: 100})
	doc := parse(t, schema, `query ($b: Both) { both(both: $b) }`, false)
	outline, err := estimator.Outline(doc, doc.Operations[0])
	require.NoError(t, err)
	for elements, known := range map[int]bool{10: true, 1000: false} {
		tally := outline.Tally(map[string]any{"b": both(elements)})
		require.NoError(t, tally.Add([]byte(`{"both": 1}`)))
		spent, err := tally.Cost()
		require.NoError(t, err)
		require.Equal(t, known, spent.Points() < cost.MaxPoints, elements)
		require.Equal(t, known, !math.IsInf(spent.Type, 1), elements)
	}
}

func TestNothingOfARequestStaysInMemoryAfterItsEvaluation(t *testing.T) {
	estimator, schema := newEstimator(t, "library", cost.Config{})
	doc := parse(t, schema, `query ($n: Int) { shelf(first: $n) { page { title } } }`, false)
	plan, err := estimator.Compile(doc, doc.Operations[0])
	require.NoError(t, err)
	// Several times, because the race detector makes pools forget.
	for range 20 {
		value := new([64]byte)
		kept := weak.Make(value)
		_, err := plan.Evaluate(map[string]any{"n": value})
		require.NoError(t, err)
		// What is only in a pool survives one collection.
		runtime.GC()
		require.Nil(t, kept.Value())
	}
}
