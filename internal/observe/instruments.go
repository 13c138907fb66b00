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

// source is what an observable counter reads, and the set of attributes by which it is counted.
type source struct {
	read func() uint64
	set  metric.MeasurementOption
}

// observable is read when metrics are collected, and so by nobody where there is no provider.
func (m *meter) observable(name, unit, description string, sources ...source) {
	_, err := m.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			for _, s := range sources {
				o.Observe(int64(min(s.read(), math.MaxInt64)), s.set)
			}
			return nil
		}))
	m.errs = append(m.errs, err)
}

// gauge is read when metrics are collected.
func (m *meter) gauge(name, unit, description string, sources ...source) {
	_, err := m.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			for _, s := range sources {
				o.Observe(int64(min(s.read(), math.MaxInt64)), s.set)
			}
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
	attrSparedBy = "ratelimit.store.spared_by"
	// attrUntoldBy says what an event about a limit had no room in.
	attrUntoldBy  = "ratelimit.events.untold_by"
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
	// attrLeaseBy says who decided a take of a tenant of which something is leased, and attrLeaseCause why there was an exchange.
	attrLeaseBy    = "ratelimit.lease.decided_by"
	attrLeaseCause = "ratelimit.lease.cause"
)

// The values of attrUntoldBy.
const (
	untoldByRate = "rate"
	untoldByRoom = "room"
)

// labels name the attributes of an instrument.
type labels [4]string

var (
	decisionLabels    = labels{attrOutcome, attrTier, attrMode, attrOperation}
	tenantLabels      = labels{attrTenant, attrOutcome}
	tenantPointLabels = labels{attrTenant}
	operationLabels   = labels{attrName, attrOutcome}
	chargeLabels      = labels{attrOutcome, attrTier, attrMode, attrUnit}
	candidateLabels   = labels{attrCandidate, attrOutcome, attrCandidateOutcome}
	spentLabels       = labels{attrOperation, attrRoot, attrName}
	tierLabels        = labels{attrTier}
	untoldLabels      = labels{attrUntoldBy}
	limitLabels       = labels{attrLimit, attrLevel, attrTier, attrMode}
	settlementLabels  = labels{attrTier, attrReason, attrSettlementResult}
	storeLabels       = labels{attrStoreName}
	leaseTakeLabels   = labels{attrStoreName, attrLeaseBy}
	leaseCauseLabels  = labels{attrStoreName, attrLeaseCause}
	leaseHeldLabels   = labels{attrStoreName, attrUnit}
	callLabels        = labels{attrStoreName, attrCall, attrResult}
	sparedLabels      = labels{attrStoreName, attrSparedBy}
	awayLabels        = labels{attrStoreName, attrOutcome}
	localLabels       = labels{attrStoreName, attrLimit, attrLevel, attrUnit}
)

// sets caches sets of attributes by what they are made of. Their number is bounded by what operators configure.
type sets struct{ byValues sync.Map }

// valued are labels with their values. The threshold is zero where there is none.
type valued struct {
	labels    *labels
	values    [len(labels{})]string
	threshold float64
}

// of returns the set of the labels with these values.
func (s *sets) of(l *labels, values ...string) metric.MeasurementOption {
	return s.above(0, l, values...)
}

// above is the same with a threshold.
func (s *sets) above(threshold float64, l *labels, values ...string) metric.MeasurementOption {
	key := valued{labels: l, threshold: threshold}
	copy(key.values[:], values)
	if value, found := s.byValues.Load(key); found {
		option, _ := value.(metric.MeasurementOption)
		return option
	}
	var attributes []attribute.KeyValue
	for i, value := range values {
		if l[i] == "" {
			break
		}
		// The default store has no name, and operations have one only where some are named.
		if value != "" || l[i] != attrStoreName && l[i] != attrName {
			attributes = append(attributes, attribute.String(l[i], value))
		}
	}
	if threshold > 0 {
		attributes = append(attributes, attribute.Float64(attrThreshold, threshold))
	}
	option := metric.WithAttributeSet(attribute.NewSet(attributes...))
	s.byValues.Store(key, option)
	return option
}
