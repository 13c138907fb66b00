package ratelimit

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// awayMetrics are the instruments about what is decided without the store.
type awayMetrics struct {
	points  metric.Int64Counter
	settled metric.Int64Counter
}

func newAwayMetrics(meter metric.Meter) (*awayMetrics, error) {
	m := &awayMetrics{}
	var errs [2]error
	m.points, errs[0] = meter.Int64Counter("ratelimit.store.away.points",
		metric.WithUnit("{point}"), metric.WithDescription("Points of operations that were decided without the store, by outcome."))
	m.settled, errs[1] = meter.Int64Counter("ratelimit.local.settled",
		metric.WithUnit("1"), metric.WithDescription("What the store was charged for what was admitted without it, by limit."))
	return m, errors.Join(errs[:]...)
}

// decidedAway counts an operation that was decided without the store.
func (t *telemetry) decidedAway(ctx context.Context, store string, outcome Outcome, points int64) {
	t.withoutStore.points.Add(ctx, points, metric.WithAttributes(storeAttributes(store, attribute.String(attrOutcome, string(outcome)))...))
}

// settledLocally counts what the store was charged with afterwards.
func (t *telemetry) settledLocally(ctx context.Context, store string, limits []bucket.LimitState) {
	for i := range limits {
		if l := &limits[i]; l.Charged > 0 {
			t.withoutStore.settled.Add(ctx, l.Charged, metric.WithAttributes(storeAttributes(store,
				attribute.String(attrLimit, l.Limit.Name),
				attribute.String(attrLevel, l.Owner.Level.String()),
				attribute.String(attrUnit, boundedName(string(l.Limit.Unit))))...))
		}
	}
}
