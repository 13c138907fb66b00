package cost_test

import (
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

const shop = `
type Query {
  products(first: Int! = 10): [Product!]! @listSize(slicingArguments: ["first"])
  unsized(first: Int): [Product!]!
  best: Product
  weighed: Product @cost(weight: "7")
  search(text: String @cost(weight: "2"), filter: Filter, tags: [String!], kind: Kind = BOOK): Int
}
type Product { name: String related(first: Int!): [Product!]! @listSize(slicingArguments: ["first"]) }
input Filter { text: String = "all" limits: [Int!] }
enum Kind { BOOK PEN }
`

// timesFirst is how most complexity functions of lists look.
func timesFirst(child int, arguments map[string]any) (int, bool) {
	first, ok := arguments["first"].(int64)
	return int(first) * child, ok
}

func always(answer int) cost.ComplexityFunc {
	return func(int, map[string]any) (int, bool) { return answer, true }
}

// pricedBy prices a query to the shop.
func pricedBy(t testing.TB, cfg cost.Config, query string, variables map[string]any) cost.Cost {
	t.Helper()
	schema := loadSchema(t, shop, "")
	estimator, err := cost.New(schema, withoutAliases(cfg))
	require.NoError(t, err)
	plan, err := estimator.Compile(parseOne(t, schema, query))
	require.NoError(t, err)
	got, err := plan.Evaluate(variables)
	require.NoError(t, err)
	return got
}

func parseOne(t testing.TB, schema *ast.Schema, query string) (*ast.QueryDocument, *ast.OperationDefinition) {
	t.Helper()
	doc := parse(t, schema, query, false)
	return doc, doc.Operations[0]
}

func TestAFunctionIsTheFieldCostOfItsCalls(t *testing.T) {
	t.Parallel()
	type functions = map[string]cost.ComplexityFunc
	for name, c := range map[string]struct {
		functions functions
		query     string
		typ       float64
		field     float64
	}{
		"of what is selected on one element": {
			functions{"Query.products": timesFirst},
			`{ products(first: 20) { related(first: 3) { name } } }`, 1 + 20*(1+3), 20 * 1,
		},
		"and the list size sizes the type cost": {
			functions{"Query.products": always(50)}, `{ products(first: 20) { name } }`, 1 + 20, 50,
		},
		"inside of one another": {
			functions{"Query.products": timesFirst, "Product.related": always(4)},
			`{ products(first: 20) { related(first: 3) { name } } }`, 1 + 20*(1+3), 20 * 4,
		},
		"of an object and not of a list": {
			functions{"Query.best": always(5)}, `{ best { name } }`, 1 + 1, 5,
		},
		"of a scalar": {
			functions{"Product.name": always(3)}, `{ products(first: 2) { name } }`, 1 + 2, 1 + 2*3,
		},
		"for each alias": {
			functions{"Query.best": always(5)}, `{ a: best { name } b: best { name } }`, 1 + 2, 10,
		},
		"which may be nothing": {
			functions{"Query.best": always(0)}, `{ best { name } }`, 1 + 1, 0,
		},
		"besides the weights of arguments": {
			functions{"Query.search": always(3)}, `{ search(text: "x") }`, 1, 3 + 2,
		},
		"of both costs of an element if nothing sizes the list": {
			functions{"Query.unsized": timesFirst},
			`{ unsized(first: 20) { related(first: 3) { name } } }`, 1 + 20*(1+3), 20 * 1,
		},
		"also where the list is sized by a constant": {
			functions{"Query.unsized": always(30)}, `{ unsized(first: 20) { name } }`, 1, 30,
		},
		"but not if the field has a directive": {
			functions{"Query.weighed": always(99)}, `{ weighed { name } }`, 1 + 1, 7,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, cost.Cost{Type: c.typ, Field: c.field}, pricedBy(t, cost.Config{Complexity: c.functions}, c.query, nil))
		})
	}
	weighed := cost.Config{Complexity: functions{"Query.best": always(99)}, Weights: map[string]float64{"Query.best": 7}}
	require.EqualValues(t, 7, pricedBy(t, weighed, `{ best { name } }`, nil).Field)
}

