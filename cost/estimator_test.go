package cost_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// aliasWeight is that of tests that compare sums exactly, which the tenths of the default are not made for.
const aliasWeight = 0.25

// unlimitedAliases lets generated operations have as many as they like.
var unlimitedAliases = cost.Shape{MaxAliases: cost.None}

// withoutAliases neither prices nor bounds aliases, for tests that are about what is called under them.
func withoutAliases(cfg cost.Config) cost.Config {
	cfg.AliasWeight, cfg.Shape.MaxAliases = cost.None, cost.None
	return cfg
}

// newEstimator returns an estimator of a schema of testdata/schemas. What is not about the alias weight has another one.
func newEstimator(t testing.TB, schema string, cfg cost.Config) (*cost.Estimator, *ast.Schema) {
	t.Helper()
	cfg.AliasWeight = cmp.Or(cfg.AliasWeight, aliasWeight)
	cfg.Shape.MaxAliases = cmp.Or(cfg.Shape.MaxAliases, cost.None)
	loaded := loadShared(t, schema)
	estimator, err := cost.New(loaded, cfg)
	require.NoError(t, err)
	return estimator, loaded
}

func TestPointsRoundUpWithoutNoiseAndSaturate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		cost cost.Cost
		want int64
	}{
		{cost.Cost{}, 1},
		{cost.Cost{Free: true, Type: 5}, 0},
		{cost.Cost{Type: 1, Field: 2, Base: 10}, 13},
		{cost.Cost{Field: 1.2}, 2},
		{cost.Cost{Field: 0.1 + 0.2 + 0.7 + 1e-12}, 1},
		{cost.Cost{Field: 3 - 1e-12}, 3},
		{cost.Cost{Field: 1e6 + 0.5}, 1_000_001},
		{cost.Cost{Type: -7}, 1},
		{cost.Cost{Type: cost.MaxPoints - 1}, cost.MaxPoints - 1},
		{cost.Cost{Type: cost.MaxPoints}, cost.MaxPoints},
		{cost.Cost{Type: math.MaxFloat64, Field: math.MaxFloat64}, cost.MaxPoints},
		{cost.Cost{Type: math.Inf(1)}, cost.MaxPoints},
		{cost.Cost{Type: math.NaN()}, cost.MaxPoints},
	} {
		require.Equal(t, tt.want, tt.cost.Points(), "%+v", tt.cost)
	}
}

func TestRootFieldsAreSortedAndDistinct(t *testing.T) {
	t.Parallel()
	estimator, schema := newEstimator(t, "library", cost.Config{})
	doc := parse(t, schema, `query ($x: Boolean!) {
		value b: book { title } a: book { title } ...F __typename __schema { types { name } }
		ids @include(if: $x) rateLimit @skip(if: true)
	}
	fragment F on Query { ... { plain } value }`, false)
	plan, err := estimator.Plan(doc, doc.Operations[0])
	require.NoError(t, err)
	require.Equal(t, []string{"Query.__schema", "Query.book", "Query.ids", "Query.plain", "Query.value"}, plan.RootFields())

	doc = parse(t, schema, `mutation { rename { title } }`, false)
	plan, err = estimator.Plan(doc, doc.Operations[0])
	require.NoError(t, err)
	require.Equal(t, []string{"Mutation.rename"}, plan.RootFields())
}

// V6 of the bypasses: a cached plan must not carry a price from one request to the next.
func TestACachedPlanIsPricedByTheVariablesOfEachRequest(t *testing.T) {
	t.Parallel()
	estimator, schema := newEstimator(t, "bypass", cost.Config{})
	doc := parse(t, schema, `query ($n: Int) { items(first: $n) { heavy } }`, false)
	small, err := estimator.Plan(doc, doc.Operations[0])
	require.NoError(t, err)
	again, err := estimator.Plan(doc, doc.Operations[0])
	require.NoError(t, err)
	require.Same(t, small, again)
	for _, n := range []int64{1, 1000, 2, 0} {
		price, err := again.Evaluate(map[string]any{"n": n})
		require.NoError(t, err)
		require.Equal(t, cost.Cost{Type: float64(1 + n), Field: float64(1 + 10*n)}, price)
	}
	// Another estimator, of a reloaded configuration, knows nothing of the first one's plans.
	other, _ := newEstimator(t, "bypass", cost.Config{Weights: map[string]float64{"Item.heavy": 1}})
	plan, err := other.Plan(doc, doc.Operations[0])
	require.NoError(t, err)
	price, err := plan.Evaluate(map[string]any{"n": int64(5)})
	require.NoError(t, err)
	require.Equal(t, 6.0, price.Field)
}

