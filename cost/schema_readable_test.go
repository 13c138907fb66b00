package cost_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// sizings are the two ways in which an argument first, or page.first, sizes a list of orders.
var sizings = map[string]struct {
	cfg       cost.Config
	directive string
}{
	"by the convention": {cfg: cost.Config{Connections: cost.Connections{
		SlicingArguments: []string{"first", "page.first"}, SizedFields: []string{"nodes"},
	}}},
	"by the directive": {directive: `@listSize(slicingArguments: ["first", "page.first"], sizedFields: ["nodes"], requireOneSlicingArgument: false)`},
}

// ordersSchema is a schema with the field orders, whose argument first is of the type.
func ordersSchema(declared, fallback, directive string) string {
	if fallback != "" {
		fallback = " = " + fallback
	}
	return fmt.Sprintf(`
scalar PositiveInt
scalar Any
enum Size { SMALL LARGE INF }
input Page { first: %[1]s%[2]s }
type Query { orders(first: %[1]s%[2]s, page: Page): Orders %[3]s }
type Orders { nodes: [Order!]! }
type Order { id: ID! }`, declared, fallback, directive)
}

// priceOfOrders prices an operation as gqlgen does, by the compiled program, its reading and a summed form, which agree.
func priceOfOrders(t require.TestingT, cfg cost.Config, sdl, text string, variables map[string]any) float64 {
	schema, err := gqlparser.LoadSchema(directiveSource(""), &ast.Source{Name: "schema.graphqls", Input: sdl})
	require.NoError(t, err, sdl)
	estimator, err := cost.New(schema, cfg)
	require.NoError(t, err, sdl)
	doc, errs := gqlparser.LoadQueryWithRules(schema, text, nil)
	require.Empty(t, errs, text)
	op := doc.Operations[0]
	coerced, err := validator.VariableValues(schema, op, variables)
	require.NoError(t, err, text)
	plan, err := estimator.Compile(doc, op)
	require.NoError(t, err)
	price, err := plan.Evaluate(coerced)
	require.NoError(t, err)
	outline, err := estimator.Outline(doc, op)
	require.NoError(t, err)
	require.Equal(t, price, outline.Explain(coerced, cost.ExplainOptions{}).Cost, text)
	summed, _, err := estimator.CompileSummed(doc, op)
	require.NoError(t, err)
	sum, err := summed.Evaluate(coerced)
	require.NoError(t, err)
	require.GreaterOrEqual(t, sum.Type, price.Type, text)
	return price.Type
}

func TestAListIsPricedByTheNumberOfAnyScalar(t *testing.T) {
	t.Parallel()
	const below = "{ nodes { id } }"
	for _, scalar := range []struct {
		declared string
		literals []string
		values   []any
	}{
		{"Int", []string{"5000"}, []any{json.Number("5000"), "5000", "+5000"}},
		{"Float", []string{"5000", "5000.0", "5e3", "4999.5"}, []any{json.Number("5e3"), "5000"}},
		{"PositiveInt", []string{"5000", `"5000"`, `" +5000 "`, "4999.2"}, []any{json.Number("5000"), "5000", 5000, uint64(5000), " 5000"}},
		{"Any", []string{"5000", `"0x1388"`}, []any{json.Number("5000"), "5e3", float32(5000)}},
		{"ID", []string{"5000", `"5000"`}, []any{"5000", "05000"}},
		{"String", []string{`"5000"`, `"""5000"""`}, []any{"5000"}},
	} {
		for name, sizing := range sizings {
			t.Run(scalar.declared+" "+name, func(t *testing.T) {
				t.Parallel()
				sdl := ordersSchema(scalar.declared, "", sizing.directive)
				of := func(sdl, text string, variables map[string]any) {
					require.Equal(t, 1+1+5000.0, priceOfOrders(t, sizing.cfg, sdl, text, variables), "%s %v", text, variables)
				}
				for _, literal := range scalar.literals {
					of(sdl, "{ orders(first: "+literal+") "+below+" }", nil)
					of(sdl, "{ orders(page: {first: "+literal+"}) "+below+" }", nil)
					of(sdl, "query ($n: "+scalar.declared+" = "+literal+") { orders(first: $n) "+below+" }", nil)
					of(sdl, "query ($p: Page = {first: "+literal+"}) { orders(page: $p) "+below+" }", nil)
					defaulted := ordersSchema(scalar.declared, literal, sizing.directive)
					of(defaulted, "{ orders "+below+" }", nil)
					of(defaulted, "{ orders(first: null) "+below+" }", nil)
					of(defaulted, "{ orders(page: null) "+below+" }", nil)
					null := map[string]any{"n": nil, "p": nil}
					of(defaulted, "query ($n: "+scalar.declared+") { orders(first: $n) "+below+" }", null)
					of(defaulted, "query ($p: Page) { orders(page: $p) "+below+" }", null)
				}
				for _, value := range scalar.values {
					of(sdl, "query ($n: "+scalar.declared+") { orders(first: $n) "+below+" }", map[string]any{"n": value})
					of(sdl, "query ($n: "+scalar.declared+") { orders(page: {first: $n}) "+below+" }", map[string]any{"n": value})
					of(sdl, "query ($p: Page) { orders(page: $p) "+below+" }", map[string]any{"p": map[string]any{"first": value}})
				}
			})
		}
	}
}

