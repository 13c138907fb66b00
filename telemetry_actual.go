package ratelimit

import (
	"context"
	"errors"

	"github.com/vektah/gqlparser/v2/ast"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// actualCosts holds the instruments that compare what operations were estimated at with what they came
// to, so that a team sees which weights and assumed sizes are wrong. A subscription is estimated, and charged,
// with one event; here it is compared for as many events as it had.
type actualCosts struct {
	estimated  metric.Int64Histogram
	actual     metric.Int64Histogram
	difference metric.Int64Histogram
	// names are the operation names that metrics carry.
	names map[string]bool
}

func newActualCosts(meter metric.Meter, names []string) (actualCosts, error) {
	a := actualCosts{names: make(map[string]bool, len(names))}
	for _, name := range names {
		a.names[name] = true
	}
	var errs [3]error
	a.estimated, errs[0] = meter.Int64Histogram("ratelimit.operation.estimated_cost",
		metric.WithUnit("{point}"), metric.WithDescription("Estimated cost of operations that ran to their end; of a subscription for as many events as it had."), costBuckets)
	a.actual, errs[1] = meter.Int64Histogram("ratelimit.operation.actual_cost",
		metric.WithUnit("{point}"), metric.WithDescription("Actual cost of the same operations, priced from their responses."),
		costBuckets)
	a.difference, errs[2] = meter.Int64Histogram("ratelimit.operation.cost_difference",
		metric.WithUnit("{point}"), metric.WithDescription("Estimated less actual cost of the same operations. "+
			"It is negative where a response has more than the declared sizes allow."),
		metric.WithExplicitBucketBoundaries(-1000, -100, -10, -1, 0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000, 100_000))
	return a, errors.Join(errs[:]...)
}

// spentAttributes are what actual costs are measured by. Their number is bounded by the fields of the
// root types and the names on the list.
type spentAttributes struct {
	kind ast.Operation
	root string
	name string
}

// severalRoots stands for the root fields of an operation that selects more than one.
const severalRoots = "several"

// otherOperations stands for all operations that metrics do not name.
const otherOperations = "other"

// spent measures an operation that ran to its end.
func (t *telemetry) spent(ctx context.Context, a *actual, roots []string, estimated, points int64) {
	if !t.spending.actual.Enabled(ctx) && !t.spending.estimated.Enabled(ctx) && !t.spending.difference.Enabled(ctx) {
		return
	}
	key := spentAttributes{kind: a.kind, root: severalRoots}
	if len(roots) == 1 {
		key.root = roots[0]
	}
	if len(t.spending.names) > 0 {
		key.name = otherOperations
		if t.spending.names[a.name] {
			key.name = a.name
		}
	}
	option, ok := t.cached(key)
	if !ok {
		attributes := []attribute.KeyValue{
			attribute.String(attrOperation, string(key.kind)),
			attribute.String(attrRoot, key.root),
		}
		if key.name != "" {
			attributes = append(attributes, attribute.String(attrName, boundedName(key.name)))
		}
		option = metric.WithAttributeSet(attribute.NewSet(attributes...))
		t.attributes.Store(key, option)
	}
	t.spending.estimated.Record(ctx, estimated, option)
	t.spending.actual.Record(ctx, points, option)
	// Both are at most 2^53, so the difference is exact.
	t.spending.difference.Record(ctx, estimated-points, option)
}
