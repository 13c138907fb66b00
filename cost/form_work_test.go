package cost_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// hostile are documents that grow with n and that naive estimators price in more than linear time.
var hostile = map[string]func(n int) string{
	"fields":       func(n int) string { return "{" + repeat(n, " f%[1]d: e1 { id }") + " }" },
	"equal fields": func(n int) string { return "{" + repeat(n, " e1 { id }") + " }" },
	// Found by the search of contrib/benchmarks: what an object selects by a fragment was merged again under each alias.
	"a fragment of aliases under aliases": func(n int) string {
		return "{" + repeat(n, " x%[1]d: a { ...F ...F }") + " } fragment F on Query {" + repeat(n, " y%[1]d: rateLimit") + " }"
	},
	"a fragment of aliases, spread in other numbers under each alias": func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, " x%d: a {%s }", i, strings.Repeat(" ...F", 1+i%8))
		}
		return "{" + b.String() + " } fragment F on Query {" + repeat(n, " y%[1]d: rateLimit") + " }"
	},
	"nested spreads, V1": func(n int) string {
		return "{ ...f0 }" + repeat(n, " fragment f%[1]d on Query { ...f%[2]d ...f%[2]d }") + fmt.Sprintf(" fragment f%d on Query { rateLimit }", n)
	},
	"nested aliases, V1": func(n int) string {
		return "{ ...f0 }" + repeat(n, " fragment f%[1]d on Query { x: a { ...f%[2]d } y: a { ...f%[2]d } }") + fmt.Sprintf(" fragment f%d on Query { rateLimit }", n)
	},
	"conditional spreads": func(n int) string {
		return "query ($x: Boolean!, $y: Boolean!) { ...f0 }" +
			repeat(n, " fragment f%[1]d on Query { ...f%[2]d @include(if: $x) ...f%[2]d @skip(if: $y) a { ...f%[2]d @skip(if: $x) } }") +
			fmt.Sprintf(" fragment f%d on Query { rateLimit }", n)
	},
	"spreads of the next two": func(n int) string {
		var b strings.Builder
		b.WriteString("query ($x: Boolean!) { ...f0 }")
		for i := range n {
			fmt.Fprintf(&b, " fragment f%d on Query { ...f%d ...f%d @include(if: $x) }", i, i+2, i+1)
		}
		fmt.Fprintf(&b, " fragment f%d on Query { rateLimit } fragment f%d on Query { rateLimit }", n, n+1)
		return b.String()
	},
	"inline fragments, V13": func(n int) string { return "{" + repeat(n, " ... { ... on Query { rateLimit } }") + " }" },
	"nested fields":         func(n int) string { return repeat(n, "{ a ") + "{ rateLimit }" + strings.Repeat("}", n) },
	"one fragment at many sizes": func(n int) string {
		return "{" + repeat(n, " c%[1]d: conn(first: %[1]d) { ...C }") + " } fragment C on Connection { edges { node { id } } }"
	},
	"one long fragment at many sizes": func(n int) string {
		return "{" + repeat(n, " c%[1]d: conn(first: %[1]d) { ...C }") + " } fragment C on Connection {" + repeat(n, " e%[1]d: edges { node { id } }") + " }"
	},
	"abstract types": func(n int) string {
		return "{ node {" + repeat(n, " ... on Item { heavy } ... on User { h: heavy } id") + " } }"
	},
	"merged pairs": func(n int) string {
		// Each of n fragments merges with the next, so that all merged sets differ.
		return "{" + repeat(n, " f%[1]d: a { ...f%[1]d ...f%[2]d }") + " }" +
			repeat(n+1, " fragment f%[1]d on Query { a { x%[1]d: rateLimit } }")
	},
	"introspection": func(n int) string {
		return "{ __schema { types {" + repeat(n, " x%[1]d: fields { name args { name } }") + " } } }"
	},
	"nested introspection": func(n int) string {
		return "{ __schema { types { ...f0 } } }" +
			repeat(n, " fragment f%[1]d on __Type { fields { x: type { ...f%[2]d } y: type { ...f%[2]d } } }") + fmt.Sprintf(" fragment f%d on __Type { name }", n)
	},
	"all fragments at once": func(n int) string {
		// Collecting a fragment before all its spreads are known would collect those below it again.
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, " ...f%d ...f%d @include(if: $x)", n-i, i)
		}
		return "query ($x: Boolean!) {" + b.String() + " }" +
			repeat(n, " fragment f%[1]d on Query { ...f%[2]d x%[1]d: rateLimit }") + fmt.Sprintf(" fragment f%d on Query { rateLimit }", n)
	},
	"merged sets, nested": func(n int) string {
		return "{ ...f0 }" + repeat(n, " fragment f%[1]d on Query { a { ...f%[2]d x%[1]d: rateLimit } ...f%[2]d }") + fmt.Sprintf(" fragment f%d on Query { rateLimit }", n)
	},
}

