package ratelimit

import (
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// Names of the attributes of limits. All their values stand in the policy.
const (
	attrLimit     = "ratelimit.limit"
	attrLevel     = "ratelimit.level"
	attrThreshold = "ratelimit.threshold"
)

// limitMetrics are the instruments about limits.
type limitMetrics struct {
	used      metric.Float64Histogram
	exceeded  metric.Int64Counter
	crossings metric.Int64Counter
	repeated  metric.Int64Counter
	// attributes caches the attribute sets, whose number is bounded by the policy: limits × levels ×
	// tiers × modes, and × thresholds.
	attributes sync.Map
}

func newLimitMetrics(meter metric.Meter) (*limitMetrics, error) {
	m := &limitMetrics{}
	var errs [4]error
	m.used, errs[0] = meter.Float64Histogram("ratelimit.limit.used",
		metric.WithUnit("1"), metric.WithDescription("Share that is used of the limit with the smallest remaining share, after a decision."),
		metric.WithExplicitBucketBoundaries(.1, .25, .5, .7, .8, .9, .95, .99, 1))
	m.exceeded, errs[1] = meter.Int64Counter("ratelimit.limit.exceeded",
		metric.WithUnit("{decision}"), metric.WithDescription("Decisions for which a limit did not have the amount, by its mode."))
	m.crossings, errs[2] = meter.Int64Counter("ratelimit.limit.crossings",
		metric.WithUnit("{crossing}"), metric.WithDescription("Thresholds that the used share of a limit has risen over."))
	m.repeated, errs[3] = meter.Int64Counter("ratelimit.tenant.refused_repeatedly",
		metric.WithUnit("{tenant}"), metric.WithDescription("Tenants that kept being refused."))
	return m, errors.Join(errs[:]...)
}

func (m *limitMetrics) enabled(ctx context.Context) bool {
	return m.used.Enabled(ctx) || m.exceeded.Enabled(ctx) || m.crossings.Enabled(ctx) || m.repeated.Enabled(ctx)
}

// record notes the share that is used of the tightest limit.
func (m *limitMetrics) record(ctx context.Context, d *Decision) {
	if tightest := d.tightest(); tightest != nil && m.used.Enabled(ctx) {
		m.used.Record(ctx, usedShare(tightest), m.set(limitAttributes{
			limit: tightest.Limit.Name, level: tightest.Owner.Level, tier: d.Tier, mode: tightest.Limit.Mode,
		}))
	}
}

func (m *limitMetrics) exceed(ctx context.Context, tier string, l *bucket.LimitState) {
	m.exceeded.Add(ctx, 1, m.set(limitAttributes{
		limit: l.Limit.Name, level: l.Owner.Level, tier: tier, mode: l.Limit.Mode,
	}))
}

func (m *limitMetrics) cross(ctx context.Context, tier string, l *bucket.LimitState, threshold float64) {
	m.crossings.Add(ctx, 1, m.set(limitAttributes{
		limit: l.Limit.Name, level: l.Owner.Level, tier: tier, mode: l.Limit.Mode, threshold: threshold,
	}))
}

func (m *limitMetrics) refuseRepeatedly(ctx context.Context, tier string) {
	m.repeated.Add(ctx, 1, metric.WithAttributes(attribute.String(attrTier, tier)))
}

// limitAttributes are what is counted by. The threshold is zero where there is none.
type limitAttributes struct {
	limit     string
	level     bucket.Level
	tier      string
	mode      bucket.Mode
	threshold float64
}

func (m *limitMetrics) set(key limitAttributes) metric.MeasurementOption {
	value, _ := m.attributes.Load(key)
	if option, ok := value.(metric.MeasurementOption); ok {
		return option
	}
	attributes := []attribute.KeyValue{
		attribute.String(attrLimit, key.limit),
		attribute.String(attrLevel, key.level.String()),
		attribute.String(attrTier, key.tier),
		attribute.String(attrMode, key.mode.String()),
	}
	if key.threshold > 0 {
		attributes = append(attributes, attribute.Float64(attrThreshold, key.threshold))
	}
	option := metric.WithAttributeSet(attribute.NewSet(attributes...))
	m.attributes.Store(key, option)
	return option
}