func TestAListHasNoBoundWhereItsSizeIsNoNumber(t *testing.T) {
	t.Parallel()
	for _, unread := range []struct{ declared, literal string }{
		{"PositiveInt", `"all"`},
		{"PositiveInt", "ALL"},
		{"PositiveInt", "true"},
		{"PositiveInt", "{n: 5}"},
		{"PositiveInt", "[5]"},
		{"String", `""`},
		{"Size", "LARGE"},
		{"Size", "INF"},
		{"Boolean", "true"},
		{"Page", "{}"},
		{"[[Int]]", "[[1, 2, 3]]"},
	} {
		for name, sizing := range sizings {
			t.Run(unread.declared+" "+unread.literal+" "+name, func(t *testing.T) {
				t.Parallel()
				sdl := ordersSchema(unread.declared, "", sizing.directive)
				for _, text := range []string{
					"{ orders(first: " + unread.literal + ") { nodes { id } } }",
					"{ orders(page: {first: " + unread.literal + "}) { nodes { id } } }",
					"query ($n: " + unread.declared + " = " + unread.literal + ") { orders(first: $n) { nodes { id } } }",
				} {
					require.True(t, math.IsInf(priceOfOrders(t, sizing.cfg, sdl, text, nil), 1), text)
				}
				for _, text := range []string{"{ orders { nodes { id } } }", "{ orders(first: null) { nodes { id } } }"} {
					require.Equal(t, 1+1+10.0, priceOfOrders(t, sizing.cfg, sdl, text, nil), text)
				}
			})
		}
	}
}

func TestAListArgumentOfAConventionHasNoBound(t *testing.T) {
	t.Parallel()
	convention, directive := sizings["by the convention"], sizings["by the directive"]
	const text = "{ orders(first: [1, 2]) { nodes { id } } }"
	require.True(t, math.IsInf(priceOfOrders(t, convention.cfg, ordersSchema("[Int]", "", ""), text, nil), 1))
	require.Equal(t, 1+1+2.0, priceOfOrders(t, directive.cfg, ordersSchema("[Int]", "", directive.directive), text, nil))
}

