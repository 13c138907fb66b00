package observe

import (
	"context"
	"math"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// meter makes instruments and collects what went wrong.
type meter struct {
	metric.Meter

	errs []error
}

func (m *meter) counter(name, unit, description string) metric.Int64Counter {
	c, err := m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
	m.errs = append(m.errs, err)
	return c
}

// seconds is a counter of time.
func (m *meter) seconds(name, description string) metric.Float64Counter {
	c, err := m.Float64Counter(name, metric.WithUnit("s"), metric.WithDescription(description))
	m.errs = append(m.errs, err)
	return c
}

// points is a histogram of points.
func (m *meter) points(name, description string, bounds ...float64) metric.Int64Histogram {
	h, err := m.Int64Histogram(name, metric.WithUnit("{point}"), metric.WithDescription(description),
		metric.WithExplicitBucketBoundaries(bounds...))
	m.errs = append(m.errs, err)
	return h
}

func (m *meter) histogram(name, unit, description string, bounds ...float64) metric.Float64Histogram {
	h, err := m.Float64Histogram(name, metric.WithUnit(unit), metric.WithDescription(description),
		metric.WithExplicitBucketBoundaries(bounds...))
	m.errs = append(m.errs, err)
	return h
}

// observable is read when metrics are collected, and so by nobody where there is no provider.
func (m *meter) observable(name, unit, description string, read func() uint64) {
	_, err := m.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(min(read(), math.MaxInt64)))
			return nil
		}))
	m.errs = append(m.errs, err)
}

// Names of the attributes. Only tenant has values that the operator's customers choose, so metrics
// carry it by opt-in only.
const (
	attrOutcome   = "ratelimit.outcome"
	attrTier      = "ratelimit.tier"
	attrMode      = "ratelimit.mode"
	attrTenant    = "ratelimit.tenant"
	attrCost      = "ratelimit.cost"
	attrCharged   = "ratelimit.charged"
	attrRemaining = "ratelimit.remaining"
	attrStore     = "ratelimit.store.duration"
	attrCall      = "ratelimit.store.call"
	attrResult    = "ratelimit.store.result"
	// attrStoreName is that of a store of Config.Stores; the default one has none.
	attrStoreName = "ratelimit.store.name"
	// attrSparedBy says what decided instead of the store: cache, cap or busy.
	attrSparedBy  = "ratelimit.store.spared_by"
	attrUnit      = "ratelimit.unit"
	attrLimit     = "ratelimit.limit"
	attrLevel     = "ratelimit.level"
	attrThreshold = "ratelimit.threshold"
	attrOperation = "graphql.operation.type"
	attrName      = "graphql.operation.name"
	attrRoot      = "ratelimit.root_field"
	// attrRefusal is the id that the client of a refusal was given. Only spans have it.
	attrRefusal = "ratelimit.refusal.id"
	// attrWouldRefuse is the code that an operation which ran would have been refused with.
	attrWouldRefuse = "ratelimit.would_refuse"
	// attrCandidate is the id of a candidate, which comes from the operator.
	attrCandidate        = "ratelimit.candidate"
	attrCandidateOutcome = "ratelimit.candidate.outcome"

	attrReason           = "ratelimit.settlement.reason"
	attrSettlementResult = "ratelimit.settlement.result"
	attrRefunded         = "ratelimit.refunded"
	attrExcess           = "ratelimit.excess"
	attrCalls            = "ratelimit.store.calls"
)

// sets caches sets of attributes by what they are made of. Their number is bounded by what operators configure.
type sets struct{ byKey sync.Map }

// key is what a set of attributes is made of. Each instrument has a type of its own.
type key interface {
	comparable
	attributes() []attribute.KeyValue
}

// of returns the set of the key.
func of[K key](s *sets, k K) metric.MeasurementOption {
	if value, found := s.byKey.Load(k); found {
		option, _ := value.(metric.MeasurementOption)
		return option
	}
	option := metric.WithAttributeSet(attribute.NewSet(k.attributes()...))
	s.byKey.Store(k, option)
	return option
}
