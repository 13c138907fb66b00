package cost_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// aliasSchema has texts, which cost nothing but bytes.
const aliasSchema = `
type Query { issue: Issue issues(first: Int!): [Issue!]! @listSize(slicingArguments: ["first"]) rateLimit: Budget }
type Issue { title: String body: String issue: Issue issues(first: Int!): [Issue!]! @listSize(slicingArguments: ["first"]) }
type Budget @cost(weight: "0") { cost: Int }
`

func TestEachFurtherAliasOfAFieldCosts(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, aliasSchema, "")
	for _, tt := range []struct {
		name, query string
		variables   map[string]any
		field       float64
	}{
		{"a name of its own is free", `{ issue { x: title y: body __typename } }`, nil, 1},
		{"a second name of a text costs", `{ issue { title again: title } }`, nil, 1.1},
		{"so does each one after", `{ issue { a: title b: title c: title body } }`, nil, 1.2},
		{"and of __typename", `{ issue { __typename a: __typename b: __typename } }`, nil, 1.2},
		{"on each object of a list", `{ issues(first: 10) { a: title b: title } }`, nil, 1 + 10*0.1},
		{"one name merged is one", `{ issue { a: title } issue { a: title b: title } }`, nil, 1.1},
		{"names that meet in fragments are several", `{ issue { ...F b: title } } fragment F on Issue { a: title }`, nil, 1.1},
		{"objects pay beside their calls", `{ a: issue { title } b: issue { title } }`, nil, 2.1},
		{"what is skipped is not there", `query ($no: Boolean!) { issue { a: title @include(if: $no) b: title } }`, map[string]any{"no": false}, 1},
		{"what is included is", `query ($no: Boolean!) { issue { a: title @include(if: $no) b: title } }`, map[string]any{"no": true}, 1.1},
		{"of two that are skipped none pays", `query ($no: Boolean!) { issue { a: title @include(if: $no) b: title @include(if: $no) body } }`, map[string]any{"no": false}, 1},
		{"what reads the budget is free", `{ issue { title } rateLimit { cost } b: rateLimit { cost } }`, nil, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			estimator, err := cost.New(schema, cost.Config{})
			require.NoError(t, err)
			doc := parse(t, schema, tt.query, false)
			plan, err := estimator.Plan(doc, doc.Operations[0])
			require.NoError(t, err)
			price, err := plan.Evaluate(tt.variables)
			require.NoError(t, err)
			require.InDelta(t, tt.field, price.Field, 1e-9)
			outline, err := estimator.Outline(doc, doc.Operations[0])
			require.NoError(t, err)
			told := 0.0
			for _, entry := range outline.Explain(tt.variables, cost.ExplainOptions{}).Entries {
				told += entry.Field
			}
			require.InDelta(t, tt.field, told, 1e-9, "the breakdown adds up")

			none, err := cost.New(schema, cost.Config{AliasWeight: cost.None})
			require.NoError(t, err)
			plan, err = none.Plan(doc, doc.Operations[0])
			require.NoError(t, err)
			unpaid, err := plan.Evaluate(tt.variables)
			require.NoError(t, err)
			require.InDelta(t, math.Trunc(unpaid.Field), unpaid.Field, 0, "without a weight nothing is left of the tenths")
		})
	}
}

func TestAnAliasIsPaidInWhatAResponseCost(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, aliasSchema, "")
	estimator, err := cost.New(schema, cost.Config{})
	require.NoError(t, err)
	doc := parse(t, schema, `{ issues(first: 10) { a: title b: title t: __typename __typename } }`, false)
	outline, err := estimator.Outline(doc, doc.Operations[0])
	require.NoError(t, err)
	tally := outline.Tally(nil)
	issue := `{"a": "x", "b": "y", "t": "Issue", "__typename": "Issue"}`
	require.NoError(t, tally.Add([]byte(`{"issues": [`+issue+`, `+issue+`]}`)))
	actual, err := tally.Cost()
	require.NoError(t, err)
	require.InDelta(t, 1+2*0.2, actual.Field, 1e-9)
}

func TestAliasesHaveALimitByDefault(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, aliasSchema, "")
	for _, tt := range []struct {
		limit, aliases int
		refused        bool
	}{{0, 200, false}, {0, 201, true}, {cost.None, 5000, false}, {3, 4, true}} {
		estimator, err := cost.New(schema, cost.Config{Shape: cost.Shape{MaxAliases: tt.limit}})
		require.NoError(t, err)
		doc := raw(t, "{ issue {"+repeat(tt.aliases, " a%[1]d: title")+" } }")
		plan, err := estimator.Plan(doc, doc.Operations[0])
		require.NoError(t, err)
		_, err = plan.Evaluate(nil)
		var shape *cost.ShapeError
		if tt.refused {
			require.ErrorAs(t, err, &shape)
			require.Equal(t, cost.RuleAliases, shape.Rule)
		} else {
			require.NoError(t, err)
		}
	}
	_, err := cost.New(schema, cost.Config{AliasWeight: -2, Shape: cost.Shape{MaxAliases: -2}})
	require.ErrorContains(t, err, "AliasWeight")
	require.ErrorContains(t, err, "MaxAliases")
}

func TestPricingAliasesAgainAllocatesNothing(t *testing.T) {
	schema := loadSchema(t, aliasSchema, "")
	estimator, err := cost.New(schema, cost.Config{})
	require.NoError(t, err)
	doc := parse(t, schema, "query ($n: Int!, $x: Boolean!) { issues(first: $n) {"+repeat(100, " a%[1]d: title @include(if: $x)")+" body } }", false)
	plan, err := estimator.Plan(doc, doc.Operations[0])
	require.NoError(t, err)
	variables := map[string]any{"n": int64(7), "x": true}
	price, err := plan.Evaluate(variables)
	require.NoError(t, err)
	require.InDelta(t, 1+7*9.9, price.Field, 1e-6)
	require.Zero(t, testing.AllocsPerRun(100, plan.Again(variables)))
}

// TestCompilingAllocatesNoMoreThanItDid bounds what a document takes that nobody has sent before. Whoever brings it down brings the
// numbers down.
func TestCompilingAllocatesNoMoreThanItDid(t *testing.T) {
	for name, most := range map[string]float64{sharedVariables: 98, ownVariables: 170} {
		o := loadOperation(t, name)
		compiled := testing.AllocsPerRun(20, func() {
			_, err := o.estimator.Compile(o.doc, o.op)
			require.NoError(t, err)
		})
		require.LessOrEqual(t, compiled, most, name)
	}
}
