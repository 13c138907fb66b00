package observe

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
)

// StoreCalled measures one call of a store. away is for how long the store was away that was not counted before.
func (r *Reporter) StoreCalled(ctx context.Context, store, call string, took, away time.Duration, err error) {
	m := r.metrics
	if !errors.Is(err, bucket.ErrInvalid) && m.away.Enabled(ctx) {
		// Zeros tell readers that the counter exists.
		m.away.Add(ctx, away.Seconds(), of(&m.sets, storeKey{store: store}))
	}
	if !m.latency.Enabled(ctx) && !m.failures.Enabled(ctx) {
		return
	}
	set := of(&m.sets, storeKey{store, call, storeResult(err)})
	m.latency.Record(ctx, took.Seconds(), set)
	if err != nil {
		m.failures.Add(ctx, 1, set)
	}
}

// storeKey is what calls of stores are measured by, or a store alone.
type storeKey struct{ store, call, result string }

func (k storeKey) attributes() []attribute.KeyValue {
	attributes := nameOf(k.store)
	if k.call != "" {
		attributes = append(attributes, attribute.String(attrCall, k.call), attribute.String(attrResult, k.result))
	}
	return attributes
}

// nameOf returns the name of a store, if it has one.
func nameOf(store string) []attribute.KeyValue {
	if store == "" {
		return nil
	}
	return []attribute.KeyValue{attribute.String(attrStoreName, store)}
}

// StoreSpared counts a take that was decided without asking the store.
func (r *Reporter) StoreSpared(ctx context.Context, store, by string) {
	if r.metrics.spared.Enabled(ctx) {
		r.metrics.spared.Add(ctx, 1, of(&r.metrics.sets, sparedKey{store, by}))
	}
}

type sparedKey struct{ store, by string }

func (k sparedKey) attributes() []attribute.KeyValue {
	return append(nameOf(k.store), attribute.String(attrSparedBy, k.by))
}

// StoreAway tells the observer that a store has gone.
func (r *Reporter) StoreAway(ctx context.Context, store string, at time.Time, err error) {
	r.tell(ctx, event.StoreAway{At: at, Store: store, Result: storeResult(err)})
}

// StoreBack tells the observer that a store is there again.
func (r *Reporter) StoreBack(ctx context.Context, back event.StoreBack) { r.tell(ctx, back) }

// DecidedAway counts an operation that was decided while its store was away.
func (r *Reporter) DecidedAway(ctx context.Context, d *decision.Decision) {
	if r.metrics.awayPoints.Enabled(ctx) {
		r.metrics.awayPoints.Add(ctx, d.Points, of(&r.metrics.sets, awayKey{d.Store, d.Outcome}))
	}
}

type awayKey struct {
	store   string
	outcome decision.Outcome
}

func (k awayKey) attributes() []attribute.KeyValue {
	return append(nameOf(k.store), attribute.String(attrOutcome, string(k.outcome)))
}

// LocallySettled counts what a store was charged for what was admitted without it, and logs what may be lost.
func (r *Reporter) LocallySettled(ctx context.Context, store, tenant string, limits []bucket.LimitState, lost bool) {
	for i := range limits {
		if l := &limits[i]; l.Charged > 0 {
			r.metrics.localSettled.Add(ctx, l.Charged,
				of(&r.metrics.sets, localKey{store, l.Limit.Name, l.Owner.Level, l.Limit.Unit}))
		}
	}
	if lost {
		log := r.cfg.Logger
		if store != "" {
			log = log.With(slog.String("store", store))
		}
		log.WarnContext(ctx, "ratelimit: what was admitted while the store was away could not be settled: "+
			"it may have been charged or not", slog.String("tenant", boundedName(tenant)))
	}
}

type localKey struct {
	store, limit string
	level        bucket.Level
	unit         bucket.Unit
}

func (k localKey) attributes() []attribute.KeyValue {
	return append(nameOf(k.store), attribute.String(attrLimit, k.limit), attribute.String(attrLevel, k.level.String()),
		attribute.String(attrUnit, boundedName(string(k.unit))))
}

// Settled counts a settlement, logs one that failed, and makes a span of the calls that it took.
func (r *Reporter) Settled(ctx context.Context, s *decision.Settlement) {
	if s.Result == decision.SettlementFailed {
		r.cfg.Logger.ErrorContext(ctx, "ratelimit: a charge could not be settled: the estimate stays charged",
			slog.String("reason", s.Reason))
	}
	changed := changedPoints(s.Limits)
	m := r.metrics
	if m.settlements.Enabled(ctx) || m.refunded.Enabled(ctx) || m.excess.Enabled(ctx) {
		set := of(&m.sets, settlementKey{s.Tier, s.Reason, string(s.Result)})
		m.settlements.Add(ctx, 1, set)
		// Zeros tell readers that the counters exist.
		m.refunded.Add(ctx, max(0, -changed), set)
		m.excess.Add(ctx, max(0, changed), set)
	}
	if s.Calls == 0 {
		return
	}
	_, span := r.tracer.Start(ctx, "ratelimit.settle", trace.WithTimestamp(s.Began))
	defer span.End()
	if span.IsRecording() {
		span.SetAttributes(
			attribute.String(attrReason, s.Reason), attribute.String(attrSettlementResult, string(s.Result)),
			attribute.Int64(attrRefunded, max(0, -changed)), attribute.Int64(attrExcess, max(0, changed)),
			attribute.Int(attrCalls, s.Calls),
		)
	}
}

type settlementKey struct{ tier, reason, result string }

func (k settlementKey) attributes() []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String(attrTier, k.tier), attribute.String(attrReason, k.reason), attribute.String(attrSettlementResult, k.result),
	}
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

func storeResult(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, bucket.ErrAmbiguous):
		return "ambiguous"
	case errors.Is(err, bucket.ErrInvalid):
		return "invalid"
	case errors.Is(err, redisclient.ErrBreakerOpen):
		return "breaker_open"
	default:
		return "unavailable"
	}
}