func TestAFunctionIsGivenTheArgumentsAsGqlgenReadsThem(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, shop, "")
	for query, variables := range map[string]map[string]any{
		`{ search }`: nil,
		`{ search(text: "a", filter: {text: "b", limits: [1, 2]}, tags: ["x"], kind: PEN) }`:                  nil,
		`query ($f: Filter, $t: String) { search(text: $t, filter: $f) }`:                                     {"f": map[string]any{"limits": []any{int64(1)}}, "t": nil},
		`query ($f: Filter, $t: String) { search(text: $t, filter: $f) } # neither is given`:                  {},
		`query ($n: Int!, $t: String = "d", $k: Kind) { search(filter: {limits: [$n], text: $t}, kind: $k) }`: {"n": int64(4), "t": "given"},
		`{ search(text: null, tags: null, kind: null) }`:                                                      nil,
	} {
		var got map[string]any
		cfg := cost.Config{Complexity: map[string]cost.ComplexityFunc{"Query.search": func(_ int, arguments map[string]any) (int, bool) {
			got = arguments
			return 1, true
		}}}
		doc, op := parseOne(t, schema, query)
		estimator, err := cost.New(schema, withoutAliases(cfg))
		require.NoError(t, err)
		plan, err := estimator.Compile(doc, op)
		require.NoError(t, err)
		_, err = plan.Evaluate(variables)
		require.NoError(t, err)
		require.Equal(t, op.SelectionSet[0].(*ast.Field).ArgumentMap(variables), got, query)
	}
}

func TestAFunctionThatSaysNothingPricesItsCallAtInfinity(t *testing.T) {
	t.Parallel()
	for name, function := range map[string]cost.ComplexityFunc{
		"it panics":                         func(int, map[string]any) (int, bool) { panic("no price") },
		"it panics without a value":         func(int, map[string]any) (int, bool) { panic(error(nil)) },
		"it cannot read its arguments":      func(int, map[string]any) (int, bool) { return 1, false },
		"there is too much to be asked for": always(1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := cost.Config{Complexity: map[string]cost.ComplexityFunc{"Query.products": function, "Query.unsized": function}}
			query := `query ($x: Boolean!, $n: Int!) { %s @include(if: $x) { related(first: $n) { related(first: $n) { name } } } }`
			variables := map[string]any{"x": true, "n": int64(math.MaxInt32)}
			got := pricedBy(t, cfg, fmt.Sprintf(query, "products"), variables)
			require.True(t, math.IsInf(got.Field, 1), "%+v", got)
			require.EqualValues(t, cost.MaxPoints, got.Points())
			got = pricedBy(t, cfg, fmt.Sprintf(query, "unsized"), variables)
			require.True(t, math.IsInf(got.Field, 1), "%+v", got)

			variables["x"] = false
			require.Equal(t, cost.Cost{Type: 1}, pricedBy(t, cfg, fmt.Sprintf(query, "products"), variables))
		})
	}
	cfg := cost.Config{Complexity: map[string]cost.ComplexityFunc{"Query.products": always(1)}}
	exact := pricedBy(t, cfg, `{ products { related(first: 2147483646) { related(first: 1) { name } } } }`, nil)
	require.EqualValues(t, 1, exact.Field, "2^31 - 1 below it is not too much")
}

func TestANegativeAnswerIsNoPrice(t *testing.T) {
	t.Parallel()
	for _, query := range []string{`{ products(first: 20) { name } }`, `{ unsized { name } }`, `{ best { name } }`} {
		functions := map[string]cost.ComplexityFunc{"Query.products": always(-1), "Query.unsized": always(math.MinInt), "Query.best": always(-5)}
		require.Equal(t, pricedBy(t, cost.Config{}, query, nil), pricedBy(t, cost.Config{Complexity: functions}, query, nil), query)
	}
}

func TestAFunctionIsAskedOnlyAboutCallsThatHappen(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	cfg := cost.Config{Complexity: map[string]cost.ComplexityFunc{"Product.related": func(int, map[string]any) (int, bool) {
		asked.Add(1)
		return 1, true
	}}}
	const below = `{ related(first: $n) { name } }`
	for _, query := range []string{
		`query ($x: Boolean!, $n: Int!) { best @include(if: $x) ` + below + ` }`,
		`query ($x: Boolean!, $n: Int!) { best { related(first: $n) @include(if: $x) { name } } }`,
		`query ($x: Boolean!, $n: Int!) { ... @include(if: $x) { products(first: $n) ` + below + ` } }`,
		`query ($x: Boolean!, $n: Int!) { ...F @include(if: $x) } fragment F on Query { products(first: $n) ` + below + ` }`,
	} {
		variables := map[string]any{"x": false, "n": int64(3)}
		asked.Store(0)
		pricedBy(t, cfg, query, variables)
		require.Zero(t, asked.Load(), query)
		variables["x"] = true
		pricedBy(t, cfg, query, variables)
		require.EqualValues(t, 1, asked.Load(), query)
	}
}