func TestWhatIsNoNumberIsReported(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		declared, fallback string
		want               []string
	}{
		{"Int", "", nil},
		{"PositiveInt", "", nil},
		{"String", `"7"`, nil},
		{"PositiveInt", `"all"`, []string{"Page.first", "Query.orders(first:)"}},
		{"Size", "", []string{"Page.first", "Query.orders(first:)"}},
		{"Boolean", "", []string{"Page.first", "Query.orders(first:)"}},
		{"Page", "", []string{"Page.first", "Query.orders(first:)"}},
		{"[[Int]]", "", []string{"Page.first", "Query.orders(first:)"}},
	} {
		for name, sizing := range sizings {
			schema := loadSchema(t, ordersSchema(tt.declared, tt.fallback, sizing.directive), "")
			estimator, err := cost.New(schema, sizing.cfg)
			require.NoError(t, err)
			require.Equal(t, tt.want, estimator.UnreadableSizes(), "%s %s %s", tt.declared, tt.fallback, name)
			strict := sizing.cfg
			strict.RequireListSizes = true
			_, err = cost.New(schema, strict)
			if tt.want == nil {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, "Query.orders(first:): it sizes a list and is no number")
			}
		}
	}
	schema := loadSchema(t, `enum Size { LARGE } type Query { a: A } type A implements Paged { list(size: Size): [Int] }
interface Paged { list(size: Size): [Int] @listSize(slicingArguments: ["size"]) }`, "")
	estimator, err := cost.New(schema, cost.Config{})
	require.NoError(t, err)
	require.Equal(t, []string{"A.list(size:)"}, estimator.UnreadableSizes())
	seven := 7
	schema = loadSchema(t, ordersSchema("Size", "", sizings["by the directive"].directive), "")
	estimator, err = cost.New(schema, cost.Config{ListSizes: map[string]cost.ListSize{"Query.orders": {AssumedSize: &seven, SizedFields: []string{"nodes"}}}})
	require.NoError(t, err)
	require.Empty(t, estimator.UnreadableSizes())
}

// A resolver that is given null may take the default of the schema, or choose.
func TestNullIsAsDearAsTheDefault(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, `
input Page { first: Int = 40 }
input Few { first: Int = 2 }
type Query {
  a(first: Int = 50): [Item] @listSize(slicingArguments: ["first"], assumedSize: 7)
  b(page: Page): [Item] @listSize(slicingArguments: ["page.first"], assumedSize: 7)
  c(page: Page = {first: 60}): [Item] @listSize(slicingArguments: ["page.first"], requireOneSlicingArgument: false)
  d(first: Int = 4): [Item] @listSize(slicingArguments: ["first"], assumedSize: 7)
  f(few: Few): [Item] @listSize(slicingArguments: ["few.first"], assumedSize: 7)
  e(first: Int = 4, last: Int): [Item] @listSize(slicingArguments: ["first", "last"])
}
type Item { id: ID }`, "")
	for _, tt := range []struct {
		call string
		want float64
	}{
		{"a", 50},
		{"a(first: 3)", 3},
		{"a(first: null)", 50},
		{"a(first: $null)", 50},
		{"a(first: $absent)", 50},
		{"b", 7},
		{"b(page: null)", 7},
		{"b(page: {})", 40},
		{"b(page: {first: null})", 40},
		{"b(page: {first: $null})", 40},
		{"b(page: $nullPage)", 7},
		{"b(page: $nullFirst)", 40},
		{"b(page: $three)", 3},
		{"c", 60},
		{"c(page: null)", 60},
		{"c(page: $nullPage)", 60},
		{"c(page: {first: null})", 40},
		{"c(page: $nullFirst)", 40},
		{"d(first: null)", 7},
		{"d(first: $null)", 7},
		{"f(few: {})", 2},
		{"f(few: {first: null})", 7},
		{"f(few: $few)", 7},
		{"e(first: null, last: 30)", 30},
		{"e(first: $null, last: 30)", 30},
	} {
		text := "query ($null: Int, $absent: Int, $nullPage: Page, $nullFirst: Page, $three: Page, $few: Few) { " + tt.call + " { id } }"
		doc := raw(t, text)
		estimator, err := cost.New(schema, cost.Config{})
		require.NoError(t, err)
		plan, err := estimator.Compile(doc, doc.Operations[0])
		require.NoError(t, err)
		variables := map[string]any{
			"null": nil, "nullPage": nil, "nullFirst": map[string]any{"first": nil}, "three": map[string]any{"first": int64(3)},
			"few": map[string]any{"first": nil},
		}
		price, err := plan.Evaluate(variables)
		require.NoError(t, err, "null is not given: %s", tt.call)
		require.Equal(t, 1+tt.want, price.Type, tt.call)
		outline, err := estimator.Outline(doc, doc.Operations[0])
		require.NoError(t, err)
		require.Equal(t, price, outline.Explain(variables, cost.ExplainOptions{}).Cost, tt.call)
	}
}

