package lint

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/doctor"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/pricing"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// ByOperations finds the fields that make up more than the share of what the operations cost together.
// Operations without a price are reported. They do not count, nor do those without a breakdown and
// infinite costs.
func ByOperations(schema *ast.Schema, results []pricing.Result, share float64) []Finding {
	l := &linter{schema: schema}
	total := 0.0
	byField := map[string]float64{}
	for _, r := range results {
		if r.Fatal {
			for _, problem := range r.Problems {
				l.findings = append(l.findings, Finding{
					Severity: doctor.Warning, Rule: UnpricedOperation, Coordinate: r.Operation.Name, Message: problem.Message,
					File: problem.File, Line: problem.Line, Column: problem.Column,
				})
			}
			continue
		}
		if r.Points >= cost.MaxPoints || r.Cost.Approximate {
			continue
		}
		total += r.Cost.Type + r.Cost.Field
		for _, entry := range r.Breakdown.Entries {
			if len(entry.Path) > 0 {
				byField[entry.Coordinate] += entry.Type + entry.Field
			}
		}
	}
	for _, coordinate := range slices.Sorted(maps.Keys(byField)) {
		if part := byField[coordinate]; part > share*total {
			l.add(doctor.Note, DominantField, coordinate, nil,
				"makes up %.0f%% of what the operations cost: see whether its weight and list size are right", 100*part/total)
		}
	}
	return l.findings
}

// shapeDepth is how many levels of objects below a root field the default query shape selects.
const shapeDepth = 3

// ByShapes finds the root fields that make up more than the share of what all root fields of their kind
// cost, each in its default query shape: called without arguments that are not required, with everything
// selected below that needs no argument, three levels deep. The estimator must be one of the schema; step is told of each field that is looked at.
func ByShapes(schema *ast.Schema, estimator *cost.Estimator, share float64, step func(index, total int, item string)) []Finding {
	l := &linter{schema: schema}
	for _, root := range []*ast.Definition{schema.Query, schema.Mutation, schema.Subscription} {
		if root != nil {
			l.dominantShapes(root, estimator, share, step)
		}
	}
	return l.findings
}

func (l *linter) dominantShapes(root *ast.Definition, estimator *cost.Estimator, share float64, step func(index, total int, item string)) {
	prices := map[string]float64{}
	dearest := map[string]string{}
	total := 0.0
	for i, field := range root.Fields {
		step(i, len(root.Fields), root.Name+"."+field.Name)
		if strings.HasPrefix(field.Name, "_") {
			continue
		}
		doc, err := parser.ParseQuery(&ast.Source{Input: l.shape(root, field)})
		if err != nil || len(doc.Operations) == 0 {
			continue
		}
		plan, err := estimator.Compile(doc, doc.Operations[0])
		if err != nil {
			continue
		}
		// A rule that the shape breaks does not change what it costs.
		price, _ := plan.Evaluate(nil)
		prices[field.Name] = min(price.Type+price.Field, cost.MaxPoints)
		total += prices[field.Name]
		dearest[field.Name] = dearestIn(estimator, doc)
	}
	if len(prices) < 2 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(prices)) {
		if price := prices[name]; price > share*total {
			l.add(doctor.Note, DominantField, root.Name+"."+name, nil,
				"costs %.0f points with all that is selected three levels deep, %.0f%% of all fields of %s%s", price, 100*price/total, root.Name, dearest[name])
		}
	}
}

// dearestIn says which field adds most to the price of a shape.
func dearestIn(estimator *cost.Estimator, doc *ast.QueryDocument) string {
	outline, err := estimator.Outline(doc, doc.Operations[0])
	if err != nil {
		return ""
	}
	breakdown := outline.Explain(nil, cost.ExplainOptions{})
	if len(breakdown.Entries) == 0 {
		return ""
	}
	dear := slices.MaxFunc(breakdown.Entries, func(x, y cost.Entry) int { return cmp.Compare(x.Type+x.Field, y.Type+y.Field) })
	return fmt.Sprintf("; %s alone adds %.0f", strings.Join(dear.Path, "."), dear.Type+dear.Field)
}

// shape returns the document of a default query shape. Each type has one fragment a level, so that it is
// as long as the schema is large at most, however many paths there are.
func (l *linter) shape(root *ast.Definition, field *ast.FieldDefinition) string {
	s := shaper{schema: l.schema, done: map[string]bool{}}
	kind := ast.Query
	switch root {
	case l.schema.Mutation:
		kind = ast.Mutation
	case l.schema.Subscription:
		kind = ast.Subscription
	}
	operation := string(kind) + " { " + field.Name + s.below(field.Type, shapeDepth) + " }\n"
	for len(s.pending) > 0 {
		next := s.pending[0]
		s.pending = s.pending[1:]
		next()
	}
	return operation + s.fragments.String()
}

type shaper struct {
	schema    *ast.Schema
	done      map[string]bool
	pending   []func()
	fragments strings.Builder
}

// below returns the selection set of a value, empty for a scalar or an enum.
func (s *shaper) below(typ *ast.Type, depth int) string {
	def := s.schema.Types[typ.Name()]
	if def == nil || !def.IsCompositeType() {
		return ""
	}
	var b strings.Builder
	b.WriteString(" { __typename")
	for _, object := range s.schema.GetPossibleTypes(def) {
		name := fmt.Sprintf("%s_%d", object.Name, depth)
		b.WriteString(" ..." + name)
		if !s.done[name] {
			s.done[name] = true
			s.pending = append(s.pending, func() { s.fragment(name, object, depth) })
		}
	}
	b.WriteString(" }")
	return b.String()
}

func (s *shaper) fragment(name string, object *ast.Definition, depth int) {
	fmt.Fprintf(&s.fragments, "fragment %s on %s { __typename", name, object.Name)
	for _, field := range object.Fields {
		required := slices.ContainsFunc(field.Arguments, func(arg *ast.ArgumentDefinition) bool {
			return arg.Type.NonNull && arg.DefaultValue == nil
		})
		def := s.schema.Types[field.Type.Name()]
		if required || strings.HasPrefix(field.Name, "__") || def == nil || def.IsCompositeType() && depth <= 1 {
			continue
		}
		s.fragments.WriteString(" " + field.Name + s.below(field.Type, depth-1))
	}
	s.fragments.WriteString(" }\n")
}