// TestFunctionsAreAskedLinearlyOften has a document of 48 selections that stand for 2^25 calls.
func TestFunctionsAreAskedLinearlyOften(t *testing.T) {
	t.Parallel()
	const levels = 24
	query := strings.Builder{}
	query.WriteString("{ best { ...F0 } }")
	for i := range levels {
		fmt.Fprintf(&query, " fragment F%d on Product { a: related(first: 1) { ...F%d } b: related(first: 1) { ...F%d } }", i, i+1, i+1)
	}
	fmt.Fprintf(&query, " fragment F%d on Product { name }", levels)
	asked := 0
	cfg := cost.Config{Complexity: map[string]cost.ComplexityFunc{"Product.related": func(child int, _ map[string]any) (int, bool) {
		asked++
		return child + 1, true
	}}}
	got := pricedBy(t, cfg, query.String(), nil)
	require.EqualValues(t, 1+1<<(levels+1)-2, got.Field)
	// Once for each selection: both that spread a fragment select the same.
	require.Equal(t, 2*levels, asked)
}

func TestTheValuesThatFunctionsAreGivenAreBounded(t *testing.T) {
	t.Parallel()
	cfg := cost.Config{MaxValues: 1000, Complexity: map[string]cost.ComplexityFunc{"Query.search": always(1)}}
	var query strings.Builder
	query.WriteString("query ($t: [String!], $f: Filter) {")
	for i := range 10 {
		fmt.Fprintf(&query, " a%d: search(tags: $t, filter: $f)", i)
	}
	query.WriteString(" }")
	few := map[string]any{"t": make([]any, 50), "f": map[string]any{"limits": []int64{1, 2}}}
	// 10 calls, and as many objects in an argument.
	require.EqualValues(t, 20, pricedBy(t, cfg, query.String(), few).Field)
	for name, many := range map[string]map[string]any{
		"a list":               {"t": make([]any, 200)},
		"a slice with a type":  {"t": make([]string, 200)},
		"a list in an object":  {"f": map[string]any{"limits": make([]any, 200)}},
		"a value that is deep": {"f": nested(20_000)},
	} {
		got := pricedBy(t, cfg, query.String(), many)
		require.True(t, math.IsInf(got.Field, 1), name)
	}
}

// nested returns a list in a list in a list.
func nested(depth int) any {
	var value any
	for range depth {
		value = []any{value}
	}
	return value
}

func TestFunctionsThatNameNothingAreMistakes(t *testing.T) {
	t.Parallel()
	_, err := cost.New(loadSchema(t, shop, ""), cost.Config{Complexity: map[string]cost.ComplexityFunc{
		"Query.nothing": always(1), "Product": always(1), "Query.best": nil,
	}})
	require.ErrorContains(t, err, "Query.nothing")
	require.ErrorContains(t, err, "Product: ")
	require.ErrorContains(t, err, "Query.best: the function in Config.Complexity is nil")
}

func TestAListThatAFunctionSizesIsNotUnsized(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, shop, "")
	_, err := cost.New(schema, cost.Config{RequireListSizes: true})
	require.ErrorContains(t, err, "Query.unsized")
	estimator, err := cost.New(schema, cost.Config{RequireListSizes: true, Complexity: map[string]cost.ComplexityFunc{"Query.unsized": timesFirst}})
	require.NoError(t, err)
	require.Empty(t, estimator.UnsizedLists())
}

func TestAMissingSlicingArgumentIsReportedBesideAFunction(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, `type Query { page(first: Int, last: Int): [Query!]! @listSize(slicingArguments: ["first", "last"]) }`, "")
	estimator, err := cost.New(schema, cost.Config{Complexity: map[string]cost.ComplexityFunc{"Query.page": always(1)}})
	require.NoError(t, err)
	plan, err := estimator.Compile(parseOne(t, schema, `{ page(first: 1) { page(first: 1, last: 1) { __typename } } }`))
	require.NoError(t, err)
	_, err = plan.Evaluate(nil)
	var broken *cost.ShapeError
	require.ErrorAs(t, err, &broken)
	require.Equal(t, []string{"page", "page"}, broken.Path)
}

