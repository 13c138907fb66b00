package cost_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
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

const (
	// longestText is how many bytes a text of the schema has at most, as JSON.
	longestText = 1000
	// longestName is that of a response name.
	longestName = 10
)

// bytesDocument draws an operation, and returns how many bytes its answer has where each list and each text is as long
// as it may be.
func bytesDocument(random *rand.Rand, b *strings.Builder, depth int, aliases *int) int {
	b.WriteString("{ __typename ")
	bytes := len(`{"__typename":"Issue"},`)
	name := func() string {
		*aliases++
		return fmt.Sprintf("a%d", *aliases)
	}
	for range random.IntN(1 + []int{2, 20, 60}[random.IntN(3)]) {
		field := []string{"title", "body"}[random.IntN(2)]
		if depth == 0 {
			break
		}
		alias := name()
		fmt.Fprintf(b, "%s: %s ", alias, field)
		bytes += len(alias) + len(`"":,`) + longestText
	}
	for range random.IntN(3) {
		if depth == 3 {
			break
		}
		alias, first := name(), []int{0, 1, 5, 50}[random.IntN(4)]
		fmt.Fprintf(b, "%s: issues(first: %d) ", alias, first)
		bytes += len(alias) + len(`"":[],`) + first*bytesDocument(random, b, depth+1, aliases)
	}
	b.WriteString("} ")
	return bytes
}

// A point buys so many texts: as many as an object has, or ten further aliases, with their names and what is around them.
func TestAPointBuysNoMoreBytesThanThePageSays(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, aliasSchema, "")
	estimator, err := cost.New(schema, cost.Config{Shape: cost.Shape{MaxAliases: cost.None}})
	require.NoError(t, err)
	const most = 10*(longestText+longestName+4) + longestName + len(`{"__typename":"Issue"},`) + 9
	random, worst := rand.New(rand.NewPCG(13, 3)), 0.0
	for range 3000 {
		var b strings.Builder
		aliases := 0
		bytes := bytesDocument(random, &b, 0, &aliases)
		doc := raw(t, b.String())
		plan, err := estimator.Plan(doc, doc.Operations[0])
		require.NoError(t, err)
		price, err := plan.Evaluate(nil)
		require.NoError(t, err)
		// An operation that reads nothing costs nothing, and has a request to pay.
		points := int(max(1, price.Points()))
		worst = max(worst, float64(bytes)/float64(points))
		require.LessOrEqual(t, bytes, points*most, b.String())
	}
	t.Logf("%.0f of %d bytes a point", worst, most)
	require.Greater(t, worst, 0.6*float64(most), "the search comes near it")
}