// repeat formats n times, with the index and the next index.
func repeat(n int, format string) string {
	var b strings.Builder
	for i := range n {
		if strings.Contains(format, "%") {
			fmt.Fprintf(&b, format, i, i+1, "")
		} else {
			b.WriteString(format)
		}
	}
	// A format that does not use all arguments says so in the text.
	return strings.NewReplacer("%!(EXTRA string=)", "").Replace(b.String())
}

func raw(t testing.TB, text string) *ast.QueryDocument {
	t.Helper()
	doc, err := parser.ParseQuery(&ast.Source{Input: text})
	require.NoError(t, err)
	return doc
}

// Twice the document is at most a little more than twice the work, counted and not timed.
func TestSummingIsLinearInTheDocument(t *testing.T) {
	t.Parallel()
	estimator, _ := newEstimator(t, "bypass", cost.Config{})
	for name, document := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var last int
			for _, n := range []int{100, 200, 400, 800} {
				doc := raw(t, document(n))
				_, work, err := estimator.CompileSummed(doc, doc.Operations[0])
				require.NoError(t, err)
				require.Positive(t, work)
				if last > 0 {
					require.LessOrEqual(t, float64(work), 2.1*float64(last), "n = %d", n)
				}
				last = work
			}
		})
	}
}

// An operation is priced in time linear in fragments and possible types: that a type has a field which
// returns any of the types again makes no product of types.
func TestSummingIsLinearInThePossibleTypes(t *testing.T) {
	t.Parallel()
	text := "{ node { ...f0 } }" + repeat(17, " fragment f%[1]d on Node { p: node { ...f%[2]d } q: node { ...f%[2]d } l: nodes(first: 2) { list { ...f%[2]d } } }") +
		" fragment f17 on Node { name }"
	var last int
	for _, types := range []int{125, 250, 500} {
		schema := loadSchema(t, "type Query { node: Node } interface Node { name: String node: Node nodes(first: Int): Node list: [Node] }"+
			repeat(types, ` type T%[1]d implements Node { name: String node: Node nodes(first: Int): Node @listSize(slicingArguments: ["first"], sizedFields: ["list"]) list: [Node] }`), "")
		estimator, err := cost.New(schema, withoutAliases(cost.Config{}))
		require.NoError(t, err)
		doc := parse(t, schema, text, false)
		_, work, err := estimator.CompileSummed(doc, doc.Operations[0])
		require.NoError(t, err)
		require.LessOrEqual(t, work, 100*17*types)
		if last > 0 {
			require.LessOrEqual(t, float64(work), 2.1*float64(last), "%d types", types)
		}
		last = work
	}
}

