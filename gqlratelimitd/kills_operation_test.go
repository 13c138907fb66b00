package main

import (
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// exports is a unit of its own.
const exports bucket.Unit = "exports"

// killTenants are those of the fleet that is killed.
var killTenants = []string{"acme", "globex", "initech", "übermut"}

// operation is what an instance does once. All of it follows from its name, so that whoever has the name knows what it takes and what it is worth.
type operation struct {
	name, tenant, field string
	// asked is what it takes, and worth what it is worth after it has run.
	asked, worth bucket.Amounts
	// late is how long after the take it is settled, if it lives so long.
	late time.Duration
	// keyed says that it has an idempotency key, so that a lost reply is asked for again.
	keyed bool
}

func operationOf(name string) *operation {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	o := &operation{
		name: name, tenant: killTenants[r.IntN(len(killTenants))], field: []string{"Query.search", "Query.orders", "Mutation.pay"}[r.IntN(3)], keyed: r.IntN(2) == 0,
	}
	o.asked = bucket.Amounts{{Unit: bucket.Points, N: 1 + r.Int64N(50)}, {Unit: bucket.Requests, N: 1}, {Unit: exports, N: r.Int64N(3)}}
	o.worth = o.asked
	if r.IntN(4) > 0 {
		// Less or more than it has taken.
		o.worth = bucket.Amounts{{Unit: bucket.Points, N: r.Int64N(70)}, {Unit: bucket.Requests, N: 1}, {Unit: exports, N: r.Int64N(4)}}
	}
	switch r.IntN(6) {
	case 0, 1, 2:
	case 3, 4:
		o.late = time.Duration(r.Int64N(int64(time.Second)))
	default:
		o.late = time.Duration(r.Int64N(int64(20 * time.Second)))
	}
	return o
}

// killLimits are limits to which nothing comes back while the test runs, so that they keep what was charged.
func killLimits(capacity int64) (*bucket.Limits, error) {
	var limits []bucket.Limit
	for _, unit := range [...]bucket.Unit{bucket.Points, bucket.Requests, exports} {
		limits = append(limits, bucket.Limit{
			Name: string(unit), Unit: unit, Capacity: capacity, Period: 24 * time.Hour, Window: bucket.Window{Kind: bucket.FixedWindow},
		})
	}
	return bucket.Compile(limits...)
}

// Capacities of the budget of a tenant, and of that which each operation has for itself.
const (
	tenantCapacity    = 1_000_000_000
	operationCapacity = 1000
)

// budgets are those that operations are charged to.
type budgets struct{ tenant, operation *bucket.Limits }

func newBudgets() (b budgets, err error) {
	if b.tenant, err = killLimits(tenantCapacity); err == nil {
		b.operation, err = killLimits(operationCapacity)
	}
	return b, err
}

// of are the budgets of an operation: that of its tenant, and that which it has for itself.
func (b budgets) of(o *operation) []bucket.Bucket {
	return []bucket.Bucket{
		{Owner: bucket.Owner{Level: bucket.Tenant}, Limits: b.tenant},
		{Owner: bucket.Owner{Level: bucket.User, Name: o.name}, Limits: b.operation},
	}
}

// take is what is asked of the store in one try.
func (b budgets) take(o *operation) bucket.Take {
	take := bucket.Take{Tenant: o.tenant, Buckets: b.of(o), Amounts: o.asked, Usage: &bucket.Usage{Fields: []bucket.FieldUsage{{Name: o.field, Points: o.asked.Of(bucket.Points), Calls: 1}}}}
	if o.keyed {
		take.Claim = &idempotency.Claim{Subject: "ann", Key: idempotency.Key("key-of-" + o.name), Attempt: idempotency.NewAttemptID(), Lease: time.Second, TTL: time.Hour}
	}
	return take
}
