package ratelimit

import (
	"context"
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

// dryRunArgument asks for a dry run, as an argument of a field that only reads the budget.
const dryRunArgument = "dryRun"

// asksDryRun says whether the operation asks to be priced in the place of being run, by a field such as
// rateLimit(dryRun: true).
func (e *Extension) asksDryRun(opCtx *graphql.OperationContext, price *priced) bool {
	if opCtx.Operation.Operation != ast.Query {
		return false
	}
	// The usual operation is told from its plan; what has none is looked at all the same.
	if price.plan != nil && !slices.ContainsFunc(price.plan.RootFields(), e.estimator.IsFree) {
		return false
	}
	return slices.ContainsFunc(e.budgetFields(opCtx), func(selected ast.Selection) bool {
		field, _ := selected.(*ast.Field)
		return field != nil && argumentTrue(field, dryRunArgument, opCtx.Variables)
	})
}

// runDry decides about an operation of which only the fields that read the budget are to run. It pays as
// they do: no points, and one request.
func (e *Extension) runDry(ctx context.Context, opCtx *graphql.OperationContext, op *operation, price *priced, judged bool) {
	d := &op.decision
	// The document is shared with other requests, the context of the operation is not.
	budget := *opCtx.Operation
	budget.SelectionSet = e.budgetFields(opCtx)
	opCtx.Operation = &budget
	if judged {
		e.takeFor(ctx, op, 0)
	}
	if d.Refusal != nil {
		return
	}
	d.Outcome = Validated
	if would := op.tooExpensive(price); would != nil {
		// That it can never run goes before what is said of one request.
		d.WouldRefuse = nil
		d.note(would)
	}
}

// budgetFields returns the root fields of a query that only read the budget, and __typename, as they are
// selected with its variables.
func (e *Extension) budgetFields(opCtx *graphql.OperationContext) ast.SelectionSet {
	var fields ast.SelectionSet
	spread := map[string]bool{}
	var collect func(ast.SelectionSet)
	collect = func(set ast.SelectionSet) {
		for _, selection := range set {
			switch s := selection.(type) {
			case *ast.Field:
				if included(s.Directives, opCtx.Variables) && e.readsBudget(s) {
					fields = append(fields, s)
				}
			case *ast.InlineFragment:
				if included(s.Directives, opCtx.Variables) {
					collect(s.SelectionSet)
				}
			case *ast.FragmentSpread:
				// As in execution, a fragment that was spread once adds nothing the second time.
				if s.Definition != nil && !spread[s.Name] && included(s.Directives, opCtx.Variables) {
					spread[s.Name] = true
					collect(s.Definition.SelectionSet)
				}
			}
		}
	}
	collect(opCtx.Operation.SelectionSet)
	return fields
}

func (e *Extension) readsBudget(field *ast.Field) bool {
	if field.Name == "__typename" {
		return true
	}
	return field.ObjectDefinition != nil && e.estimator.IsFree(field.ObjectDefinition.Name+"."+field.Name)
}

// included evaluates @skip and @include.
func included(directives ast.DirectiveList, variables map[string]any) bool {
	if skip := directives.ForName("skip"); skip != nil && valueTrue(skip.Arguments.ForName("if"), variables) {
		return false
	}
	include := directives.ForName("include")
	return include == nil || valueTrue(include.Arguments.ForName("if"), variables)
}

// argumentTrue says whether an argument is true, by its default where it is not given.
func argumentTrue(field *ast.Field, name string, variables map[string]any) bool {
	given := field.Arguments.ForName(name)
	if given != nil && (given.Value == nil || given.Value.Kind != ast.Variable) {
		return valueTrue(given, variables)
	}
	if given != nil {
		if value, found := variables[given.Value.Raw]; found {
			return value == true
		}
	}
	if field.Definition == nil {
		return false
	}
	declared := field.Definition.Arguments.ForName(name)
	return declared != nil && declared.DefaultValue != nil && declared.DefaultValue.Raw == "true"
}

// valueTrue says whether an argument of type Boolean is true.
func valueTrue(argument *ast.Argument, variables map[string]any) bool {
	if argument == nil || argument.Value == nil {
		return false
	}
	value, err := argument.Value.Value(variables)
	return err == nil && value == true
}
