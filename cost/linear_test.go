package cost_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// hostileVariables are documents that grow with n and leave as much as they can to the variables $n, $m,
// $x and $y.
var hostileVariables = map[string]func(n int) string{
	"sizes in variables, nested": func(n int) string {
		return "query ($n: Int!) { def {" + repeat(n, " rel(first: $n) {") + " id " + strings.Repeat("}", n+2)
	},
	"sizes in variables, side by side": func(n int) string {
		return "query (" + repeat(n, " $v%[1]d: Int!") + ") {" + repeat(n, " x%[1]d: users(first: $v%[1]d) { posts(first: $v%[1]d) { heavy } }") + " }"
	},
	"sizes and conditions, nested": func(n int) string {
		return "query ($n: Int!, $x: Boolean!, $y: Boolean!) { def {" +
			repeat(n, " heavy @skip(if: $y) rel(first: $n) @include(if: $x) {") + " id " + strings.Repeat("}", n+2)
	},
	"a condition for each selection": func(n int) string {
		return "query (" + repeat(n, " $v%[1]d: Boolean!") + ") {" + repeat(n, " a @include(if: $v%[1]d) { e1 { id } }") + " }"
	},
	"exclusive branches that variables size": func(n int) string {
		return "query ($n: Int!, $m: Int!) { node {" +
			repeat(n, " ... on Item { r%[1]d: rel(first: $n) { heavy } } ... on User { p%[1]d: posts(first: $m) { heavy } }") + " } }"
	},
	"exclusive branches, nested in fragments": func(n int) string {
		return "query ($n: Int!, $m: Int!) { ...f0 }" +
			repeat(n, " fragment f%[1]d on Query { node { ... on Item { rel(first: $n) { id } } ... on User { posts(first: $m) { id } } } a { ...f%[2]d } }") +
			fmt.Sprintf(" fragment f%d on Query { rateLimit }", n)
	},
	"sizes for the lists below": func(n int) string {
		return "query (" + repeat(n, " $v%[1]d: Int!") + ") {" + repeat(n, " c%[1]d: conn(first: $v%[1]d) { ...C }") +
			" } fragment C on Connection { edges { node { id } } }"
	},
	"a path into a variable for each call": func(n int) string {
		return "query ($p: Page) {" + repeat(n, " x%[1]d: paged(page: $p) { heavy }") + " }"
	},
	"long literals": func(n int) string {
		return "{ paged(page: {first: 3, other: [" + repeat(n, " {a: {b: 1}}") + "]}) { id } }"
	},
	"nested literals": func(n int) string {
		return "{ paged(page: " + strings.Repeat("{page: ", n) + "{first: 3}" + strings.Repeat("}", n) + ") { id } }"
	},
	"directives": func(n int) string {
		return "query ($x: Boolean!) { e1" + strings.Repeat(" @skip(if: $x)", n) + " { id } }"
	},
}

// hundredfold returns sizes of a document, each ten times the one before. The parser of gqlparser
// v2.5.64 takes 1000 levels, so what is nested by its size has smaller ones.
func hundredfold(document func(n int) string) []int {
	const most = 1000
	depth, deepest := 0, 0
	for _, c := range document(3000) {
		switch c {
		case '{', '[', '(':
			depth++
			deepest = max(deepest, depth)
		case '}', ']', ')':
			depth--
		}
	}
	if deepest > most {
		return []int{4, 40, 400}
	}
	return []int{30, 300, 3000}
}

func allHostile() map[string]func(n int) string {
	all := maps.Clone(hostile)
	maps.Copy(all, hostileVariables)
	return all
}

// A document a hundred times as large takes a hundred times the work, and its plan as much more memory,
// in which an evaluation does as much more. All is counted and not timed; the times are those of
// BenchmarkHostile.
func TestADocumentAHundredTimesAsLargeTakesAHundredTimesTheWork(t *testing.T) {
	t.Parallel()
	estimator, _ := newEstimator(t, "bypass", cost.Config{})
	for name, document := range allHostile() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var lastWork, lastUnits int
			for _, n := range hundredfold(document) {
				doc := raw(t, document(n))
				plan, work, err := estimator.CompileSummed(doc, doc.Operations[0])
				require.NoError(t, err)
				units := plan.Units()
				if lastWork > 0 {
					require.LessOrEqual(t, float64(work), 11*float64(lastWork), "n = %d", n)
					require.LessOrEqual(t, float64(units), 11*float64(lastUnits), "n = %d", n)
				}
				lastWork, lastUnits = work, units
				price, err := plan.Evaluate(map[string]any{"n": int64(2), "m": int64(3), "x": true, "y": false})
				requireLimit(t, err)
				requireSane(t, price)
			}
		})
	}
}

// Within the default limit of work the same holds for merging, and past it for both together.
func TestTheWorkOfMergingAndSummingTogetherIsBounded(t *testing.T) {
	t.Parallel()
	estimator, _ := newEstimator(t, "bypass", cost.Config{Shape: cost.Shape{MaxAliases: 1, MaxListNodes: 1}})
	for name, document := range allHostile() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, n := range hundredfold(document) {
				doc := raw(t, document(n))
				_, summed, err := estimator.CompileSummed(doc, doc.Operations[0])
				require.NoError(t, err)
				work, err := estimator.Work(doc, doc.Operations[0])
				require.NoError(t, err)
				// The price and the list nodes are each merged up to the limit, and summed past it. What is
				// read between two looks at the limit is at most the document.
				require.LessOrEqual(t, work, 2*(cost.DefaultWorkLimit+2*summed), "n = %d", n)
			}
		})
	}
}

