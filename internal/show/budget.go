package show

import (
	"math"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// Budget returns what the field rateLimit answers, nil if the client is told nothing.
func Budget(d *decision.Decision, now time.Time) *ratelimitclient.Budget {
	if d.Subject.Exempt || silent(d) {
		return nil
	}
	d = seen(d)
	budget := &ratelimitclient.Budget{}
	if !d.Hide.Cost {
		budget.Cost = graphQLInt(d.Points)
	}
	l := look(d).top
	if l == nil {
		return budget
	}
	unit := string(l.Limit.Unit)
	budget.Unit = &unit
	if !d.Hide.Limits {
		budget.Limit = graphQLInt(l.Limit.Capacity)
	}
	if !d.Hide.Remaining {
		after := ratelimitclient.Seconds(l.ResetAfter)
		at := time.Unix(ceilUnix(now.Add(l.ResetAfter)), 0).UTC().Format(time.RFC3339)
		budget.Remaining, budget.ResetAfter, budget.ResetAt = graphQLInt(l.Remaining), &after, &at
	}
	if !d.Hide.Limits && !d.Hide.Remaining {
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
