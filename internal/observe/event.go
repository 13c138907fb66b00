package observe

import (
	"slices"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// maxEventRootFields is how many root fields an event names.
const maxEventRootFields = 16

// decidedEvent returns a decision as observers are told it. It shares nothing that changes, and holds nothing large, as the
// document of which the name of the operation is a part: an event may wait for long.
func decidedEvent(d *decision.Decision) event.Decided {
	e := event.Decided{
		At: time.Now(), Outcome: string(d.Outcome),
		Tenant: eventName(d.Subject.Tenant), Team: eventName(d.Subject.Team), User: eventName(d.Subject.User),
		SubjectTier: eventName(d.Subject.Tier), Tier: d.Tier, Mode: d.Mode.String(), Origin: origin(d),
		Revision: d.Rules.Generation(), Hides: event.Hides(d.Hide),
		Kind: string(d.Kind), Operation: strings.Clone(boundedName(d.Name)), Keyed: d.Keyed,
		RootFields: slices.Clone(d.RootFields[:min(len(d.RootFields), maxEventRootFields)]),
		Cost:       d.Points, Charged: d.Charged, Store: d.Rules.Store, StoreDuration: d.StoreDuration,
	}
	if because := d.Because(); because != nil {
		e.RefusalID, e.Code, e.MaxCost = because.ID, because.Outcome.Code(), because.MaxCost
		if because.Dearest != nil {
			e.Dearest = because.Dearest.Coordinate
		}
		if because.Shape != nil {
			e.Rule = string(because.Shape.Rule)
		}
		if because.RetryAfter > 0 {
			e.RetryAfter, e.ClearsAt = because.RetryAfter, e.At.Add(because.RetryAfter)
		}
	}
	for _, amount := range d.Asked {
		e.Amounts = append(e.Amounts, event.Amount{Unit: boundedName(string(amount.Unit)), N: amount.N})
	}
	for i := range d.Limits {
		e.Limits = append(e.Limits, limitState(d, &d.Limits[i]))
	}
	if d.StoreErr != nil {
		e.StoreResult, e.FailMode = storeResult(d.StoreErr), d.FailMode.String()
	}
	return e
}

// origin returns where that comes from which stands in no limit.
func origin(d *decision.Decision) event.Origin {
	if because := d.Because(); because != nil && because.MaxCost > 0 {
		var selected tiers.Selection
		if d.Selected != nil {
			selected = *d.Selected
		}
		if p, found := d.Rules.MaxCostProvenance(d.Subject, selected, because.MaxCost, because.Mode); found {
			return originOf(p)
		}
	}
	o := originOf(d.Rules.Provenance(d.Subject))
	if d.Refusal != nil && d.Refusal.BlockedBy != nil {
		o.Overrides = []event.Override{overrideOf(d.Refusal.BlockedBy)}
	}
	return o
}

// limitState returns a limit as observers are told it.
func limitState(d *decision.Decision, l *bucket.LimitState) event.LimitState {
	state := event.LimitState{
		Level: l.Owner.Level.String(), Owner: eventName(l.Owner.Name), Part: eventName(l.Owner.Part),
		Limit: l.Limit.Name, Unit: string(l.Limit.Unit),
		Capacity: l.Limit.Capacity, Refill: l.Limit.Refill, Period: l.Limit.Length(),
		Mode: l.Limit.Mode.String(), FailMode: l.Limit.FailMode.String(), Soft: l.Limit.Soft,
		Asked: l.Asked, Remaining: l.Remaining, Overdraft: l.Overdraft, ResetAfter: l.ResetAfter,
		Exceeded: l.Exceeded, Refuses: d.Refusal != nil && decision.RefusesIn(bucket.Enforce, l),
		Never: l.Never, RetryAfter: l.RetryAfter, Approximate: l.Approximate, Held: l.Held,
	}
	if l.Exceeded {
		// A limit that the policy does not have any more has no places, but it may have records.
		p, _ := d.Rules.LimitProvenance(d.Subject, l.Owner, l.Limit.Name)
		o := originOf(p)
		for _, record := range l.Limit.Overrides() {
			o.Overrides = append(o.Overrides, overrideOf(&record))
		}
		state.Origin = &o
	}
	return state
}

func originOf(p tiers.Provenance) event.Origin {
	return event.Origin{Tier: p.Tier, Rule: p.Rule, Line: p.Line, Mode: p.Mode, FailMode: p.FailMode}
}

func overrideOf(o *bucket.Override) event.Override {
	return event.Override{
		Level: o.Owner.Level.String(), Owner: eventName(o.Owner.Name), Part: eventName(o.Owner.Part), Limit: o.Limit,
		Reason: o.Reason, Actor: o.Actor, SetAt: o.SetAt, Expires: o.Expires,
	}
}
