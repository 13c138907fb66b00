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
		m.away.Add(ctx, away.Seconds(), m.sets.of(&storeLabels, store))
	}
	if !m.latency.Enabled(ctx) && !m.failures.Enabled(ctx) {
		return
	}
	set := m.sets.of(&callLabels, store, call, storeResult(err))
	m.latency.Record(ctx, took.Seconds(), set)
	if err != nil {
		m.failures.Add(ctx, 1, set)
	}
}

// evictions are the stores that forget budgets.
func (r *Reporter) evictions(stores map[string]bucket.Store) []source {
	var all []source
	for name, store := range stores {
		if counter, ok := store.(bucket.EvictionCounter); ok {
			all = append(all, source{counter.Evicted, r.metrics.sets.of(&storeLabels, name)})
		}
	}
	return all
}

// StoreSpared counts a take that was decided without asking the store.
func (r *Reporter) StoreSpared(ctx context.Context, store, by string) {
	if r.metrics.spared.Enabled(ctx) {
		r.metrics.spared.Add(ctx, 1, r.metrics.sets.of(&sparedLabels, store, by))
	}
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
		r.metrics.awayPoints.Add(ctx, d.Points, r.metrics.sets.of(&awayLabels, d.Rules.Store, string(d.Outcome)))
	}
}

// LocallySettled counts what a store was charged for what was admitted without it, and logs what may be lost.
func (r *Reporter) LocallySettled(ctx context.Context, store, tenant string, limits []bucket.LimitState, lost bool) {
	for i := range limits {
		if l := &limits[i]; l.Charged > 0 {
			r.metrics.localSettled.Add(ctx, l.Charged,
				r.metrics.sets.of(&localLabels, store, l.Limit.Name, l.Owner.Level.String(), boundedName(string(l.Limit.Unit))))
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

// Settled counts a settlement, logs one that failed, and makes a span of the calls that it took.
func (r *Reporter) Settled(ctx context.Context, s *decision.Settlement) {
	if s.Result == decision.SettlementFailed {
		r.cfg.Logger.ErrorContext(ctx, "ratelimit: a charge could not be settled: the estimate stays charged",
			slog.String("reason", s.Reason))
	}
	changed := changedPoints(s.Limits)
	m := r.metrics
	if m.settlements.Enabled(ctx) || m.refunded.Enabled(ctx) || m.excess.Enabled(ctx) {
		set := m.sets.of(&settlementLabels, s.Tier, s.Reason, string(s.Result))
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
	case errors.Is(err, bucket.ErrBusy):
		return "busy"
	case errors.Is(err, redisclient.ErrBreakerOpen):
		return "breaker_open"
	default:
		return "unavailable"
	}
}
