package observe

import (
	"context"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
)

// count tells the observer of a decision, if it counts.
func (r *Reporter) count(ctx context.Context, d *decision.Decision) {
	if r.counter == nil {
		return
	}
	v := verdictOf(d)
	guard.Run(ctx, r.cfg.Logger, "Config.Observe.Observer", func() { r.counter.Count(v) })
}

// Counts reports whether the observer counts.
func (r *Reporter) Counts() bool { return r.counter != nil }

// verdictOf returns what a decision came to. It shares the names of the decision, because most are looked at and not kept.
func verdictOf(d *decision.Decision) event.Verdict {
	v := event.Verdict{
		At: time.Now(), Tenant: d.Subject.Tenant, Team: d.Subject.Team, User: d.Subject.User,
		SubjectTier: d.Subject.Tier, Tier: d.Tier, Outcome: string(d.Outcome),
		Refused: d.Refusal != nil, WouldRefuse: d.Refusal == nil && d.WouldRefuse != nil,
		HideOwners: d.Hide.Owners, RootFields: d.RootFields, Cost: d.Points, Charged: d.Charged, Detail: detailOf(d),
	}
	if because := d.Because(); because != nil {
		v.Because = string(because.Outcome)
		if because.Limit != nil {
			v.Level, v.Limit = because.Owner.Level.String(), because.Limit.Name
		}
	}
	if d.Candidate != nil {
		v.Candidate, v.CandidateRefuses = d.Candidate.ID, d.Candidate.Outcome != decision.Admitted
	}
	if d.Selected != nil {
		v.Document = d.Selected.Document
	}
	next := 0
	for i := range d.Asked {
		if amount := &d.Asked[i]; amount.Unit != bucket.Points && next < len(v.Units) {
			v.Units[next] = event.Amount{Unit: string(amount.Unit), N: amount.N}
			next++
		}
	}
	return v
}
