package cost_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

func TestAnOutlineIsCompiledOnceHoweverManyAskForIt(t *testing.T) {
	t.Parallel()
	estimator, schema := newEstimator(t, "bypass", cost.Config{})
	text := "{" + repeat(200, " f%[1]d: e1 { id }") + " }"
	doc := parse(t, schema, text, false)
	found := make([]*cost.Outline, 32)
	var all sync.WaitGroup
	for i := range found {
		all.Go(func() { found[i], _ = estimator.OutlineText(text, doc, doc.Operations[0]) })
	}
	all.Wait()
	require.NotNil(t, found[0])
	for _, outline := range found {
		require.Same(t, found[0], outline)
	}
	again := parse(t, schema, text, false)
	outline, err := estimator.OutlineText(text, again, again.Operations[0])
	require.NoError(t, err)
	require.Same(t, found[0], outline, "the same text is the same operation")
	outline, err = estimator.Outline(again, again.Operations[0])
	require.NoError(t, err)
	require.Equal(t, found[0].Explain(nil, cost.ExplainOptions{}), outline.Explain(nil, cost.ExplainOptions{}))
}

func TestAPlanKnowsItsOutlineOnceOneWasAskedFor(t *testing.T) {
	t.Parallel()
	estimator, schema := newEstimator(t, "bypass", cost.Config{})
	const text = `{ e1 { id } }`
	doc := parse(t, schema, text, false)
	plan, err := estimator.PlanText(text, doc, doc.Operations[0])
	require.NoError(t, err)
	require.Nil(t, plan.Outline(), "most are never asked for")
	outline, err := estimator.OutlineText(text, doc, doc.Operations[0])
	require.NoError(t, err)
	for range 2 {
		// The second look-up is by the address of the operation, under which the same plan stands.
		plan, err = estimator.PlanText(text, doc, doc.Operations[0])
		require.NoError(t, err)
		require.Same(t, outline, plan.Outline())
	}
	uncached, err := estimator.Compile(doc, doc.Operations[0])
	require.NoError(t, err)
	require.Nil(t, uncached.Outline())
}

func TestOutlinesAreKeptWhileTheyAreUsedAndBoundedInSize(t *testing.T) {
	t.Parallel()
	// Four plans may have 2048 units with their outlines.
	estimator, schema := newEstimator(t, "bypass", cost.Config{PlanCacheSize: 4})
	used := parse(t, schema, "{ e1 { id } }", false)
	first, err := estimator.Outline(used, used.Operations[0])
	require.NoError(t, err)
	for i := range 50 {
		// So many plans are not kept, nor their outlines.
		doc := parse(t, schema, "{"+repeat(60, fmt.Sprintf(" f%d_%%[1]d: e1 { id }", i))+" }", false)
		_, err := estimator.Outline(doc, doc.Operations[0])
		require.NoError(t, err)
		again, err := estimator.Outline(used, used.Operations[0])
		require.NoError(t, err)
		require.Same(t, first, again)
		plans, units := estimator.Cached()
		require.LessOrEqual(t, units, 2048)
		require.LessOrEqual(t, plans, 4)
	}
	large := parse(t, schema, "{"+repeat(600, " f%[1]d: e1 { id }")+" }", false)
	outline, err := estimator.Outline(large, large.Operations[0])
	require.NoError(t, err, "one that is larger than all others together may be is kept alone")
	require.NotNil(t, outline)
	plans, _ := estimator.Cached()
	require.Equal(t, 1, plans)
}

