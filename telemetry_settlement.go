package ratelimit

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
)

// settlementMetrics count what becomes of charges after their operations.
type settlementMetrics struct {
	settlements metric.Int64Counter
	refunded    metric.Int64Counter
	excess      metric.Int64Counter
}

// Names of the attributes of settlements.
const (
	attrReason           = "ratelimit.settlement.reason"
	attrSettlementResult = "ratelimit.settlement.result"
	attrRefunded         = "ratelimit.refunded"
	attrExcess           = "ratelimit.excess"
	attrCalls            = "ratelimit.store.calls"
)

func newSettlementMetrics(meter metric.Meter) (settlementMetrics, error) {
	var m settlementMetrics
	var errs [3]error
	m.settlements, errs[0] = meter.Int64Counter("ratelimit.settlements",
		metric.WithUnit("{settlement}"), metric.WithDescription("Charges that were to be corrected, by reason and by what became of it."))
	m.refunded, errs[1] = meter.Int64Counter("ratelimit.refunded",
		metric.WithUnit("{point}"), metric.WithDescription("Points that were given back, at most what was still owed, by reason."))
	m.excess, errs[2] = meter.Int64Counter("ratelimit.excess",
		metric.WithUnit("{point}"), metric.WithDescription("Points that were charged on because operations came to more than their estimate."))
	return m, errors.Join(errs[:]...)
}

// settlementAttributes are what settlements are counted by.
type settlementAttributes struct {
	tier   string
	reason string
	result backend.Result
}

// settled counts one settlement, whatever became of it.
func (t *telemetry) settled(ctx context.Context, tier, reason string, settled *bucket.Settled, result backend.Result) {
	m := &t.settlements
	if !m.settlements.Enabled(ctx) && !m.refunded.Enabled(ctx) && !m.excess.Enabled(ctx) {
		return
	}
	key := settlementAttributes{tier: tier, reason: reason, result: result}
	option, ok := t.cached(key)
	if !ok {
		option = metric.WithAttributeSet(attribute.NewSet(
			attribute.String(attrTier, tier),
			attribute.String(attrReason, reason),
			attribute.String(attrSettlementResult, string(result))))
		t.attributes.Store(key, option)
	}
	m.settlements.Add(ctx, 1, option)
	// Zeros tell readers that the counters exist.
	changed := changedPoints(settled.Limits)
	m.refunded.Add(ctx, max(0, -changed), option)
	m.excess.Add(ctx, max(0, changed), option)
}

// changedPoints is by how many points the limit that was changed most has more spent than before.
func changedPoints(limits []bucket.LimitState) int64 {
	most := int64(0)
	for i := range limits {
		if c := limits[i].Charged; limits[i].Limit.Unit == bucket.Points && max(c, -c) > max(most, -most) {
			most = c
		}
	}
	return most
}

// traceSettlement makes the span of a settlement that the store was asked for.
func (t *telemetry) traceSettlement(ctx context.Context, settlement *backend.Settlement, settled *bucket.Settled, result backend.Result, calls int) {
	_, span := t.tracer.Start(ctx, "ratelimit.settle", trace.WithTimestamp(settlement.Began))
	defer span.End()
	if !span.IsRecording() {
		return
	}
	changed := changedPoints(settled.Limits)
	span.SetAttributes(
		attribute.String(attrReason, settlement.Reason),
		attribute.String(attrSettlementResult, string(result)),
		attribute.Int64(attrRefunded, max(0, -changed)),
		attribute.Int64(attrExcess, max(0, changed)),
		attribute.Int(attrCalls, calls),
	)
}

// claimSettled counts the correction that was to be made with the end of a claim, after so many tries.
func (e *Extension) claimSettled(ctx context.Context, op *operation, c correction, settled *bucket.Settled, tries int, err error) {
	if c.points == 0 {
		return
	}
	result := backend.SettledNow
	switch {
	case err != nil:
		result = backend.DroppedAway
	case settled.Applied:
	case tries > 1:
		result = backend.SettledBefore
	default:
		result = backend.SettledLate
	}
	e.telemetry.settled(ctx, op.rules.Tier, c.reason, settled, result)
}
