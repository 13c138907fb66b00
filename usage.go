package ratelimit

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// onlyTotals counts units and no root fields. Nobody changes it.
var onlyTotals bucket.Usage

// otherFields is the name under which the root fields of an operation are counted that has too many.
const otherFields = "*"

// usage is what is counted of the take of the operation, nil if nothing is.
func (op *operation) usage(ctx context.Context) *bucket.Usage {
	switch {
	case op.decision.Rules.Usage == tiers.CountNothing || op.decision.Subject.Exempt:
		return nil
	case op.decision.Rules.Usage == tiers.CountTotals || op.price.plan == nil || op.request == nil:
		return &onlyTotals
	}
	plan, variables := op.price.plan, op.request.Variables
	calls, parts := plan.Calls(variables), plan.Parts(variables)
	names := plan.RootFields()
	fields := make([]bucket.FieldUsage, 0, min(len(names), bucket.MaxUsageFields))
	for _, name := range names {
		f := bucket.FieldUsage{Name: name}
		for i := range calls.Len() {
			if calls.Field(i) == name {
				f.Calls++
			}
		}
		if f.Calls == 0 {
			// A directive has left it out.
			continue
		}
		if len(names) == 1 {
			f.Points = op.decision.Points
			return &bucket.Usage{Fields: []bucket.FieldUsage{f}}
		}
		f.Points = op.extension.price(ctx, parts.Cost(name))
		if last := len(fields) - 1; last == bucket.MaxUsageFields-1 {
			fields[last] = bucket.FieldUsage{Name: otherFields, Points: fields[last].Points + f.Points, Calls: fields[last].Calls + f.Calls}
			continue
		}
		fields = append(fields, f)
	}
	return &bucket.Usage{Fields: fields}
}

// usageOfCharge is what is counted of a charge in a context, nil if nothing is.
func (op *operation) usageOfCharge(ctx context.Context, unit bucket.Unit, n int64) *bucket.Usage {
	switch {
	case op.decision.Rules.Usage == tiers.CountNothing || op.decision.Subject.Exempt:
		return nil
	case op.decision.Rules.Usage == tiers.CountTotals || unit != bucket.Points:
		return &onlyTotals
	}
	root := rootOf(ctx)
	if root == nil {
		return &onlyTotals
	}
	return &bucket.Usage{Fields: []bucket.FieldUsage{{Name: root.Object + "." + root.Field.Name, Points: n}}}
}

// rootOf returns the root field that a resolver runs below, nil where nobody knows which that is.
func rootOf(ctx context.Context) *graphql.FieldContext {
	root := graphql.GetFieldContext(ctx)
	for root != nil && root.Parent != nil && root.Parent.Parent != nil {
		root = root.Parent
	}
	if root == nil || root.Field.Field == nil || root.Object == "" {
		return nil
	}
	return root
}