func TestThePlanCacheIsBoundedInNumberAndSize(t *testing.T) {
	t.Parallel()
	estimator, schema := newEstimator(t, "bypass", cost.Config{PlanCacheSize: 4})
	var first *ast.OperationDefinition
	var plans []*cost.Plan
	for i := range 10 {
		doc := parse(t, schema, fmt.Sprintf(`query ($n: Int) { items(first: $n) { heavy } x%d: e1 { id } }`, i), false)
		if first == nil {
			first = doc.Operations[0]
		}
		plan, err := estimator.Plan(doc, doc.Operations[0])
		require.NoError(t, err)
		plans = append(plans, plan)
		// The first operation is used all the time, so it is never the one that goes.
		kept, err := estimator.Plan(doc, first)
		require.NoError(t, err)
		require.Same(t, plans[0], kept)
	}
	count, _ := estimator.Cached()
	require.Equal(t, 4, count)

	var b strings.Builder
	b.WriteString("query (" + repeat(300, " $n%[1]d: Int") + ") {" + repeat(300, " x%[1]d: items(first: $n%[1]d) { heavy }") + " }")
	for range 3 {
		doc := parse(t, schema, b.String(), false)
		_, err := estimator.Plan(doc, doc.Operations[0])
		require.NoError(t, err)
	}
	count, _ = estimator.Cached()
	require.Equal(t, 1, count, "one plan of this size fills the cache")
}

func TestErrorsOfCompilingAreRemembered(t *testing.T) {
	t.Parallel()
	estimator, schema := newEstimator(t, "bypass", cost.Config{WorkLimit: 1, RefuseOverWork: true})
	doc := parse(t, schema, `{ e1 { id } }`, false)
	for range 2 {
		_, err := estimator.Plan(doc, doc.Operations[0])
		require.ErrorIs(t, err, cost.ErrWorkLimit)
	}
	count, _ := estimator.Cached()
	require.Equal(t, 1, count)
}

func TestPlansAreSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	estimator, schema := newEstimator(t, "bypass", cost.Config{PlanCacheSize: 2})
	var docs []*ast.QueryDocument
	for i := range 4 {
		docs = append(docs, parse(t, schema, fmt.Sprintf(`query ($n: Int) { items(first: $n) { heavy } x%d: e1 { id } }`, i), false))
	}
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := range 200 {
				doc := docs[(worker+i)%len(docs)]
				plan, err := estimator.Plan(doc, doc.Operations[0])
				if err != nil {
					t.Error(err)
					return
				}
				price, err := plan.Evaluate(map[string]any{"n": int64(i)})
				if err != nil || price.Type != float64(2+i) {
					t.Errorf("%v %v", price, err)
					return
				}
			}
		})
	}
	group.Wait()
}

