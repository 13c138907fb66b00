package cost_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// seed calls add with the queries and variables of the cases.
func seed(f *testing.F, add func(query, variables string)) {
	f.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "cases", "*.txtar"))
	require.NoError(f, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		_, sections := splitCase(string(text))
		add(sections["query"], sections["variables"])
	}
	for _, document := range hostile {
		add(document(8), `{"x": true, "y": false}`)
	}
}

// FuzzCompile compiles whatever parses, without validation, merged and summed, with weights and with
// functions.
func FuzzCompile(f *testing.F) {
	seed(f, func(query, _ string) { f.Add(query) })
	limits := cost.Shape{MaxDepth: 3, MaxIntrospectionDepth: 3, MaxAliases: 3, MaxRootFields: 3, MaxDirectives: 3, MaxListNodes: 3}
	weighted, _ := newEstimator(f, "bypass", cost.Config{WorkLimit: 5000, Shape: limits})
	asking, _ := newEstimator(f, "bypass", cost.Config{WorkLimit: 5000, Shape: limits, Complexity: drawnFunctions()})
	compile := func(t *testing.T, estimator *cost.Estimator, doc *ast.QueryDocument) {
		t.Helper()
		for _, op := range doc.Operations {
			plan, err := estimator.Compile(doc, op)
			if err != nil {
				known := errors.Is(err, cost.ErrMalformed) || errors.Is(err, cost.ErrCyclicFragment) ||
					errors.Is(err, cost.ErrTooDeep) || errors.Is(err, cost.ErrWorkLimit)
				require.True(t, known, "%v", err)
				continue
			}
			merged, err := plan.Evaluate(nil)
			requireSane(t, merged)
			requireLimit(t, err)
			if merged.Approximate {
				continue
			}
			sum, _, err := estimator.CompileSummed(doc, op)
			require.NoError(t, err)
			summed, _ := sum.Evaluate(nil)
			requireSane(t, summed)
			require.GreaterOrEqual(t, summed.Type, merged.Type)
			require.GreaterOrEqual(t, summed.Field, merged.Field)
		}
	}
	f.Fuzz(func(t *testing.T, query string) {
		doc, err := parser.ParseQuery(&ast.Source{Input: query})
		if err != nil {
			return
		}
		compile(t, weighted, doc)
		compile(t, asking, doc)
	})
}

// FuzzEvaluate evaluates one plan that reads variables in every way with whatever JSON there is, and a
// plan of the same document with functions that read all that they are given.
func FuzzEvaluate(f *testing.F) {
	seed(f, func(_, variables string) { f.Add(variables) })
	f.Add(`{"n": 1e400, "b": {"and": [{"q": null}, [], {"and": {}}]}, "f": {"nested": {"nested": []}}}`)
	f.Add(`{"n": "-9223372036854775808", "x": "yes", "y": null, "ids": {"a": [1]}}`)
	estimator, schema := newEstimator(f, "library", cost.Config{})
	doc := parse(f, schema, `query ($n: Int, $x: Boolean!, $y: Boolean!, $f: Filter, $d: Defaults, $b: Both!, $ids: [ID!]) {
		shelf(first: $n) { page { title } recent { author { name } } }
		range(first: $n) @include(if: $x) { title }
		byIDs(ids: $ids) @skip(if: $y) { author { name } }
		search(filter: $f) defaults(filter: $d) both(both: {and: [$b, {q: "x"}]})
		... @include(if: $y) { shelf(first: $n) { page { author { name } } } }
	}`, false)
	plan, err := estimator.Compile(doc, doc.Operations[0])
	require.NoError(f, err)
	functions := map[string]cost.ComplexityFunc{}
	for _, field := range []string{"shelf", "range", "byIDs", "search", "defaults", "both"} {
		functions["Query."+field] = func(child int, arguments map[string]any) (int, bool) {
			return child + len(fmt.Sprint(arguments)), true
		}
	}
	asking, _ := newEstimator(f, "library", cost.Config{Complexity: functions})
	asked, err := asking.Compile(doc, doc.Operations[0])
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text string) {
		var variables map[string]any
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		if decoder.Decode(&variables) != nil {
			return
		}
		price, err := plan.Evaluate(variables)
		requireLimit(t, err)
		requireSane(t, price)
		again, _ := plan.Evaluate(variables)
		require.Equal(t, price, again)
		for _, plan := range []*cost.Plan{plan, asked} {
			price, err := plan.Evaluate(variables)
			var limit *cost.ShapeError
			require.True(t, err == nil || errors.As(err, &limit), "%v", err)
			requireSane(t, price)
			again, _ := plan.Evaluate(variables)
			require.Equal(t, price, again)
		}
	})
}

// requireLimit requires that an error of Evaluate is one that clients can be told.
func requireLimit(t require.TestingT, err error) {
	if err == nil {
		return
	}
	var limit *cost.ShapeError
	require.ErrorAs(t, err, &limit)
	require.NotEmpty(t, limit.Rule)
	require.NotEmpty(t, limit.Reason)
	require.NotEqual(t, limit.Given, limit.Allowed)
}

// FuzzSchema reads whatever schema loads, with whatever weights and sizes it has, and prices an operation
// on it.
func FuzzSchema(f *testing.F) {
	for _, name := range []string{"bypass", "branches", "federation", "library", "signed"} {
		sdl, err := os.ReadFile(filepath.Join("testdata", "schemas", name+".graphqls"))
		require.NoError(f, err)
		f.Add(string(sdl), "{ rateLimit value book { title } _entities(representations: []) { id } }")
	}
	for _, weight := range []string{"NaN", "Infinity", "1e400", "-9007199254740992", "0x10", "1e-400", "-0"} {
		f.Add(`type T @cost(weight: "`+weight+`") { a: [T] b: Int @cost(weight: "`+weight+`") } type Query { a(i: I = {}): [T] } input I { i: I x: Int = 1 @cost(weight: "`+weight+`") }`,
			"{ a { a { b } } }")
	}
	f.Add(`interface N { n: N } type Query implements N { n: N l(first: Int = 2147483647, i: In): [[Query]] @listSize(slicingArguments: ["first", "i.p.x"], sizedFields: ["l"]) }
		input In { p: In = {p: {p: null}} x: [Int] = [1] }`, "{ n { n { ... on Query { l { l { __typename } } } } } }")
	f.Fuzz(func(t *testing.T, sdl, query string) {
		schema, err := gqlparser.LoadSchema(directiveSource(""), &ast.Source{Input: sdl})
		if err != nil {
			return
		}
		estimator, err := cost.New(schema, cost.Config{WorkLimit: 5000, Shape: cost.Shape{MaxListNodes: 1}})
		if err != nil {
			var mistake *cost.SchemaError
			require.ErrorAs(t, err, &mistake)
			return
		}
		doc, err := parser.ParseQuery(&ast.Source{Input: query})
		if err != nil {
			return
		}
		for _, op := range doc.Operations {
			if plan, err := estimator.Compile(doc, op); err == nil {
				price, err := plan.Evaluate(nil)
				requireSane(t, price)
				requireLimit(t, err)
			}
		}
	})
}
