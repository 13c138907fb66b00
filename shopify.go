package ratelimit

import (
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// costExtensionKey is where clients of Shopify look for costs.
const costExtensionKey = "cost"

// shopifyCost is extensions.cost in the form that clients of Shopify's API read.
type shopifyCost struct {
	RequestedQueryCost int64 `json:"requestedQueryCost"`
	// ActualQueryCost is null for what was refused, validated or replayed. A document that is not valid
	// comes to its flat amount.
	ActualQueryCost *int64          `json:"actualQueryCost"`
	ThrottleStatus  shopifyThrottle `json:"throttleStatus"`
}

type shopifyThrottle struct {
	MaximumAvailable   int64 `json:"maximumAvailable"`
	CurrentlyAvailable int64 `json:"currentlyAvailable"`
	// RestoreRate is what comes back in a second, on average.
	RestoreRate float64 `json:"restoreRate"`
}

// shopify returns extensions.cost, about the limit in points that clients are told of. It returns nil
// where there is none, and where any of its numbers is hidden.
func (d *Decision) shopify() *shopifyCost {
	numbers := tiers.Hide{Cost: d.hide.Cost, Limits: d.hide.Limits, Remaining: d.hide.Remaining}
	l := d.toldIn(bucket.Points)
	if l == nil || numbers != (tiers.Hide{}) {
		return nil
	}
	c := &shopifyCost{
		RequestedQueryCost: d.Points,
		ThrottleStatus: shopifyThrottle{
			MaximumAvailable: l.Limit.Capacity, CurrentlyAvailable: l.Remaining, RestoreRate: restoreRate(l.Limit),
		},
	}
	switch {
	case d.Refusal != nil || d.Outcome == Validated || d.Outcome == Replayed:
	case d.actual != nil:
		c.ActualQueryCost = d.actual
	default:
		c.ActualQueryCost = &d.Points
	}
	return c
}

// toldIn is told among the limits that count a unit.
func (d *Decision) toldIn(unit bucket.Unit) *bucket.LimitState {
	if l := d.told(); l != nil && l.Limit.Unit == unit {
		return l
	}
	mode := d.pacingMode()
	return d.tightestOf(func(l *bucket.LimitState) bool { return paces(l, mode) && l.Limit.Unit == unit })
}

// restoreRate is what a limit gains in a second: the refill of a token bucket, and of a window its
// capacity over its length.
func restoreRate(l *bucket.Limit) float64 {
	if l.Window.Kind == bucket.TokenBucket {
		return float64(l.Refill) / l.Period.Seconds()
	}
	return float64(l.Capacity) / max(l.Length(), time.Millisecond).Seconds()
}
