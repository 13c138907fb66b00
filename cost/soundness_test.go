package cost_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// generated is a drawn schema with its estimator.
type generated struct {
	sdl       string
	schema    *ast.Schema
	estimator *cost.Estimator
}

func drawGenerated(t *rapid.T) generated {
	g := generated{sdl: drawSchema(t)}
	var err error
	g.schema, err = gqlparser.LoadSchema(directiveSource(""), &ast.Source{Name: "schema.graphqls", Input: g.sdl})
	require.NoError(t, err, g.sdl)
	g.estimator, err = cost.New(g.schema, cost.Config{DefaultListSize: generatedSize, AliasWeight: aliasWeight, Shape: unlimitedAliases})
	require.NoError(t, err, g.sdl)
	return g
}

// valid parses a drawn operation and holds that the draw is not of what servers refuse.
func (g *generated) valid(t *rapid.T, text string) *ast.QueryDocument {
	doc, err := parser.ParseQuery(&ast.Source{Input: text})
	require.NoError(t, err, text)
	for _, refused := range validator.ValidateWithRules(g.schema, doc, nil) {
		// What is defined and not used has no price.
		require.Contains(t, []string{"NoUnusedVariables", "NoUnusedFragments"}, refused.Rule, "%v\n%s\n%s", refused, g.sdl, text)
	}
	return doc
}

// drawn is an operation over a drawn schema, compiled.
type drawn struct {
	generated
	operation document
	variables map[string]any
	typed     bool
	doc       *ast.QueryDocument
	plan      *cost.Plan
}

func drawPriced(t *rapid.T) drawn {
	d := drawn{generated: drawGenerated(t)}
	d.operation, d.variables, d.typed = drawOperation(t, d.schema)
	d.doc = d.valid(t, d.operation.String())
	var err error
	d.plan, err = d.estimator.Compile(d.doc, d.doc.Operations[0])
	require.NoError(t, err, d)
	return d
}

// String spells out what is needed to see a failure again.
func (d drawn) String() string {
	return fmt.Sprintf("%s\n%s\n%v", d.sdl, d.operation, d.variables)
}

// noLess requires both parts of a cost.
func noLess(t require.TestingT, high, low cost.Cost, args ...any) {
	require.GreaterOrEqual(t, high.Type, low.Type, args...)
	require.GreaterOrEqual(t, high.Field, low.Field, args...)
}

// The price is an upper bound: of every response that respects the declared sizes, whatever types and
// weights there are. What a response cost is read from its objects.
func TestNoResponseCostsMoreThanThePrice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawPriced(t)
		op := d.doc.Operations[0]
		price, err := d.plan.Evaluate(d.variables)
		require.NoError(t, err)
		require.False(t, price.Approximate)
		sum, _, err := d.estimator.CompileSummed(d.doc, op)
		require.NoError(t, err)
		summed, err := sum.Evaluate(d.variables)
		require.NoError(t, err)
		noLess(t, summed, price, d)

		e := execution{oracle: oracle{schema: d.schema, doc: d.doc, variables: d.variables}, t: t, left: 300}
		response := e.execute(d.schema.Query, []ast.SelectionSet{op.SelectionSet}, sizedBelow{size: -1})
		typ, field := e.price(response)
		spent := cost.Cost{Type: max(0, typ), Field: field}
		data, err := json.Marshal(response)
		require.NoError(t, err)
		noLess(t, price, spent, "%v\n%s", d, data)

		// What the package reads from the response is not less, and is exact where the response tells its
		// types.
		outline, err := d.estimator.Outline(d.doc, op)
		require.NoError(t, err)
		tally := outline.Tally(d.variables)
		if err := tally.Add(data); err != nil {
			// Objects that do not tell their type are followed in a bounded number of ways only.
			require.False(t, d.typed, "%v\n%v\n%s", err, d, data)
			return
		}
		actual, err := tally.Cost()
		require.NoError(t, err)
		noLess(t, actual, spent, "%v\n%s", d, data)
		require.False(t, d.typed && actual.Approximate)
		// An object that is taken for one of another type can have longer lists than that type declares.
		if !actual.Approximate {
			noLess(t, spent, actual, "%v\n%s", d, data)
		}
	})
}

// The number of list nodes is an upper bound as well.
func TestNoResponseHasMoreListNodesThanAreCounted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawPriced(t)
		counting, err := cost.New(d.schema, cost.Config{DefaultListSize: generatedSize, Shape: cost.Shape{MaxListNodes: 1, MaxAliases: cost.None}})
		require.NoError(t, err)
		plan, err := counting.Compile(d.doc, d.doc.Operations[0])
		require.NoError(t, err)
		counted := 1
		if _, err := plan.Evaluate(d.variables); err != nil {
			var limit *cost.ShapeError
			require.ErrorAs(t, err, &limit)
			counted = limit.Given
		}
		e := execution{oracle: oracle{schema: d.schema, doc: d.doc, variables: d.variables}, t: t, left: 300}
		response := e.execute(d.schema.Query, []ast.SelectionSet{d.doc.Operations[0].SelectionSet}, sizedBelow{size: -1})
		require.LessOrEqual(t, response.listNodes(), counted, d)
	})
}

// The price of an operation is that of every other that means the same, on whatever schema: with its
// selections in another order, doubled or in fragments, and with other names in the response.
func TestOperationsThatMeanTheSameCostTheSameOnEverySchema(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawPriced(t)
		want, err := d.plan.Evaluate(d.variables)
		require.NoError(t, err)
		respelled := respell(t, d.operation).String()
		renamed := regexp.MustCompile(`\br([0-9]+):`).ReplaceAllString(d.operation.String(), "other$1:")
		for _, text := range []string{respelled, renamed} {
			doc := d.valid(t, text)
			plan, err := d.estimator.Compile(doc, doc.Operations[0])
			require.NoError(t, err)
			got, err := plan.Evaluate(d.variables)
			require.NoError(t, err)
			require.Equal(t, want, got, "%v\n%s", d, text)
		}
	})
}

func TestALargerListNeverCostsLessOnEverySchema(t *testing.T) {
	t.Parallel()
	// 1 and 2 may have weights of their own, which are no sizes.
	size := func(least, most int64) *rapid.Generator[int64] {
		return rapid.Int64Range(least, most).Filter(func(n int64) bool { return n != 1 && n != 2 })
	}
	rapid.Check(t, func(t *rapid.T) {
		d := drawPriced(t)
		for _, name := range []string{"n", "m"} {
			d.variables[name] = size(-2, 1_000).Draw(t, "small")
		}
		small, err := d.plan.Evaluate(d.variables)
		require.NoError(t, err)
		name := rapid.SampledFrom([]string{"n", "m"}).Draw(t, "name")
		d.variables[name] = size(d.variables[name].(int64), 1_000_000).Draw(t, "larger")
		large, err := d.plan.Evaluate(d.variables)
		require.NoError(t, err)
		noLess(t, large, small, d)
		requireSane(t, small)
		requireSane(t, large)
	})
}
