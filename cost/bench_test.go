package cost_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/99designs/gqlgen/complexity"
	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// sharedVariables and ownVariables are the operations of testdata/operations over the schema bypass. Both
// have 190 fields, of which 40 are lists: two variables size them all, or each has a variable of its own,
// so that nothing can be put together.
const (
	sharedVariables = "shared_variables"
	ownVariables    = "own_variables"
)

// benchmarked is an operation of testdata/operations with the variables that a server would see.
type benchmarked struct {
	estimator *cost.Estimator
	schema    *ast.Schema
	text      string
	doc       *ast.QueryDocument
	op        *ast.OperationDefinition
	variables map[string]any
}

func loadOperation(t testing.TB, name string) benchmarked {
	t.Helper()
	var o benchmarked
	o.estimator, o.schema = newEstimator(t, "bypass", cost.Config{})
	text, err := os.ReadFile(filepath.Join("testdata", "operations", name+".graphql"))
	require.NoError(t, err)
	given, err := os.ReadFile(filepath.Join("testdata", "operations", name+".json"))
	require.NoError(t, err)
	o.text = string(text)
	o.doc = parse(t, o.schema, o.text, false)
	o.op = o.doc.Operations[0]
	decoder := json.NewDecoder(bytes.NewReader(given))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&o.variables))
	o.variables, err = validator.VariableValues(o.schema, o.op, o.variables)
	require.NoError(t, err)
	return o
}

// BenchmarkParse is what compiling is measured against: gqlparser parsing the same document.
func BenchmarkParse(b *testing.B) {
	for _, name := range []string{sharedVariables, ownVariables} {
		b.Run(name, func(b *testing.B) {
			source := &ast.Source{Input: loadOperation(b, name).text}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := parser.ParseQuery(source); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, name := range []string{sharedVariables, ownVariables} {
		b.Run(name, func(b *testing.B) {
			o := loadOperation(b, name)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := o.estimator.Compile(o.doc, o.op); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCompileSummed(b *testing.B) {
	o := loadOperation(b, sharedVariables)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := o.estimator.CompileSummed(o.doc, o.op); err != nil {
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
	for _, name := range []string{sharedVariables, ownVariables} {
		b.Run(name, func(b *testing.B) {
			o := loadOperation(b, name)
			plan, err := o.estimator.Plan(o.doc, o.op)
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := plan.Evaluate(o.variables); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPlanAndEvaluate is what a request with a cached plan costs.
func BenchmarkPlanAndEvaluate(b *testing.B) {
	o := loadOperation(b, sharedVariables)
	b.ReportAllocs()
	for b.Loop() {
		plan, err := o.estimator.Plan(o.doc, o.op)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := plan.Evaluate(o.variables); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkComplexity is gqlgen's own complexity walk over the same document.
func BenchmarkComplexity(b *testing.B) {
	o := loadOperation(b, sharedVariables)
	es := &graphql.ExecutableSchemaMock{
		ComplexityFunc: func(context.Context, string, string, int, map[string]any) (int, bool) { return 0, false },
		SchemaFunc:     func() *ast.Schema { return o.schema },
	}
	b.ReportAllocs()
	for b.Loop() {
		complexity.Calculate(b.Context(), es, o.op, o.variables)
	}
}

// BenchmarkPlan finds a cached plan: by the pointer of its operation, on all processors at once, and by
// the text of an operation that was parsed again.
func BenchmarkPlan(b *testing.B) {
	o := loadOperation(b, sharedVariables)
	b.Run("pointer", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := o.estimator.Plan(o.doc, o.op); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("text", func(b *testing.B) {
		one, other := parse(b, o.schema, o.text, false), parse(b, o.schema, o.text, false)
		b.ReportAllocs()
		for b.Loop() {
			// Two documents in turn are not taken for cached ones.
			one, other = other, one
			if _, err := o.estimator.PlanText(o.text, one, one.Operations[0]); err != nil {
				b.Fatal(err)
			}
		}
	})
}
