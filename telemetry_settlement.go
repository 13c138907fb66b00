package ratelimit

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
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
	reason correctionReason
	result settlementResult
}

// settled counts one settlement, whatever became of it.
func (t *telemetry) settled(ctx context.Context, tier string, c correction, settled *bucket.Settled, result settlementResult) {
	m := &t.settlements
	if !m.settlements.Enabled(ctx) && !m.refunded.Enabled(ctx) && !m.excess.Enabled(ctx) {
		return
	}
	key := settlementAttributes{tier: tier, reason: c.reason, result: result}
	option, ok := t.cached(key)
	if !ok {
		option = metric.WithAttributeSet(attribute.NewSet(
			attribute.String(attrTier, tier),
			attribute.String(attrReason, string(c.reason)),
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

// newSettlers gives each store a settler of its own: what waits for one that is away holds up no other.
func (e *Extension) newSettlers() {
	for _, b := range e.backends {
		s := newSettler(e.cfg.Settlement.MaxWaiting)
		s.call = func(ctx context.Context, settlement bucket.Settlement) (bucket.Settled, error) {
			start := time.Now()
			settled, err := b.Settle(ctx, settlement)
			e.stored(ctx, b, "settle", time.Since(start), err)
			return settled, err
		}
		s.ended = e.settlementEnded
		b.settler = s
	}
}

// settlementEnded tells the operator what became of a settlement.
func (e *Extension) settlementEnded(item *settling, settled bucket.Settled, result settlementResult, calls int) {
	ctx := trace.ContextWithSpanContext(context.Background(), item.span)
	e.telemetry.settled(ctx, item.tier, item.correction, &settled, result)
	if result == settlementFailed {
		e.cfg.Logger.ErrorContext(ctx, "ratelimit: a charge could not be settled: the estimate stays charged",
			slog.String("reason", string(item.correction.reason)))
	}
	if calls == 0 {
		return
	}
	_, span := e.telemetry.tracer.Start(ctx, "ratelimit.settle", trace.WithTimestamp(item.began))
	defer span.End()
	if !span.IsRecording() {
		return
	}
	changed := changedPoints(settled.Limits)
	span.SetAttributes(
		attribute.String(attrReason, string(item.correction.reason)),
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
	result := settledNow
	switch {
	case err != nil:
		result = droppedAway
	case settled.Applied:
	case tries > 1:
		result = settledBefore
	default:
		result = settledLate
	}
	e.telemetry.settled(ctx, op.rules.Tier, c, settled, result)
}
