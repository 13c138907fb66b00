// Package pricing prices operations that it reads, one by one, and compares the prices of two schemas.
package pricing

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/source"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// Pricer prices operations of one schema. It is not safe for concurrent use: validation writes into the
// fragments that operations share.
type Pricer struct {
	schema    *ast.Schema
	estimator *cost.Estimator
	variables *source.Variables
}

// New returns the pricer of a schema. The error joins a [cli.FileError] for each mistake in the
// directives and in the configuration, with its position in the schema.
func New(schema *ast.Schema, cfg cost.Config, variables *source.Variables) (*Pricer, error) {
	estimator, err := cost.New(schema, cfg)
	if err != nil {
		return nil, source.Located(schema, err)
	}
	return &Pricer{schema: schema, estimator: estimator, variables: variables}, nil
}

// maxMerged is how many selections an operation may have, with its fragments each once, to be checked for
// fields that cannot be merged. The check compares fields in pairs: on 5000 fields of one name it takes
// seconds, on 15 000 a minute. A server with a limit of 2000 tokens accepts no operation as large.
const maxMerged = 3_000

// Result is the price of an operation, or why it has none.
type Result struct {
	Operation *source.Operation
	// Cost is what the operation costs, and Points the price. They mean nothing if the result is Fatal.
	Cost   cost.Cost
	Points int64
	// Missing are the required variables that have no value and decide more than the weights of inputs. A list that
	// they size is priced with the size that it has without them, so that the price is not a bound.
	Missing []string
	// Assumed are the required variables that have no value and only add weights of inputs. They are priced with what
	// their types require.
	Assumed []string
	// Chosen are the required Booleans that have no value. Of all their values those were taken at which the operation
	// costs most.
	Chosen []string
	// Breakdown says what the cost consists of. It has no entries if the operation is too large for one.
	Breakdown cost.Breakdown
	// Problems are why the operation has no price, or why a server refuses it although it has one.
	Problems []*cli.FileError
	// Invalid says that the operation does not fit the schema by the rules of GraphQL. Servers refuse it,
	// but not all servers keep to all rules, so that it still has a price if there can be one.
	Invalid bool
	// Unmerged says that the operation is too large to check whether its fields can be merged.
	Unmerged bool
	// Fatal says that there is no price.
	Fatal bool
}

// Price validates and prices an operation.
func (p *Pricer) Price(op *source.Operation) Result {
	result := Result{Operation: op}
	doc, err := op.Document()
	if err != nil {
		return result.fail(err)
	}
	checks := rules.NewDefaultRules()
	if selections(doc) > maxMerged {
		checks.RemoveRule(rules.OverlappingFieldsCanBeMergedRule.Name)
		result.Unmerged = true
	}
	for _, err := range validator.ValidateWithRules(p.schema, doc, checks) {
		result.Invalid = true
		result.Problems = append(result.Problems, source.FromGraphQL(err, op.File))
	}
	values, err := p.variables.Of(op)
	if err != nil {
		return result.fail(err)
	}
	values, result.Missing, err = source.Coerce(p.schema, op, values)
	if err != nil {
		return result.fail(err)
	}
	return p.evaluate(result, doc, values)
}

// evaluate prices a document with coerced variables.
func (p *Pricer) evaluate(result Result, doc *ast.QueryDocument, values map[string]any) Result {
	op := result.Operation
	plan, err := p.estimator.Plan(doc, op.Definition)
	if err != nil && result.Invalid {
		// Validation has said why.
		result.Fatal = true
		return result
	}
	if err != nil {
		return result.fail(op.Error(strings.TrimPrefix(err.Error(), "cost: ")))
	}
	outline, err := p.estimator.Outline(doc, op.Definition)
	if err != nil {
		return result.fail(op.Error(strings.TrimPrefix(err.Error(), "cost: ")))
	}
	complete := len(result.Missing) == 0
	result.Missing, result.Chosen, result.Assumed = used(outline, op, result.Missing)
	values, decided := dearest(plan, op, values, result.Chosen, result.Missing)
	if !decided {
		result.Missing = nil
	}
	result.Cost, err = plan.Evaluate(values)
	result.Points = result.Cost.Points()
	result.Breakdown.Cost = result.Cost
	var broken *cost.ShapeError
	switch {
	case errors.As(err, &broken):
		// A slicing argument whose variable has no value here has one in a request.
		if broken.Rule != cost.RuleSlicingArguments || complete {
			result.Problems = append(result.Problems, op.Error("a server refuses this: "+strings.TrimPrefix(err.Error(), "cost: ")))
		}
	case err != nil:
		return result.fail(op.Error(strings.TrimPrefix(err.Error(), "cost: ")))
	}
	result.Breakdown = outline.Explain(values, cost.ExplainOptions{})
	return result
}