// Types on which the same is selected at the same price are compiled once, so that neither hundreds of them
// nor hundreds of calls that return them are too large to merge.
func TestTypesWithEqualSelectionsTakeTheWorkOfOne(t *testing.T) {
	t.Parallel()
	const types = 300
	schema := loadSchema(t, "type Query { node(id: ID): Node } interface Node { id: ID name(first: Int = 3): String node: Node list(first: Int): [Node] }"+
		" interface Other { id: ID }"+
		repeat(types, ` type T%[1]d implements Node & Other { id: ID name(first: Int = 3): String node: Node own: Node`+
			` list(first: Int): [Node] @listSize(slicingArguments: ["first"]) }`), "")
	estimator, err := cost.New(schema, withoutAliases(cost.Config{RefuseOverWork: true}))
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		text string
		work int
		want float64
	}{
		"aliases": {"{" + repeat(200, " a%[1]d: node(id: 1) { id }") + " }", 1500, 200},
		"fragments that double": {
			"{ node { ...f0 } }" + repeat(17, " fragment f%[1]d on Node { p: node { ...f%[2]d } q: node { ...f%[2]d } }") + " fragment f17 on Node { name }",
			500, 1<<18 - 1,
		},
		"lists by a variable, nested": {"query ($v: Int) { node {" + strings.Repeat(" list(first: $v) {", 200) + " id" + strings.Repeat(" }", 202), 3000, 201},
		"a fragment on one type": {
			"{" + repeat(200, " a%[1]d: node { id ... on T7 { own { id } } }") + " }", 20_000, 400,
		},
		"a fragment on another interface": {"{" + repeat(200, " a%[1]d: node { ... on Other { id } }") + " }", 2000, 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := parse(t, schema, tt.text, false)
			work, err := estimator.Work(doc, doc.Operations[0])
			require.NoError(t, err)
			require.LessOrEqual(t, work, tt.work)
			plan, err := estimator.Compile(doc, doc.Operations[0])
			require.NoError(t, err)
			price, err := plan.Evaluate(map[string]any{"v": int64(1)})
			require.NoError(t, err)
			require.Equal(t, cost.Cost{Type: price.Type, Field: tt.want}, price)
		})
	}
}

// Merging is linear too, but for documents that are built to have more merged sets than selections.
func TestMergingIsLinearForAllButMergedSets(t *testing.T) {
	t.Parallel()
	estimator, _ := newEstimator(t, "bypass", cost.Config{WorkLimit: 1 << 30})
	for name, document := range hostile {
		switch name {
		case "merged sets, nested", "one long fragment at many sizes", "conditional spreads":
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var last int
			for _, n := range []int{100, 200, 400, 800} {
				doc := raw(t, document(n))
				work, err := estimator.Work(doc, doc.Operations[0])
				require.NoError(t, err)
				if last > 0 {
					require.LessOrEqual(t, float64(work), 2.1*float64(last), "n = %d", n)
				}
				last = work
			}
		})
	}
}

func TestWorkIsBoundedForEveryHostileDocument(t *testing.T) {
	t.Parallel()
	const limit = 2000
	estimator, _ := newEstimator(t, "bypass", cost.Config{WorkLimit: limit})
	strict, _ := newEstimator(t, "bypass", cost.Config{WorkLimit: limit, RefuseOverWork: true})
	for name, document := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := raw(t, document(900))
			work, err := estimator.Work(doc, doc.Operations[0])
			require.NoError(t, err)
			require.LessOrEqual(t, work, 21*limit+2000)
			plan, err := estimator.Compile(doc, doc.Operations[0])
			require.NoError(t, err)
			price, err := plan.Evaluate(map[string]any{"x": true, "y": false})
			require.NoError(t, err)
			requireSane(t, price)
			work, err = strict.Work(doc, doc.Operations[0])
			require.LessOrEqual(t, work, limit+2000)
			if err != nil {
				require.ErrorIs(t, err, cost.ErrWorkLimit)
			}
			require.Equal(t, err != nil, price.Approximate)
		})
	}
}