func TestMalformedDocumentsAreErrors(t *testing.T) {
	t.Parallel()
	estimator, _ := newEstimator(t, "bypass", cost.Config{})
	loop := &ast.Field{Name: "a"}
	loop.SelectionSet = ast.SelectionSet{loop}
	inline := &ast.InlineFragment{TypeCondition: "Query"}
	inline.SelectionSet = ast.SelectionSet{inline}
	for name, tt := range map[string]struct {
		set  ast.SelectionSet
		want error
	}{
		"a nil selection":               {ast.SelectionSet{nil}, cost.ErrMalformed},
		"a nil field":                   {ast.SelectionSet{(*ast.Field)(nil)}, cost.ErrMalformed},
		"a nil inline fragment":         {ast.SelectionSet{(*ast.InlineFragment)(nil)}, cost.ErrMalformed},
		"a nil spread":                  {ast.SelectionSet{(*ast.FragmentSpread)(nil)}, cost.ErrMalformed},
		"an undefined fragment":         {ast.SelectionSet{&ast.FragmentSpread{Name: "F"}}, cost.ErrMalformed},
		"an object without selections":  {ast.SelectionSet{&ast.Field{Name: "e1"}}, cost.ErrMalformed},
		"an unknown field":              {ast.SelectionSet{&ast.Field{Name: "zero"}}, cost.ErrMalformed},
		"a field inside itself":         {ast.SelectionSet{loop}, cost.ErrTooDeep},
		"a fragment inside itself":      {ast.SelectionSet{inline}, cost.ErrTooDeep},
		"a directive without arguments": {ast.SelectionSet{&ast.Field{Name: "rateLimit", Directives: ast.DirectiveList{{Name: "skip"}, nil}}}, nil},
		"an argument without value":     {ast.SelectionSet{&ast.Field{Name: "paged", Arguments: ast.ArgumentList{{Name: "page"}}, SelectionSet: ast.SelectionSet{&ast.Field{Name: "id"}}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			op := &ast.OperationDefinition{Operation: ast.Query, SelectionSet: tt.set}
			_, err := estimator.Compile(&ast.QueryDocument{}, op)
			require.ErrorIs(t, err, tt.want)
		})
	}
	_, err := estimator.Compile(nil, nil)
	require.ErrorIs(t, err, cost.ErrMalformed)
	_, err = estimator.Plan(nil, nil)
	require.ErrorIs(t, err, cost.ErrMalformed)
}

func TestALimitErrorNamesFieldAndPath(t *testing.T) {
	t.Parallel()
	estimator, schema := newEstimator(t, "bypass", cost.Config{})
	doc := parse(t, schema, `query ($n: Int, $x: Boolean!) {
		a { ...F @skip(if: $x) }
		other: a { mine: a { ...F } }
	}
	fragment F on Query { s: strict(first: $n) { id } }`, false)
	plan, err := estimator.Plan(doc, doc.Operations[0])
	require.NoError(t, err)
	_, err = plan.Evaluate(map[string]any{"n": int64(3), "x": true})
	require.NoError(t, err)
	price, err := plan.Evaluate(map[string]any{"n": nil, "x": true})
	var limit *cost.ShapeError
	require.ErrorAs(t, err, &limit)
	require.Equal(t, &cost.ShapeError{
		Rule: cost.RuleSlicingArguments, Coordinate: "Query.strict", Path: []string{"other", "mine", "s"},
		Reason: "exactly one of first is required", Given: 0, Allowed: 1,
	}, limit)
	require.Equal(t, 14.0, price.Type, "the cost is valid even then")
}

// V17 of the bypasses.
func TestHugeInputsArePricedByWhatTheyAre(t *testing.T) {
	t.Parallel()
	estimator, schema := newEstimator(t, "library", cost.Config{})
	evaluate := func(query string, variables map[string]any) cost.Cost {
		doc := parse(t, schema, query, false)
		plan, err := estimator.Plan(doc, doc.Operations[0])
		require.NoError(t, err)
		price, err := plan.Evaluate(variables)
		require.NoError(t, err)
		return price
	}
	list := make([]any, 10_000)
	for i := range list {
		list[i] = map[string]any{"q": "x"}
	}
	price := evaluate(`query ($b: Both) { both(both: $b) }`, map[string]any{"b": map[string]any{"and": list}})
	require.Equal(t, 5.0+1+1+20_000, price.Field)

	nested := map[string]any{}
	for range 1000 {
		nested = map[string]any{"nested": nested}
	}
	price = evaluate(`query ($f: Filter) { search(filter: $f) }`, map[string]any{"f": nested})
	require.Equal(t, 5.0+15+1000, price.Field)

	cyclic := map[string]any{}
	cyclic["nested"] = cyclic
	price = evaluate(`query ($f: Filter) { search(filter: $f) }`, map[string]any{"f": cyclic})
	require.True(t, math.IsInf(price.Field, 1), "what has no end is too expensive")
}

func TestSizesOfEveryNumberTypeAreRead(t *testing.T) {
	t.Parallel()
	estimator, schema := newEstimator(t, "bypass", cost.Config{})
	doc := parse(t, schema, `query ($n: Int) { items(first: $n) { id } }`, false)
	plan, err := estimator.Plan(doc, doc.Operations[0])
	require.NoError(t, err)
	type named int16
	type text string
	three := 3
	for _, tt := range []struct {
		value any
		want  float64
	}{
		{3, 3},
		{int64(3), 3},
		{int32(3), 3},
		{uint8(3), 3},
		{named(3), 3},
		{3.0, 3},
		{float32(3), 3},
		{"3", 3},
		{int64(math.MinInt64), 0},
		{math.NaN(), math.Inf(1)},
		{math.Inf(-1), 0},
		{"1e400", math.Inf(1)},
		{" +3 ", 3},
		{"0x3", 3},
		{2.1, 3},
		{text("3"), 3},
		{&three, 3},
		{"three", math.Inf(1)},
		{"", math.Inf(1)},
		{strings.Repeat("0", 63) + "3", 3},
		{strings.Repeat("0", 64) + "3", math.Inf(1)},
		{json.Number(strings.Repeat("0", 64) + "3"), math.Inf(1)},
		{true, math.Inf(1)},
		{[]any{}, math.Inf(1)},
		{map[string]any{"n": 3}, math.Inf(1)},
		{nil, 20},
	} {
		price, err := plan.Evaluate(map[string]any{"n": tt.value})
		require.NoError(t, err)
		require.Equal(t, 1+tt.want, price.Type, "%T %v", tt.value, tt.value)
	}
}