func TestABreakdownShowsWhatAFunctionSaid(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, shop, "")
	estimator, err := cost.New(schema, cost.Config{Complexity: map[string]cost.ComplexityFunc{
		"Query.products": timesFirst, "Query.unsized": timesFirst,
	}})
	require.NoError(t, err)
	outline, err := estimator.Outline(parseOne(t, schema, `{
		products(first: 20) { related(first: 3) { name } }
		unsized(first: 5) { related(first: 3) { name } }
	}`))
	require.NoError(t, err)
	b := outline.Explain(nil, cost.ExplainOptions{})
	requireSum(t, b, "")
	byPath := map[string]cost.Entry{}
	for _, e := range b.Entries {
		byPath[strings.Join(e.Path, ".")] = e
	}
	products := byPath["products"]
	require.True(t, products.Complexity)
	require.Equal(t, []float64{20, 20}, []float64{products.Type, products.Field})
	require.EqualValues(t, 20, products.List.Size)
	require.Equal(t, []float64{60, 0}, []float64{byPath["products.related"].Type, byPath["products.related"].Field})
	unsized := byPath["unsized"]
	require.True(t, unsized.Complexity)
	require.Nil(t, unsized.List)
	require.Equal(t, []float64{20, 5}, []float64{unsized.Type, unsized.Field})
	require.NotContains(t, byPath, "unsized.related")
}

func TestACallWithAFunctionReallyCostsWhatWasEstimated(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, shop, "")
	estimator, err := cost.New(schema, cost.Config{MaxValues: 100, Complexity: map[string]cost.ComplexityFunc{
		"Query.products": timesFirst, "Product.name": always(3), "Query.search": always(4),
	}})
	require.NoError(t, err)
	outline, err := estimator.Outline(parseOne(t, schema, `query ($t: [String!]) {
		products(first: 20) { related(first: 3) { name } } best { name } search(tags: $t)
	}`))
	require.NoError(t, err)
	price := func(variables map[string]any, data string) cost.Cost {
		tally := outline.Tally(variables)
		require.NoError(t, tally.Add([]byte(data)))
		actual, err := tally.Cost()
		require.NoError(t, err)
		return actual
	}
	// Two products with one related each, and 20 × (1 + 3 × 3), because the function says what the call costs.
	require.Equal(t, cost.Cost{Type: 1 + 2 + 2, Field: 20 * 10}, price(nil, `{"products": [{"related": [{"name": "a"}]}, {"related": [{"name": null}]}]}`))
	require.Equal(t, cost.Cost{Type: 1, Field: 20 * 10}, price(nil, `{"products": null}`))
	require.Equal(t, cost.Cost{Type: 1 + 1, Field: 1 + 3}, price(nil, `{"best": {"name": "a"}}`))
	require.Equal(t, cost.Cost{Type: 1, Field: 4}, price(nil, `{"search": 1}`))
	many := price(map[string]any{"t": make([]any, 200)}, `{"search": 1}`)
	require.True(t, math.IsInf(many.Field, 1))
}

func TestTypesThatDifferOnlyInAFunctionAreToldApart(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, `type Query { n: N } interface N { x: Int } type A implements N { x: Int } type B implements N { x: Int }`, "")
	for _, dear := range []string{"A", "B"} {
		estimator, err := cost.New(schema, cost.Config{Complexity: map[string]cost.ComplexityFunc{dear + ".x": always(5)}})
		require.NoError(t, err)
		outline, err := estimator.Outline(parseOne(t, schema, `{ n { x } }`))
		require.NoError(t, err)
		for _, told := range []string{"A", "B", ""} {
			tally := outline.Tally(nil)
			if told != "" {
				tally.Observe(ast.Path{ast.PathName("n")}, told)
			}
			require.NoError(t, tally.Add([]byte(`{"n": {"x": 1}}`)))
			actual, err := tally.Cost()
			require.NoError(t, err)
			want := cost.Cost{Type: 2, Field: 1, Approximate: told == ""}
			if told == "" || told == dear {
				want.Field = 6
			}
			require.Equal(t, want, actual, "%s %s", dear, told)
		}
	}
}
