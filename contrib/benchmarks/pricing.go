package main

import (
	"context"
	"errors"
	"math"

	"github.com/99designs/gqlgen/complexity"
	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// pricing compares what it takes to price an operation. The yardstick is parsing it.
func pricing(ctx context.Context, e effort) (*findings, error) {
	s, err := newSubject()
	if err != nil {
		return nil, err
	}
	engine, err := newEngine(s.schema)
	if err != nil {
		return nil, err
	}
	all := &findings{}
	for i := range operations {
		contenders, err := pricers(ctx, e, s, engine, &operations[i])
		if err != nil {
			return nil, err
		}
		outcomes, err := contest(ctx, e, contenders)
		if err != nil {
			return nil, err
		}
		t := &table{title: "Pricing: " + operations[i].name, header: []string{"", "processor time", "× parsing", "allocations"}}
		for k := range outcomes {
			o := &outcomes[k]
			t.add(o.name, duration(o.median(processor)), digits(o.ratio(&outcomes[0], processor)), digits(o.median(allocations)))
		}
		all.tables = append(all.tables, t)
		all.aims = append(all.aims, pricingAims(operations[i].name, outcomes)...)
	}
	return all, nil
}

// The rows of prices that aims are about.
const (
	rowParse    = 0
	rowCompile  = 2
	rowEvaluate = 3
)

// pricingAims are those of an operation. The first, of 160 fields, is the one that a warm price is about.
func pricingAims(name string, outcomes []outcome) []aim {
	cold := atMost("cold price ÷ parsing the same document: "+name, 1, outcomes[rowCompile].ratio(&outcomes[rowParse], processor), times)
	if name != operations[0].name {
		return []aim{cold}
	}
	warm := &outcomes[rowEvaluate]
	return []aim{
		atMost("warm price: "+name, 300, warm.median(processor), duration),
		atMost("the same: allocations", 0, math.Round(warm.median(allocations)), digits), cold,
	}
}

// errNoPrice is returned when a contender computes nothing, so that it is not measured doing so.
var errNoPrice = errors.New("the operation has no price")

// pricers returns the contenders for one operation.
func pricers(ctx context.Context, e effort, s *subject, engine *engine, op *operation) ([]contender, error) {
	doc, errs := gqlparser.LoadQueryWithRules(s.schema, op.text, nil)
	if len(errs) > 0 {
		return nil, errs
	}
	definition := doc.Operations[0]
	plan, err := s.estimator.Compile(doc, definition)
	if err != nil {
		return nil, err
	}
	priced, err := engine.plan(op.text, op.json())
	if err != nil {
		return nil, err
	}
	if priced.estimate() <= 0 && op.variables != nil {
		return nil, errNoPrice
	}
	source := &ast.Source{Input: op.text}
	executable := schemaOnly{schema: s.schema}
	return []contender{
		alone(e, "gqlparser: parse", func() error {
			_, err := parser.ParseQuery(source)
			return err
		}),
		alone(e, "gqlparser: parse and validate", func() error {
			if _, errs := gqlparser.LoadQueryWithRules(s.schema, op.text, nil); len(errs) > 0 {
				return errs
			}
			return nil
		}),
		alone(e, "**ratelimit: compile, cold**", func() error {
			_, err := s.estimator.Compile(doc, definition)
			return err
		}),
		alone(e, "**ratelimit: evaluate, warm**", func() error { return evaluate(plan, op) }),
		alone(e, "**ratelimit: find the plan and evaluate**", func() error {
			plan, err := s.estimator.Plan(doc, definition)
			if err != nil {
				return err
			}
			return evaluate(plan, op)
		}),
		alone(e, "gqlgen: complexity", func() error {
			if complexity.Calculate(ctx, executable, definition, op.variables) <= 0 && op.variables != nil {
				return errNoPrice
			}
			return nil
		}),
		alone(e, "graphql-go-tools: parse, normalise, plan with costs", func() error {
			_, err := engine.plan(op.text, op.json())
			return err
		}),
		alone(e, "graphql-go-tools: estimate from the plan", func() error {
			priced.estimate()
			return nil
		}),
	}, nil
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

// growth shows how the time to compile grows with the document.
func growth(ctx context.Context, e effort) (*findings, error) {
	s, err := newSubject()
	if err != nil {
		return nil, err
	}
	t := &table{
		title:  "Growth: compiling the worst documents",
		note:   "Processor time to compile, cold, and in brackets how many times as long as for the document before, which has a tenth of its size.",
		header: []string{"", "1×", "10×", "100×", "parsing 100×", "compiling ÷ parsing"},
	}
	steepest, which := 0.0, ""
	for _, w := range worst {
		row := []string{w.name}
		var last, parsing float64
		for _, n := range []int{1, 10, 100} {
			outcomes, err := compileAndParse(ctx, e, s, w.of(n))
			if err != nil {
				return nil, err
			}
			compiling := outcomes[0].median(processor)
			parsing = outcomes[1].median(processor)
			cell := duration(compiling)
			if last > 0 && compiling > 0 {
				if n == 100 && compiling/last > steepest {
					steepest, which = compiling/last, w.name
				}
				cell += " (" + digits(compiling/last) + "×)"
			}
			row, last = append(row, cell), compiling
		}
		t.add(append(row, duration(parsing), digits(last/max(parsing, 1)))...)
	}
	return &findings{tables: []*table{t}, aims: []aim{
		// A tenth more than linear is what caches of the processor do.
		atMost("cold price of a document of 10 000 tokens ÷ that of one of 1 000, the worst: "+which, 11, steepest, times),
	}}, nil
}

func compileAndParse(ctx context.Context, e effort, s *subject, text string) ([]outcome, error) {
	source := &ast.Source{Input: text}
	doc, err := parser.ParseQuery(source)
	if err != nil {
		return nil, err
	}
	return contest(ctx, e, []contender{
		alone(e, "compile", func() error {
			_, err := s.estimator.Compile(doc, doc.Operations[0])
			return err
		}),
		alone(e, "parse", func() error {
			_, err := parser.ParseQuery(source)
			return err
		}),
	})
}