func TestAVariableAHundredTimesAsLargeTakesAHundredTimesTheWork(t *testing.T) {
	t.Parallel()
	estimator, schema := newEstimator(t, "library", cost.Config{})
	doc := parse(t, schema, `query ($b: Both!, $f: Filter, $fs: [Filter!], $d: Defaults) {
		a: both(both: $b) b: both(both: {and: [$b, $b]}) c: search(filter: $f) d: search(filter: {nested: $f})
		e: filters(filters: $fs) f: defaults(filter: $d)
	}`, false)
	plan, err := estimator.Compile(doc, doc.Operations[0])
	require.NoError(t, err)
	for name, variables := range map[string]func(n int) map[string]any{
		"a long list":     func(n int) map[string]any { return map[string]any{"b": both(n)} },
		"nulls in a list": func(n int) map[string]any { return map[string]any{"fs": make([]any, n)} },
		"a deep object": func(n int) map[string]any {
			filter := map[string]any{}
			for range n {
				filter = map[string]any{"nested": filter}
			}
			return map[string]any{"f": filter}
		},
		"a deep list": func(n int) map[string]any {
			value := any(map[string]any{"q": "x"})
			for range n {
				value = []any{value}
			}
			return map[string]any{"b": value}
		},
		"what no field declares": func(n int) map[string]any {
			value := map[string]any{}
			for i := range n {
				value[fmt.Sprintf("unknown%d", i)] = make([]any, 10)
			}
			return map[string]any{"b": value}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var last int
			for _, n := range []int{30, 300, 3000} {
				read := plan.Values(variables(n))
				if last > 0 {
					require.LessOrEqual(t, float64(read), 11*float64(last), "n = %d", n)
				}
				last = read
				price, err := plan.Evaluate(variables(n))
				require.NoError(t, err)
				requireSane(t, price)
			}
		})
	}
}

// Validation refuses cycles, but may be off.
func TestACycleOfFragmentsIsAnErrorWhateverItsLength(t *testing.T) {
	t.Parallel()
	estimator, _ := newEstimator(t, "bypass", cost.Config{Shape: cost.Shape{MaxDepth: 1, MaxListNodes: 1}})
	for _, length := range []int{1, 2, 1000} {
		for name, text := range map[string]string{
			"spreads": repeat(length-1, " fragment f%[1]d on Query { ...f%[2]d ...f%[2]d }") + fmt.Sprintf(" fragment f%d on Query { ...f0 }", length-1),
			"fields":  repeat(length-1, " fragment f%[1]d on Query { a { ...f%[2]d } }") + fmt.Sprintf(" fragment f%d on Query { x: a { y: a { ...f0 } } }", length-1),
		} {
			doc := raw(t, "{ a { ...f0 } } query Other { rateLimit }"+text)
			_, err := estimator.Plan(doc, doc.Operations[0])
			require.ErrorIs(t, err, cost.ErrCyclicFragment, "%s of length %d", name, length)
			_, err = estimator.Plan(doc, doc.Operations[1])
			require.NoError(t, err, "an operation that does not reach the cycle has its price")
		}
	}
}

func TestOfManyOperationsOnlyTheOneThatRunsTakesWork(t *testing.T) {
	t.Parallel()
	estimator, _ := newEstimator(t, "bypass", cost.Config{})
	alone := raw(t, "query Q0 { ...F } fragment F on Query { e1 { id } }")
	want, err := estimator.Work(alone, alone.Operations[0])
	require.NoError(t, err)
	doc := raw(t, repeat(1000, " query Q%[1]d { ...F ...F }")+" query Q { ...F } fragment F on Query { e1 { id } }")
	work, err := estimator.Work(doc, doc.Operations.ForName("Q"))
	require.NoError(t, err)
	require.Equal(t, want, work)
}

// BenchmarkHostile prints, for each hostile document and each size, the time of compiling, the time of an
// evaluation, and the work: a straight line has ten times as much of each in the next row of a document.
func BenchmarkHostile(b *testing.B) {
	estimator, _ := newEstimator(b, "bypass", cost.Config{})
	variables := map[string]any{"n": int64(2), "m": int64(3), "x": true, "y": false}
	all := allHostile()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, n := range hundredfold(all[name]) {
			text := all[name](n)
			b.Run(fmt.Sprintf("%s/%d", strings.ReplaceAll(name, ", ", "-"), n), func(b *testing.B) {
				doc := raw(b, text)
				op := doc.Operations[0]
				work, err := estimator.Work(doc, op)
				require.NoError(b, err)
				var plan *cost.Plan
				for b.Loop() {
					if plan, err = estimator.Compile(doc, op); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(work), "work")
				b.ReportMetric(float64(len(text)), "bytes")
				b.ReportMetric(float64(plan.Units()), "units")
				b.ReportMetric(evaluationTime(b, plan, variables), "ns/evaluation")
			})
		}
	}
}

// evaluationTime is the time of one evaluation in nanoseconds.
func evaluationTime(b *testing.B, plan *cost.Plan, variables map[string]any) float64 {
	b.Helper()
	const rounds = 200
	start := time.Now()
	for range rounds {
		_, err := plan.Evaluate(variables)
		requireLimit(b, err)
	}
	return float64(time.Since(start).Nanoseconds()) / rounds
}
