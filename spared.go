package ratelimit

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// attrSparedBy says what decided in the place of the store: cache, cap or busy.
const attrSparedBy = "ratelimit.store.spared_by"

// sparedBusy is the value for a call that a bulkhead stopped.
const sparedBusy = "busy"

// sparedBy returns what decided in the place of the store, empty if the store did or has failed.
func sparedBy(result *bucket.Result, err error) string {
	switch {
	case errors.Is(err, bucket.ErrBusy):
		return sparedBusy
	case err == nil && result.Origin != bucket.FromStore:
		return result.Origin.String()
	default:
		return ""
	}
}

// sparedAttributes are what is counted by that the store was not asked.
type sparedAttributes struct{ by, store string }

// spare counts a take that the store was not asked about.
func (t *telemetry) spare(ctx context.Context, b *backend, by string) {
	if !t.spared.Enabled(ctx) {
		return
	}
	key := sparedAttributes{by, b.name}
	option, ok := t.cached(key)
	if !ok {
		option = metric.WithAttributeSet(attribute.NewSet(b.attributes(attribute.String(attrSparedBy, by))...))
		t.attributes.Store(key, option)
	}
	t.spared.Add(ctx, 1, option)
}

// busy decides about an operation of a tenant that has too many calls under way. No fail mode applies: a
// tenant that could ask itself past its limits would. Nor do the modes of the policy: an override record that
// enforces or blocks is known to nobody but the store. Only where nothing is judged the operation runs, except
// for a keyed mutation that may be a repeat.
func (e *Extension) busy(op *operation) {
	unclaimed := op.claim != nil && op.mutation && !e.cfg.Idempotency.AdmitUnclaimed
	op.claim = nil
	if unclaimed || judged(&op.rules) != nil {
		op.decision.refuse(refusedBusy())
		return
	}
	op.decision.Outcome = Unjudged
}
