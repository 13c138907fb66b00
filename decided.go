package ratelimit

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// maxEventRootFields is how many root fields an event names.
const maxEventRootFields = 16

// decided tells observers of the decision about an operation, if it is one to be told.
func (f *facts) decided(ctx context.Context, op *operation, d *Decision, amounts bucket.Amounts) {
	if f.tellsDecision(d) {
		f.tell(ctx, op.decided(d, amounts))
	}
}

// decidedCharge tells observers of a charge inside an operation, which is a decision of its own.
func (f *facts) decidedCharge(ctx context.Context, op *operation, d *Decision, amount bucket.Amount) {
	if f.tellsDecision(d) {
		e := op.decided(d, bucket.Amounts{amount})
		e.Charge = true
		f.tell(ctx, e)
	}
}

// tellsDecision draws those that were not refused. Nobody who is not asked pays for it.
func (f *facts) tellsDecision(d *Decision) bool {
	if f.cfg.Observer == nil {
		return false
	}
	//nolint:gosec // a sample that could be foreseen does no harm
	return d.Refusal != nil || f.cfg.Admissions > 0 && rand.Float64() < f.cfg.Admissions
}

// decided returns a decision as observers are told it. It shares nothing that changes.
func (op *operation) decided(d *Decision, amounts bucket.Amounts) event.Decided {
	e := event.Decided{
		At: time.Now(), Outcome: string(d.Outcome),
		Tenant: eventName(d.Subject.Tenant), Team: eventName(d.Subject.Team), User: eventName(d.Subject.User),
		Tier: d.Tier, Mode: d.Mode.String(), Origin: op.origin(d),
		Kind: string(op.kind), Operation: boundedName(op.name), Keyed: op.keyed,
		RootFields: slices.Clone(d.RootFields[:min(len(d.RootFields), maxEventRootFields)]),
		Cost:       d.Points, Charged: d.Charged, StoreDuration: d.StoreDuration,
	}
	if because := d.because(); because != nil {
		e.RefusalID, e.Code, e.MaxCost = because.ID, because.Code, because.MaxCost
		if because.Query != nil {
			e.Rule = string(because.Query.Rule)
		}
		if because.RetryAfter > 0 {
			e.RetryAfter, e.ClearsAt = because.RetryAfter, e.At.Add(because.RetryAfter)
		}
	}
	for i := range amounts {
		e.Amounts = append(e.Amounts, event.Amount{Unit: boundedName(string(amounts[i].Unit)), N: amounts[i].N})
	}
	for i := range d.Limits {
		e.Limits = append(e.Limits, op.limitState(d, &d.Limits[i]))
	}
	if op.store != nil {
		e.Store = op.store.Name()
	}
	if d.StoreErr != nil {
		e.StoreResult, e.FailMode = storeResult(d.StoreErr), awayMode(&op.rules, d.StoreErr).String()
	}
	return e
}

// because is what refused, or else what would have, nil if nothing.
func (d *Decision) because() *RefusedError {
	if d.Refusal != nil {
		return d.Refusal
	}
	return d.WouldRefuse
}

// origin returns where that comes from which stands in no limit.
func (op *operation) origin(d *Decision) event.Origin {
	if because := d.because(); because != nil && because.MaxCost > 0 {
		selected := op.selected(op.extension.cfg.Policy.Snapshot())
		if p, found := op.rules.MaxCostProvenance(d.Subject, selected, because.MaxCost, because.Mode); found {
			return originOf(p)
		}
	}
	origin := originOf(op.rules.Provenance(d.Subject))
	if d.blockedBy != nil {
		origin.Overrides = []event.Override{overrideOf(d.blockedBy)}
	}
	return origin
}

// limitState returns a limit as observers are told it.
func (op *operation) limitState(d *Decision, l *bucket.LimitState) event.LimitState {
	state := event.LimitState{
		Level: l.Owner.Level.String(), Owner: eventName(l.Owner.Name), Limit: l.Limit.Name, Unit: string(l.Limit.Unit),
		Capacity: l.Limit.Capacity, Refill: l.Limit.Refill, Period: l.Limit.Length(),
		Mode: l.Limit.Mode.String(), FailMode: l.Limit.FailMode.String(), Soft: l.Limit.Soft,
		Remaining: l.Remaining, Overdraft: l.Overdraft, ResetAfter: l.ResetAfter,
		Exceeded: l.Exceeded, Refuses: d.Refusal != nil && enforced(l), Never: l.Never, RetryAfter: l.RetryAfter,
	}
	if l.Exceeded {
		// A limit that the policy does not have any more has no places, but it may have records.
		p, _ := op.rules.LimitProvenance(d.Subject, l.Owner, l.Limit.Name)
		origin := originOf(p)
		for _, o := range l.Limit.Overrides() {
			origin.Overrides = append(origin.Overrides, overrideOf(&o))
		}
		state.Origin = &origin
	}
	return state
}

func originOf(p tiers.Provenance) event.Origin {
	return event.Origin{Tier: p.Tier, Rule: p.Rule, Mode: p.Mode, FailMode: p.FailMode}
}

func overrideOf(o *bucket.Override) event.Override {
	return event.Override{
		Level: o.Owner.Level.String(), Owner: eventName(o.Owner.Name), Limit: o.Limit,
		Reason: o.Reason, Actor: o.Actor, SetAt: o.SetAt, Expires: o.Expires,
	}
}
