package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/99designs/gqlgen/complexity"
	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// errNoPrice is returned when a contender computes nothing, so that it is not measured doing so.
var errNoPrice = errors.New("the operation has no price")

// BenchmarkPricing prices operations with this library and with others. The metric x/parse is the time of each beside the
// time in which gqlparser parses the same document, taken in turns.
func BenchmarkPricing(b *testing.B) {
	s, err := newSubject()
	require.NoError(b, err)
	engine, err := newEngine(s.schema)
	require.NoError(b, err)
	for i := range operations {
		op := &operations[i]
		b.Run(op.name, func(b *testing.B) {
			source := &ast.Source{Input: op.text}
			parse := func() error {
				_, err := parser.ParseQuery(source)
				return err
			}
			for _, p := range pricers(b, s, engine, op) {
				b.Run(p.name, func(b *testing.B) { beside(b, parse, p.price) })
			}
		})
	}
}

// beside runs do, and other in turns with it, and reports how many times as long do takes.
func beside(b *testing.B, other, do func() error) {
	b.Helper()
	b.ReportAllocs()
	// Calls come in runs, because a look at the clock takes as long as a warm price.
	const calls = 16
	var ours, others time.Duration
	for b.Loop() {
		b.StopTimer()
		start := time.Now()
		for range calls {
			require.NoError(b, other())
		}
		others += time.Since(start)
		start = time.Now()
		for range calls {
			require.NoError(b, do())
		}
		ours += time.Since(start)
		b.StartTimer()
		require.NoError(b, do())
	}
	b.ReportMetric(float64(ours)/float64(others), "x/parse")
}

// pricer is one way to price an operation.
type pricer struct {
	name  string
	price func() error
}

// pricers are the contenders for one operation.
func pricers(b *testing.B, s *subject, engine *engine, op *operation) []pricer {
	b.Helper()
	doc, errs := gqlparser.LoadQueryWithRules(s.schema, op.text, nil)
	require.Empty(b, errs)
	definition := doc.Operations[0]
	plan, err := s.estimator.Compile(doc, definition)
	require.NoError(b, err)
	priced, err := engine.plan(op.text, op.json())
	require.NoError(b, err)
	if op.variables != nil {
		require.Positive(b, priced.estimate())
	}
	executable := schemaOnly{schema: s.schema}
	return []pricer{
		{"gqlparser_parse_and_validate", func() error {
			if _, errs := gqlparser.LoadQueryWithRules(s.schema, op.text, nil); len(errs) > 0 {
				return errs
			}
			return nil
		}},
		{"ratelimit_cold", func() error {
			_, err := s.estimator.Compile(doc, definition)
			return err
		}},
		{"ratelimit_warm", func() error { return evaluate(plan, op) }},
		{"ratelimit_find_the_plan", func() error {
			plan, err := s.estimator.Plan(doc, definition)
			if err != nil {
				return err
			}
			return evaluate(plan, op)
		}},
		{"gqlgen_complexity", func() error {
			if complexity.Calculate(b.Context(), executable, definition, op.variables) <= 0 && op.variables != nil {
				return errNoPrice
			}
			return nil
		}},
		{"graphql-go-tools_plan_with_costs", func() error {
			_, err := engine.plan(op.text, op.json())
			return err
		}},
		{"graphql-go-tools_estimate", func() error {
			priced.estimate()
			return nil
		}},
	}
}

// evaluate prices the operation. Introspection may be free of points, so only errors count.
func evaluate(plan *cost.Plan, op *operation) error {
	_, err := plan.Evaluate(op.variables)
	return err
}

// schemaOnly is an executable schema without resolvers and without complexity functions: each field
// counts 1, as in a server that configures none.
type schemaOnly struct{ schema *ast.Schema }

// Schema implements graphql.ExecutableSchema.
func (s schemaOnly) Schema() *ast.Schema { return s.schema }

// Complexity implements graphql.ExecutableSchema.
func (schemaOnly) Complexity(context.Context, string, string, int, map[string]any) (int, bool) {
	return 0, false
}

// Exec implements graphql.ExecutableSchema. Nothing is executed.
func (schemaOnly) Exec(context.Context) graphql.ResponseHandler { return nil }
