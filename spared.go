package ratelimit

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// attrSparedBy says what decided in the place of the store: cache, cap or busy.
const attrSparedBy = "ratelimit.store.spared_by"

// sparedAttributes are what is counted by that the store was not asked.
type sparedAttributes struct{ by, store string }

// spare counts a take that the store was not asked about.
func (t *telemetry) spare(ctx context.Context, store, by string) {
	if !t.spared.Enabled(ctx) {
		return
	}
	key := sparedAttributes{by, store}
	option, ok := t.cached(key)
	if !ok {
		option = metric.WithAttributeSet(attribute.NewSet(storeAttributes(store, attribute.String(attrSparedBy, by))...))
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
