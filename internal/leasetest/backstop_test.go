package leasetest_test

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// backstop is a kind: a budget of everything, and one of an operation, which all tenants share.
const backstop kind = "backstop"

// A tenant of a fleet with a backstop stands for what its operations are.
const (
	wallTenants = 8
	// ofOperation is from which tenant on operations are of the one with a budget, and those of a tenant in declining are refused by its own limits after
	// the backstop has admitted them.
	ofOperation = 4
)

var declining = []int64{3, 7}

// wall decides by a backstop.
type wall struct {
	*leasing
	with []bucket.Bucket
}

// parts of the budget of everything that the operation has.
const partOfOperation, partsOfAll = 2, 5

func newWall(d *leasing, capacity, refill int64) (*wall, error) {
	limits, err := bucket.Compile(bucket.Limit{
		Name: "operation", Capacity: capacity * partOfOperation / partsOfAll, Refill: refill * partOfOperation / partsOfAll, Period: time.Second,
	})
	operation := bucket.Bucket{Owner: bucket.Owner{Level: bucket.Operation, Name: "Mutation.checkout"}, Limits: limits}
	return &wall{d, append(slices.Clone(d.buckets), operation)}, err
}

func (w *wall) decide(tenant string, cost int64) verdict {
	n := int64(slices.Index(tenantNames[:], tenant))
	take := bucket.Take{
		Buckets: w.buckets, Amounts: bucket.Amounts{{Unit: bucket.Points, N: cost}}, Lease: bucket.LeaseAlways, LeaseEach: true, Declinable: true,
	}
	if n >= ofOperation {
		take.Buckets = w.with
	}
	ctx := context.Background()
	result, err := w.store.Take(ctx, take)
	switch {
	case err != nil:
		return failed
	case result.Verdict != bucket.Admitted:
		return refused
	case !slices.Contains(declining, n):
		w.store.Keep(result.Receipt)
		return admitted
	}
	// The tenant's own limits take a while.
	pass(time.Millisecond)
	if rest := w.store.Decline(result.Receipt); !rest.IsZero() {
		_, _ = w.store.Settle(ctx, bucket.Settlement{Receipt: rest, Actual: bucket.Amounts{{Unit: bucket.Points}}})
	}
	return refused
}

// wallVerdicts are what became of the budget of everything, and of that of the operation.
type wallVerdicts struct{ all, operation verdictsOf }

// judgeWall ends the fleet and judges what it did from a moment on.
func (fl *fleet) judgeWall(from int64) (v wallVerdicts) {
	fl.Helper()
	inexact := fl.inexact()
	var kept, checkout []operation
	for _, o := range fl.finish() {
		tenant := o.cost
		if slices.Contains(declining, tenant) {
			continue
		}
		o.cost = 1
		kept = append(kept, o)
		if tenant >= ofOperation {
			checkout = append(checkout, o)
			kept[len(kept)-1].cost = ofBoth
		}
	}
	of := fl.budget()
	part := budget{of.capacity * partOfOperation / partsOfAll, of.refill * partOfOperation / partsOfAll}
	v.all, v.operation = usedOfBoth(of, part, kept, from)
	for i := range kept {
		kept[i].cost = 1
	}
	v.all.over, v.operation.over = of.excess(kept), part.excess(checkout)
	v.all.inexact, v.operation.inexact = inexact, inexact
	for _, one := range []verdictsOf{v.all, v.operation} {
		fl.Logf("beyond the budget in the worst interval: %d (clocks explain %d); used %.2f %% of %d", one.over, one.inexact, one.used(), one.could)
		require.LessOrEqual(fl, one.over, one.inexact)
		require.Positive(fl, one.got)
	}
	return v
}

// ofBoth is noted as the cost of an operation that both budgets are asked for.
const ofBoth = 2

// usedOfBoth returns what was admitted from a moment on, and what one budget of everything and one of the operation would have admitted of the same operations.
func usedOfBoth(of, part budget, all []operation, from int64) (everything, checkout verdictsOf) {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(a, b operation) int { return cmp.Compare(a.before, b.before) })
	level, ofPart := of.capacity*second, part.capacity*second
	for i, o := range sorted {
		if i > 0 {
			passed := o.before - sorted[i-1].before
			level, ofPart = min(of.capacity*second, level+of.refill*passed), min(part.capacity*second, ofPart+part.refill*passed)
		}
		both, counts := o.cost == ofBoth, o.before >= from
		if level >= second && (!both || ofPart >= second) {
			level -= second
			if counts {
				everything.could++
			}
			if both {
				ofPart -= second
				if counts {
					checkout.could++
				}
			}
		}
		if o.is == admitted && counts {
			everything.got++
			if both {
				checkout.got++
			}
		}
	}
	return everything, checkout
}

// newWallFleet is a fleet that asks for one and a half times the budget of everything, and nearly twice that of the operation, besides what is declined.
func newWallFleet(t testing.TB) (fl *fleet, points float64) {
	t.Helper()
	s := setting{Kind: backstop, Seed: seed(t), Capacity: 4000, Refill: 4000, Costs: []int64{1}, Tenants: wallTenants}
	fl = newFleet(t, redistest.Start(t), s, false)
	points = 1.5 * float64(fl.Refill) * wallTenants / float64(wallTenants-len(declining))
	fl.load(points, onOne(0))
	pass(warm)
	return fl, points
}