// What a document makes the compiler read counts as work, each part of it once, however often the
// document uses it: neither less, which would escape the limit, nor the product of parts and uses.
func TestEveryPartOfADocumentCountsAsWorkOnce(t *testing.T) {
	t.Parallel()
	estimator, err := cost.New(loadShared(t, "bypass"), withoutAliases(cost.Config{WorkLimit: 1 << 30}))
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		document func(n int) string
		// parts is how many parts there are for each n, most how much work one of them may take.
		parts, most int
	}{
		"definitions of variables": {
			func(n int) string {
				return "query(" + repeat(n, " $v%[1]d: Int") + ") {" + repeat(n, " x%[1]d: conn(first: $v%[1]d) { edges { node { id } } }") + " }"
			}, 6, 8,
		},
		"a default of a variable": {
			func(n int) string {
				return "query($p: Page = {first: [" + repeat(n, " {a: 1}") + "]}) {" + repeat(n, " x%[1]d: paged(page: $p) { id }") + " }"
			}, 6, 8,
		},
		"long equal arguments that meet often": {
			func(n int) string {
				return "{" + repeat(n, " x%[1]d: a { ...F rateLimit }") + " } fragment F on Query {" +
					strings.Repeat(" paged(page: {first: ["+repeat(n, " {a: 1}")+"]}) { id }", 2) + " }"
			}, 10, 12,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, n := range []int{100, 400} {
				doc := raw(t, tt.document(n))
				work, err := estimator.Work(doc, doc.Operations[0])
				require.NoError(t, err)
				require.GreaterOrEqual(t, work, tt.parts*n)
				require.LessOrEqual(t, work, tt.most*n)
			}
		})
	}
}

// What is read again wherever a fragment is spread counts again.
func TestWhatIsReadAgainCountsAgain(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, `
directive @log(level: Int = 3 @cost(weight: "4")) on FIELD
input I { all: [I!] n: Int @cost(weight: "1") }
type Query { a: Query f(i: I): Int list(i: I, first: Int): [Query] @listSize(slicingArguments: ["first"]) }`, "")
	estimator, err := cost.New(schema, withoutAliases(cost.Config{WorkLimit: 1 << 30}))
	require.NoError(t, err)
	const uses = 100
	for name, tt := range map[string]struct {
		field string
		// scanned says that parts are only looked through for a name, which is several times faster.
		scanned bool
	}{
		"directives":                  {"f" + strings.Repeat(" @skip(if: $x)", 200), false},
		"directives of a fragment":    {"..." + strings.Repeat(" @skip(if: $x)", 200) + " { f }", false},
		"directives of a spread":      {"...G" + strings.Repeat(" @skip(if: $x)", 200), false},
		"arguments of a directive":    {"f @log(" + repeat(200, " x%[1]d: 1") + ")", true},
		"a literal in a directive":    {"f @log(level: 3)" + strings.Repeat(" @log(level: 3)", 200), false},
		"variables inside an input":   {"f(i: {all: [" + strings.Repeat(" $i", 200) + "]})", false},
		"variables in a deeper input": {"list(first: 1, i: {all: {all: [" + strings.Repeat(" $i", 200) + "]}}) { f }", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			measure := func(field string) (merged, summed int) {
				doc := raw(t, "query($x: Boolean!, $i: I!) {"+repeat(uses, " x%[1]d: a { ...F f }")+" } fragment F on Query { "+field+" } fragment G on Query { f }")
				merged, err := estimator.Work(doc, doc.Operations[0])
				require.NoError(t, err)
				_, summed, err = estimator.CompileSummed(doc, doc.Operations[0])
				require.NoError(t, err)
				return merged, summed
			}
			work, summed := measure(tt.field)
			plainWork, plainSummed := measure("f")
			least := 200 * uses
			if tt.scanned {
				least /= 8
			}
			require.GreaterOrEqual(t, work-plainWork, least)
			// Summing reads a fragment once for each type.
			require.GreaterOrEqual(t, summed-plainSummed, least/uses)
		})
	}
}

// Looking for the fields of an input object in a literal is work as well, though each literal is read
// once.
func TestFieldsThatALiteralDoesNotHaveCountAsWork(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, "input I {"+repeat(40, ` n%[1]d: Int @cost(weight: "1")`)+" page: P } input P { first: Int } type Query { list(i: I): [Query] "+
		`@listSize(slicingArguments: ["i.page.first"], requireOneSlicingArgument: false) }`, "")
	estimator, err := cost.New(schema, withoutAliases(cost.Config{WorkLimit: 1 << 30}))
	require.NoError(t, err)
	doc := raw(t, "{ list(i: {"+repeat(800, " x%[1]d: 1")+"}) { __typename } }")
	work, err := estimator.Work(doc, doc.Operations[0])
	require.NoError(t, err)
	// An input object weighs 1, so that page is looked for as well, twice.
	require.GreaterOrEqual(t, work, 800+41*800/8+800/8)
}
