package cost_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/complexity"
	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// benchmarkQuery has 160 fields, of which a quarter are lists that variables size.
func benchmarkQuery() string {
	var b strings.Builder
	b.WriteString("query ($n: Int, $m: Int!, $x: Boolean!) {")
	for i := range 20 {
		fmt.Fprintf(&b, ` i%d: items(first: $n) { id heavy rel(first: $m) { id } } u%d: a { e1 { id heavy } }`, i, i)
		if i%4 == 0 {
			fmt.Fprintf(&b, " c%d: e2 @include(if: $x) { id }", i)
		}
	}
	b.WriteString(" }")
	return b.String()
}

var benchmarkVariables = map[string]any{"n": int64(10), "m": int64(5), "x": true}

// BenchmarkParse is what compiling is measured against: gqlparser parsing the same document.
func BenchmarkParse(b *testing.B) {
	source := &ast.Source{Input: benchmarkQuery()}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parser.ParseQuery(source); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	estimator, schema := newEstimator(b, "bypass", cost.Config{})
	doc := parse(b, schema, benchmarkQuery(), false)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := estimator.Compile(doc, doc.Operations[0]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompileSummed(b *testing.B) {
	estimator, schema := newEstimator(b, "bypass", cost.Config{})
	doc := parse(b, schema, benchmarkQuery(), false)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := estimator.CompileSummed(doc, doc.Operations[0]); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWorkLimit is the longest that a hostile document can keep the compiler at the default limit.
func BenchmarkWorkLimit(b *testing.B) {
	estimator, _ := newEstimator(b, "bypass", cost.Config{})
	doc := raw(b, hostile["merged sets, nested"](600))
	work, err := estimator.Work(doc, doc.Operations[0])
	require.NoError(b, err)
	for b.Loop() {
		if _, err := estimator.Compile(doc, doc.Operations[0]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(work), "selections")
}

// BenchmarkEvaluate is a warm evaluation.
func BenchmarkEvaluate(b *testing.B) {
	estimator, schema := newEstimator(b, "bypass", cost.Config{})
	doc := parse(b, schema, benchmarkQuery(), false)
	plan, err := estimator.Plan(doc, doc.Operations[0])
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := plan.Evaluate(benchmarkVariables); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPlanAndEvaluate is what a request with a cached plan costs.
func BenchmarkPlanAndEvaluate(b *testing.B) {
	estimator, schema := newEstimator(b, "bypass", cost.Config{})
	doc := parse(b, schema, benchmarkQuery(), false)
	b.ReportAllocs()
	for b.Loop() {
		plan, err := estimator.Plan(doc, doc.Operations[0])
		if err != nil {
			b.Fatal(err)
		}
		if _, err := plan.Evaluate(benchmarkVariables); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkComplexity is gqlgen's own complexity walk over the same document.
func BenchmarkComplexity(b *testing.B) {
	schema := loadShared(b, "bypass")
	doc := parse(b, schema, benchmarkQuery(), false)
	es := &graphql.ExecutableSchemaMock{
		ComplexityFunc: func(context.Context, string, string, int, map[string]any) (int, bool) { return 0, false },
		SchemaFunc:     func() *ast.Schema { return schema },
	}
	b.ReportAllocs()
	for b.Loop() {
		complexity.Calculate(b.Context(), es, doc.Operations[0], benchmarkVariables)
	}
}
