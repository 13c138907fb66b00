package bucket

import (
	"fmt"
	"hash/maphash"
	"slices"
	"time"
)

// Candidate is a policy that is judged beside the live one, to see what it would do. It has buckets of its
// own, which the live ones do not touch, and is judged all or nothing by what it has spent itself: it is
// charged if it admits, whether or not the live policy does, since otherwise a looser candidate would
// always look free. It decides nothing.
//
// Where the claim answers, or an override record blocks, neither policy is judged. A receipt settles the
// live charge alone. Override records change the limits of the candidate as they change the live ones.
type Candidate struct {
	// ID names the buckets of the candidate: 1 to 64 characters of A-Z a-z 0-9 _ . and -. Another candidate
	// takes another id, to start full.
	ID string
	// Buckets are those of the take under the candidate, in any order. No owner may stand in it twice.
	Buckets []Bucket
}

// CandidateResult is what a [Take] would have led to under a [Candidate].
type CandidateResult struct {
	// Verdict is Admitted, Limited or Never.
	Verdict Verdict
	// RetryAfter is as in [Result].
	RetryAfter time.Duration
	// Limits holds the state of every limit of the candidate after the decision, as in [Result].
	Limits []LimitState
}

// check returns what is wrong with the candidate, wrapped in ErrInvalid.
func (c *Candidate) check() error {
	if c == nil {
		return nil
	}
	if err := CheckCandidateID(c.ID); err != nil {
		return err
	}
	return checkBuckets(c.Buckets)
}

// CheckCandidateID returns what is wrong with the id of a candidate, wrapped in [ErrInvalid].
func CheckCandidateID(id string) error {
	if !literal(id) {
		return fmt.Errorf("%w: candidate %.80q: 1 to %d characters of A-Z a-z 0-9 _ . - fit", ErrInvalid, id, maxLiteralBytes)
	}
	return nil
}

// all returns the buckets of the take, those of the candidate last.
func (t *Take) all() []Bucket {
	if t.Candidate == nil || len(t.Candidate.Buckets) == 0 {
		return t.Buckets
	}
	return slices.Concat(t.Buckets, t.Candidate.Buckets)
}

// empty says that there is nothing to judge and nothing to remember.
func (t *Take) empty() bool {
	return t.Claim == nil && countLimits(t.Buckets) == 0 && (t.Candidate == nil || countLimits(t.Candidate.Buckets) == 0)
}

// result is what a candidate comes to, whose buckets are as overrides make them.
func (t *trial) result(buckets []Bucket, amounts Amounts, now int64) *CandidateResult {
	result := Result{Verdict: t.verdict}
	result.fill(&Take{Buckets: buckets, Amounts: amounts}, &t.spends, now, t.short, true)
	return &CandidateResult{Verdict: result.Verdict, RetryAfter: result.RetryAfter, Limits: result.Limits}
}

// tryCandidate judges the candidate, whose buckets are as overrides make them, and charges it if it admits.
func (s *shard) tryCandidate(take *Take, buckets []Bucket, tenant tenantKey, now int64) *CandidateResult {
	// No tenant has this name: one that starts with ~ has no other in it.
	name := "~" + take.Candidate.ID + "~" + tenant.name
	kept := tenantKey{name: name, hash: maphash.String(s.store.seed, name)}
	trial := Take{Buckets: buckets, Amounts: take.Amounts}
	var result Result
	if !s.takeFast(&trial, kept, now, &result) {
		result, _ = s.take(&trial, kept, now)
	}
	return &CandidateResult{Verdict: result.Verdict, RetryAfter: result.RetryAfter, Limits: result.Limits}
}
