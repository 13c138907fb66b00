package cost_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// User implements A, B and C, of which C implements B, and A stands alone.
const mergedSchema = `
interface A { id: ID friends: User }
interface B { id: ID friends: User }
interface C implements B { id: ID friends: User }
type User implements A & B & C { id: ID friends: User }
type Query { me: User }`

// satisfied are the conditions of fragments that select on a User.
var satisfied = []string{"User", "A", "B", "C"}

func TestUnrelatedInterfacesAreCalledApart(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, mergedSchema, "")
	estimator, err := cost.New(schema, cost.Config{})
	require.NoError(t, err)
	for _, tt := range []struct {
		name, me string
		calls    float64
	}{
		{"one type", "friends{id} id friends{id}", 1},
		{"a type and its interfaces", "friends{id} ...on A{friends{id}}", 1},
		{"an interface that implements", "...on C{friends{id}} ...on B{friends{id}} friends{id}", 1},
		{"unrelated", "...on A{friends{id}} ...on B{friends{id}}", 2},
		{"unrelated, merged by the type for some", "friends{id} ...on A{friends{id}} ...on B{friends{id}}", 3},
		{"unrelated and twice", "...on A{friends{id}} ...on B{friends{id}} ...on B{friends{id}}", 3},
		{"below each other", "...on A{friends{...on A{friends{id}} ...on B{friends{id}}}} ...on B{friends{...on A{friends{id}} ...on B{friends{id}}}}", 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			doc, errs := gqlparser.LoadQueryWithRules(schema, "{me{"+tt.me+"}}", nil)
			require.Empty(t, errs)
			plan, err := estimator.Compile(doc, doc.Operations[0])
			require.NoError(t, err)
			price, err := plan.Evaluate(nil)
			require.NoError(t, err)
			require.Equal(t, 1+tt.calls, price.Field)
			require.GreaterOrEqual(t, price.Field, float64(gqlgenCalls(doc, nil)))
		})
	}
}

// Each level doubles the calls, of a document that grows by a fragment.
func TestCallsThatDoubleInEachLevelArePricedInTime(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, mergedSchema, "")
	estimator, err := cost.New(schema, cost.Config{})
	require.NoError(t, err)
	var text strings.Builder
	text.WriteString("{me{...F0}} ")
	const levels = 40
	for i := range levels {
		fmt.Fprintf(&text, "fragment F%d on User{...on A{friends{...F%[2]d}} ...on B{friends{...F%[2]d}}} ", i, i+1)
	}
	fmt.Fprintf(&text, "fragment F%d on User{id}", levels)
	doc, errs := gqlparser.LoadQueryWithRules(schema, text.String(), nil)
	require.Empty(t, errs)
	plan, err := estimator.Compile(doc, doc.Operations[0])
	require.NoError(t, err)
	price, err := plan.Evaluate(nil)
	require.NoError(t, err)
	require.GreaterOrEqual(t, price.Field, float64(uint64(1)<<levels))
}

// gqlgen decides which selections are one call, in an order of its own.
func TestAPriceCountsTheCallsThatGqlgenMakes(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, mergedSchema, "")
	estimator, err := cost.New(schema, cost.Config{})
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		text := "query($v:Boolean!,$w:Boolean!){me" + drawSelections(t, 3, "F", "G") + "}" +
			"fragment F on A" + drawSelections(t, 2, "G") + "fragment G on B" + drawSelections(t, 1)
		doc := (&generated{schema: schema, sdl: mergedSchema}).valid(t, text)
		plan, err := estimator.Compile(doc, doc.Operations[0])
		require.NoError(t, err)
		variables := map[string]any{"v": rapid.Bool().Draw(t, "v"), "w": rapid.Bool().Draw(t, "w")}
		price, err := plan.Evaluate(variables)
		require.NoError(t, err)
		require.GreaterOrEqual(t, price.Field, float64(gqlgenCalls(doc, variables)), "%s %v", text, variables)
	})
}

// drawSelections draws what is selected on a User, by fragments too.
func drawSelections(t *rapid.T, depth int, fragments ...string) string {
	if depth < 0 {
		return "{id}"
	}
	var b strings.Builder
	b.WriteString("{id")
	for range rapid.IntRange(0, 4).Draw(t, "selections") {
		directive := rapid.SampledFrom([]string{"", "", "@include(if:$v)", "@skip(if:$v)", "@include(if:$w)"}).Draw(t, "directive")
		switch kind := rapid.IntRange(0, 3).Draw(t, "kind"); {
		case kind == 0 && len(fragments) > 0:
			b.WriteString(" ..." + rapid.SampledFrom(fragments).Draw(t, "fragment") + directive)
		case kind <= 1:
			b.WriteString(" friends" + directive + drawSelections(t, depth-1, fragments...))
		default:
			b.WriteString(" ...on " + rapid.SampledFrom(satisfied).Draw(t, "on") + directive + drawSelections(t, depth-1, fragments...))
		}
	}
	return b.String() + "}"
}

// gqlgenCalls is how often gqlgen calls me and friends.
func gqlgenCalls(doc *ast.QueryDocument, variables map[string]any) int {
	op := &graphql.OperationContext{Doc: doc, Variables: variables}
	return callsIn(op, doc.Operations[0].SelectionSet, []string{"Query"})
}

func callsIn(op *graphql.OperationContext, selections ast.SelectionSet, satisfies []string) int {
	calls := 0
	for _, field := range graphql.CollectFields(op, selections, satisfies) {
		if slices.Contains([]string{"me", "friends"}, field.Name) {
			calls += 1 + callsIn(op, field.Selections, satisfied)
		}
	}
	return calls
}
