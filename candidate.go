package ratelimit

import (
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
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
func (e *Extension) try(op *operation, take *bucket.Take, points int64) *decision.Candidate {
	source, ok := e.cfg.Policy.(tiers.CandidateSource)
	if !ok {
		return nil
	}
	id, snapshot := source.Candidate()
	if snapshot == nil || op.decision.Subject.Exempt || bucket.CheckCandidateID(id) != nil {
		return nil
	}
	rules := snapshot.Rules(op.decision.Subject, op.selected(snapshot))
	would := &decision.Candidate{ID: id, Outcome: decision.Admitted}
	_, mode := rules.MaxCost.Exceeded(points)
	switch {
	case rules.Blocked:
		would.Outcome = decision.Blocked
	case mode == bucket.Enforce:
		would.Outcome = decision.TooExpensive
	default:
		if buckets := judged(&rules); buckets != nil {
			take.Candidate = &bucket.Candidate{ID: id, Buckets: buckets}
		}
	}
	return would
}

// tried returns what the candidate came to, nil if the answer of the store was none of a policy's.
func tried(would *decision.Candidate, take *bucket.Take, result *bucket.Result) *decision.Candidate {
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
		would.Outcome = decision.Limited
	case bucket.Never:
		would.Outcome = decision.TooExpensive
	default:
	}
	return would
}