// A server without a cache of documents parses one for each request. None may stay because of its outline.
func TestAnOutlineDoesNotKeepTheDocument(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, `
directive @log(level: Int @cost(weight: "4")) on FIELD
input I { all: [I!] n: Int @cost(weight: "1") name: String }
interface Node { name: String next: Node }
type A implements Node { name: String next: Node }
type B implements Node { name: String next: Node price: Int }
type Query { node: Node f(i: I, e: [Int]): Int nodes(first: Int): [Node] @listSize(slicingArguments: ["first"]) g(first: Int): [Node] }`, "")
	estimator, err := cost.New(schema, cost.Config{Complexity: map[string]cost.ComplexityFunc{
		"Query.g": func(child int, arguments map[string]any) (int, bool) {
			first, ok := arguments["first"].(int64)
			return child * int(first), ok
		},
	}})
	require.NoError(t, err)
	text := `query Q($n: Int = 3, $yes: Boolean = true, $i: I = {n: 1}) {
  node { ...F ... on B @include(if: $yes) { cost: price } }
  f(i: {n: 2, name: "x", all: [{n: 1}, $i]}, e: []) @log(level: 3)
  many: nodes(first: $n) { ...F @skip(if: $yes) __typename } ten: g(first: 10) { ...F }
} fragment F on Node { name n: name @log(level: 1) next { name } }`
	outlined := func() (*cost.Outline, weak.Pointer[ast.QueryDocument], weak.Pointer[ast.Field]) {
		// The cache keeps the text, but no document.
		doc := parse(t, schema, text, false)
		outline, err := estimator.OutlineText(text, doc, doc.Operations[0])
		require.NoError(t, err)
		// A fragment is reached from wherever it is spread.
		name, ok := doc.Fragments[0].SelectionSet[1].(*ast.Field)
		require.True(t, ok)
		return outline, weak.Make(doc), weak.Make(name)
	}
	outline, doc, field := outlined()
	want := outline.Explain(nil, cost.ExplainOptions{})
	require.NotEmpty(t, want.Entries)
	for range 3 {
		runtime.GC()
	}
	require.Nil(t, doc.Value())
	require.Nil(t, field.Value())
	require.Equal(t, want, outline.Explain(nil, cost.ExplainOptions{}))
	require.NoError(t, outline.Tally(nil).Add([]byte(`{"many": [{"__typename": "B"}], "node": {"name": "", "n": "", "next": null, "cost": 1}}`)))
}

func TestOutlinesLeaveWithTheirPlans(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		config   cost.Config
		document func(i int) string
	}{
		"tiny":       {document: func(i int) string { return fmt.Sprintf("{ f%d: __typename }", i) }},
		"comments":   {document: func(i int) string { return fmt.Sprintf("{ f%d: e1 { id } } #", i) + strings.Repeat("x", 64<<10) }},
		"long names": {document: func(i int) string { return fmt.Sprintf("{ f%d%s: e1 { id } }", i, strings.Repeat("x", 20<<10)) }},
		"long literals": {document: func(i int) string {
			return fmt.Sprintf("{ f%d: paged(page: {first: [%s]}) { id } }", i, strings.Repeat("1 ", 200))
		}},
		"sums": {cost.Config{WorkLimit: 10}, func(i int) string { return fmt.Sprintf("{ f%d: e1 { id } %s }", i, repeat(20, " x%[1]d: e1 { id }")) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.config.PlanCacheSize = 8
			estimator, _ := newEstimator(t, "bypass", tt.config)
			for i := range 100 {
				text := tt.document(i)
				doc := raw(t, text)
				_, err := estimator.OutlineText(text, doc, doc.Operations[0])
				require.NoError(t, err)
				plans, units := estimator.Cached()
				if plans > 1 {
					require.LessOrEqual(t, units, 8*512)
				}
				require.GreaterOrEqual(t, 100*units, plans*len(text)-100, "the texts count")
			}
		})
	}
}

// A server that follows its operations asks for each outline. It compiles an operation once.
func TestWhereOutlinesAreAskedForNewOperationsAreCompiledWithTheirs(t *testing.T) {
	t.Parallel()
	estimator, schema := newEstimator(t, "bypass", cost.Config{})
	text := func(i int) string { return fmt.Sprintf("query ($n: Int) { f%d: items(first: $n) { id heavy } }", i) }
	first := parse(t, schema, text(1), false)
	plan, err := estimator.Plan(first, first.Operations[0])
	require.NoError(t, err)
	outline, err := estimator.Outline(first, first.Operations[0])
	require.NoError(t, err)
	_, before := estimator.Cached()
	second := parse(t, schema, text(2), false)
	later, err := estimator.Plan(second, second.Operations[0])
	require.NoError(t, err)
	_, compiled := estimator.Cached()
	require.Greater(t, compiled-before, outline.OutlineSize())
	_, err = estimator.Outline(second, second.Operations[0])
	require.NoError(t, err)
	_, after := estimator.Cached()
	require.Equal(t, compiled, after)
	for _, n := range []any{nil, int64(3)} {
		want, err := plan.Evaluate(map[string]any{"n": n})
		require.NoError(t, err)
		got, err := later.Evaluate(map[string]any{"n": n})
		require.NoError(t, err)
		require.Equal(t, want, got, "the price does not depend on who has asked")
	}
}