// readers are how resolvers read a value: gqlgen's unmarshallers, and those that custom scalars usually have.
var readers = []func(value any) (int64, error){
	func(v any) (int64, error) { n, err := graphql.UnmarshalInt(v); return int64(n), err },
	func(v any) (int64, error) { n, err := graphql.UnmarshalInt32(v); return int64(n), err },
	func(v any) (int64, error) { return graphql.UnmarshalInt64(v) },
	func(v any) (int64, error) { n, err := graphql.UnmarshalUint32(v); return int64(n), err },
	func(v any) (int64, error) { n, err := graphql.UnmarshalIntID(v); return int64(n), err },
	func(v any) (int64, error) { n, err := graphql.UnmarshalFloat(v); return int64(n), err },
	func(v any) (int64, error) { return strconv.ParseInt(strings.TrimSpace(fmt.Sprint(v)), 10, 64) },
	func(v any) (int64, error) { return strconv.ParseInt(fmt.Sprint(v), 0, 64) },
	func(v any) (int64, error) {
		n, err := strconv.ParseFloat(fmt.Sprint(v), 64)
		return int64(math.Ceil(n)), err
	},
}

// TestTheResolverReadsNoMoreThanThePrice draws types, values and ways of sending them.
func TestTheResolverReadsNoMoreThanThePrice(t *testing.T) {
	t.Parallel()
	texts := rapid.OneOf(
		rapid.SampledFrom([]string{"all", "", "1e3", "0x1f", "0b11", "0o17", "1_000", " 12", "+7", "-7", "0012", "2.5", "9007199254740993"}),
		rapid.StringMatching(` ?[-+]?0?[xob]?[0-9_]{1,8}(\.[0-9])?(e[0-9])? ?`),
	)
	rapid.Check(t, func(t *rapid.T) {
		declared := rapid.SampledFrom([]string{"Int", "Float", "ID", "String", "PositiveInt", "Any"}).Draw(t, "type")
		n := rapid.Int64Range(-5, 1<<40).Draw(t, "number")
		value := rapid.SampledFrom([]any{
			json.Number(strconv.FormatInt(n, 10)), json.Number(fmt.Sprintf("%d.5", n)), strconv.FormatInt(n, 10), texts.Draw(t, "text"), n, true,
		}).Draw(t, "value")
		sizing := sizings[rapid.SampledFrom([]string{"by the convention", "by the directive"}).Draw(t, "sizing")]
		schema, err := gqlparser.LoadSchema(directiveSource(""), &ast.Source{Input: ordersSchema(declared, "", sizing.directive)})
		require.NoError(t, err)
		text := "query ($n: " + declared + ") { orders(first: $n) { nodes { id } } }"
		doc, errs := gqlparser.LoadQueryWithRules(schema, text, nil)
		require.Empty(t, errs)
		coerced, err := validator.VariableValues(schema, doc.Operations[0], map[string]any{"n": value})
		if err != nil {
			// gqlgen refuses the request.
			return
		}
		price := priceOfOrders(t, sizing.cfg, ordersSchema(declared, "", sizing.directive), text, map[string]any{"n": value})
		for i, read := range readers {
			if size, err := read(coerced["n"]); err == nil && size < cost.MaxPoints {
				require.GreaterOrEqual(t, price, 2+float64(max(0, size)), "%s %#v, reader %d", declared, value, i)
			}
		}
	})
}
