package ratelimit

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// CandidateDecision is what the candidate of a tiers.CandidateSource would have decided. No client is told
// of it.
type CandidateDecision struct {
	// ID is that of the candidate.
	ID string
	// Outcome is Admitted, Limited, TooExpensive or Blocked.
	Outcome Outcome
	// Limits is the state of every limit of the candidate that was judged.
	Limits []bucket.LimitState
}

// Names of the attributes of candidates. The id comes from the operator.
const (
	attrCandidate        = "ratelimit.candidate"
	attrCandidateOutcome = "ratelimit.candidate.outcome"
)

// mayTry says whether the source is made for candidates, or has one. A mode switch is a source of candidates
// whatever it is around.
func mayTry(policy tiers.Source) bool {
	if _, rollout := policy.(*tiers.Rollout); rollout {
		return true
	}
	source, ok := policy.(tiers.CandidateSource)
	if !ok {
		return false
	}
	_, candidate := source.Candidate()
	return candidate != nil
}

// try asks in the take what the candidate would do, if there is one. What needs no store is decided here.
func (e *Extension) try(op *operation, take *bucket.Take, points int64) *CandidateDecision {
	source, ok := e.cfg.Policy.(tiers.CandidateSource)
	if !ok {
		return nil
	}
	id, snapshot := source.Candidate()
	if snapshot == nil || op.decision.Subject.Exempt || bucket.CheckCandidateID(id) != nil {
		return nil
	}
	rules := snapshot.Rules(op.decision.Subject, op.selected(snapshot))
	would := &CandidateDecision{ID: id, Outcome: Admitted}
	_, mode := rules.MaxCost.Exceeded(points)
	switch {
	case rules.Blocked:
		would.Outcome = Blocked
	case mode == bucket.Enforce:
		would.Outcome = TooExpensive
	default:
		if buckets := judged(&rules); buckets != nil {
			take.Candidate = &bucket.Candidate{ID: id, Buckets: buckets}
		}
	}
	return would
}

// tried returns what the candidate came to, nil if the answer of the store was none of a policy's.
func (would *CandidateDecision) tried(take *bucket.Take, result *bucket.Result) *CandidateDecision {
	fresh := result.Verdict == bucket.Admitted && !result.Repeat || result.Verdict == bucket.Limited || result.Verdict == bucket.Never
	if would == nil || !fresh {
		return nil
	}
	if take.Candidate == nil {
		return would
	}
	if result.Candidate == nil {
		return nil
	}
	would.Limits = result.Candidate.Limits
	switch result.Candidate.Verdict {
	case bucket.Limited:
		would.Outcome = Limited
	case bucket.Never:
		would.Outcome = TooExpensive
	default:
	}
	return would
}

// candidate counts what the candidate would have decided, and tells observers where it would have
// decided otherwise, once a minute for each tenant and pair of outcomes.
func (f *facts) candidate(ctx context.Context, d *Decision) {
	would := d.Candidate
	if would == nil {
		return
	}
	f.telemetry.candidates.Add(ctx, 1, metric.WithAttributes(
		attribute.String(attrCandidate, would.ID),
		attribute.String(attrOutcome, string(d.Outcome)),
		attribute.String(attrCandidateOutcome, string(would.Outcome)),
	))
	if (d.Refusal == nil) == (would.Outcome == Admitted) {
		return
	}
	now := time.Now()
	pair := would.ID + " " + string(d.Outcome) + " " + string(would.Outcome)
	if f.cfg.Observer != nil && f.first(fact{tenant: d.Subject.Tenant, limit: pair, kind: candidateFact}, now, time.Minute) {
		f.tell(ctx, event.CandidateDiffers{
			Tenant: eventName(d.Subject.Tenant), Tier: d.Tier, At: now,
			Candidate: would.ID, Live: string(d.Outcome), Would: string(would.Outcome),
		})
	}
}
