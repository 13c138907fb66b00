package ratelimit

import (
	"context"
	"math"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// BudgetFromContext answers the field rateLimit of ratelimit-field.graphqls, with which clients read their
// budget by a query. A resolver of that field has one line:
//
//	func (r *queryResolver) RateLimit(ctx context.Context) (*ratelimitclient.Budget, error) {
//		return ratelimit.BudgetFromContext(ctx), nil
//	}
//
// The limit in it is, of those that clients pace themselves by, the one in points with the smallest share
// left, as of the decision or of the last [Charge]; where none counts points, the one of any unit. Nothing
// is asked of the store.
//
// What is hidden from the client is nil. It returns nil, which is null, for subjects that are exempt, and if
// the extension has not decided about the operation.
func BudgetFromContext(ctx context.Context) *ratelimitclient.Budget {
	op := operationFrom(ctx)
	if op == nil {
		return nil
	}
	d := op.snapshot()
	if d.Subject.Exempt {
		return nil
	}
	return d.budget(time.Now())
}

func (d *Decision) budget(now time.Time) *ratelimitclient.Budget {
	budget := &ratelimitclient.Budget{}
	if !d.hide.Cost {
		budget.Cost = graphQLInt(d.Points)
	}
	mode := d.pacingMode()
	l := d.tightestOf(func(l *bucket.LimitState) bool { return paces(l, mode) && l.Limit.Unit == bucket.Points })
	if l == nil {
		l = d.tightestPacing()
	}
	if l == nil {
		return budget
	}
	unit := string(l.Limit.Unit)
	budget.Unit = &unit
	if !d.hide.Limits {
		budget.Limit = graphQLInt(l.Limit.Capacity)
	}
	if !d.hide.Remaining {
		after := ratelimitclient.Seconds(l.ResetAfter)
		at := time.Unix(ceilUnix(now.Add(l.ResetAfter)), 0).UTC().Format(time.RFC3339)
		budget.Remaining, budget.ResetAfter, budget.ResetAt = graphQLInt(l.Remaining), &after, &at
	}
	if !d.hide.Limits && !d.hide.Remaining {
		budget.Used = graphQLInt(l.Limit.Capacity - l.Remaining)
	}
	return budget
}

// graphQLInt returns a number as GraphQL has it, whose integers have 32 bits: what is larger becomes the
// largest.
func graphQLInt(n int64) *int {
	short := int(min(n, math.MaxInt32))
	return &short
}