// maxChosen is how many Booleans are tried in all their values, which are 2 to the power of it.
const maxChosen = 8

// used returns those of the variables without a value that decide more than what inputs weigh, but for Booleans that can
// be tried in both values, and those that can only add the weights of what is in them: of input objects, and of lists.
func used(outline *cost.Outline, op *source.Operation, missing []string) (deciding, choices, adding []string) {
	for _, use := range outline.VariableUses() {
		variable := op.Definition.VariableDefinitions.ForName(use.Name)
		switch {
		case !slices.Contains(missing, use.Name):
		case len(use.Sizes) > 0 || use.Includes || use.Represents || use.Computes:
			if variable.Type.NamedType == "Boolean" && len(choices) < maxChosen {
				choices = append(choices, use.Name)
			} else {
				deciding = append(deciding, use.Name)
			}
		case use.Weighs && (variable.Type.Elem != nil || !variable.Definition.IsLeafType()):
			adding = append(adding, use.Name)
		}
	}
	return deciding, choices, adding
}

// dearest returns the values with those of the choices at which the operation costs most. Decided says whether the missing
// variables matter at any choice.
func dearest(plan *cost.Plan, op *source.Operation, values map[string]any, choices, missing []string) (dear map[string]any, decided bool) {
	highest := int64(-1)
	for choice := range 1 << len(choices) {
		chosen := maps.Clone(values)
		for i, name := range choices {
			chosen[name] = choice>>i&1 == 1
		}
		// A broken rule does not change the cost.
		price, _ := plan.Evaluate(chosen)
		if points := price.Points(); points > highest {
			dear, highest = chosen, points
		}
		decided = decided || decide(plan, op, chosen, missing)
	}
	return dear, decided
}

// decide says whether the variables, which have no values, can change the price, or break a limit. Of
// values that are no input objects, lists or conditions only the extremes matter: where the operation costs
// the same with the smallest and the largest numbers as with none, none of them does.
func decide(plan *cost.Plan, op *source.Operation, values map[string]any, missing []string) bool {
	if len(missing) == 0 {
		return false
	}
	without, err := plan.Evaluate(values)
	var broken *cost.ShapeError
	if err != nil && (!errors.As(err, &broken) || broken.Rule != cost.RuleSlicingArguments) {
		return true
	}
	for _, number := range []int64{0, math.MaxInt32} {
		given := maps.Clone(values)
		for _, name := range missing {
			variable := op.Definition.VariableDefinitions.ForName(name)
			switch {
			case variable.Type.NamedType == "Int":
				given[name] = number
			case variable.Type.NamedType == "Boolean" || !variable.Definition.IsLeafType():
				return true
			case variable.Type.Elem != nil:
				return true
			default:
				// It only matters that there is one.
				given[name] = ""
			}
		}
		if with, err := plan.Evaluate(given); err != nil || with != without {
			return true
		}
	}
	return false
}

// selections counts the selections of a document.
func selections(doc *ast.QueryDocument) int {
	n := 0
	var pending []ast.SelectionSet
	for _, operation := range doc.Operations {
		pending = append(pending, operation.SelectionSet)
	}
	for _, fragment := range doc.Fragments {
		pending = append(pending, fragment.SelectionSet)
	}
	for len(pending) > 0 {
		set := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		n += len(set)
		for _, selection := range set {
			switch selected := selection.(type) {
			case *ast.Field:
				pending = append(pending, selected.SelectionSet)
			case *ast.InlineFragment:
				pending = append(pending, selected.SelectionSet)
			}
		}
	}
	return n
}

// fail adds the reason for which there is no price.
func (r Result) fail(err error) Result {
	r.Fatal = true
	var problem *cli.FileError
	if !errors.As(err, &problem) {
		problem = r.Operation.Error(err.Error())
	}
	r.Problems = append(r.Problems, problem)
	return r
}
