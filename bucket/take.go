package bucket

import (
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// Take is one decision to be made: may the tenant have these amounts from all these buckets?
type Take struct {
	// Tenant is the top owner. Its buckets and claims are stored together.
	Tenant string
	// Buckets are charged together, all or nothing. No owner may stand in it twice.
	Buckets []Bucket
	// Owners are those that the operation belongs to whether or not they have buckets, that of the tenant
	// included: an override record that blocks one of them blocks the take. The owners of the buckets need
	// not stand in it.
	Owners []Owner
	// Amounts are what to take, one for each unit, none negative. A bucket may have amounts of its own.
	Amounts Amounts
	// Candidate is another policy to be judged in the same step. Nil means that there is none.
	Candidate *Candidate
	// Claim marks an idempotency key as in use. Nil means that there is no key.
	Claim *idempotency.Claim
	// Usage says what is counted in the same step. Nil counts nothing. A take that is counted goes to the store also where it has
	// no limits.
	Usage *Usage
	// Lease says whether parts of the bucket of the tenant may be leased. The zero value leases nothing. Stores pay no heed to it: [Leased] does.
	Lease LeaseMode
	// LeaseEach says that each of the buckets may be leased by itself, and not that of the tenant alone, as suits budgets that all tenants share. A bucket whose
	// owner has a part is not leased. Of a take with a claim, a candidate or usage it says nothing. Stores pay no heed to it: [Leased] does.
	LeaseEach bool
	// States is room for the answer: Result.Limits uses it if it is large enough, so that a caller
	// that keeps it saves an allocation. Nil is fine.
	States []LimitState

	// Declinable says that a [Leased] may be told that what it takes here is declined: [Leased.Decline], or else [Leased.Keep], ends that. Everything else pays no
	// heed to it.
	Declinable bool
}

// Verdict is the answer to a [Take].
type Verdict uint8

const (
	// Admitted says that the operation may run. It was charged, unless Result.Repeat is set.
	Admitted Verdict = iota + 1
	// Limited says that an enforced limit does not have the amount now and will have it after
	// Result.RetryAfter.
	Limited
	// Never says that the amount exceeds the capacity of an enforced limit: no waiting helps.
	Never
	// Replayed says that the key is done and Result.Answer is what the first attempt answered.
	Replayed
	// InFlight says that another attempt under the key is running.
	InFlight
	// KeyReused says that the key was used for something else.
	KeyReused
	// AnswerUnavailable says that the key is done, that its answer was not stored, and that the
	// claim permits no further run.
	AnswerUnavailable
	// Blocked says that an override record blocks an owner of the take. Nothing was judged, not even the
	// claim, and no limit is shown.
	Blocked
	// OutcomeUnknown says that an attempt under the key was abandoned, and that the claim refuses to run
	// after it.
	OutcomeUnknown
)

// String returns the verdict as telemetry writes it.
func (v Verdict) String() string {
	switch v {
	case Admitted:
		return "admitted"
	case Limited:
		return "limited"
	case Never:
		return "never"
	case Replayed:
		return "replayed"
	case InFlight:
		return "in_flight"
	case KeyReused:
		return "key_reused"
	case AnswerUnavailable:
		return "answer_unavailable"
	case Blocked:
		return "blocked"
	case OutcomeUnknown:
		return "outcome_unknown"
	default:
		return "unknown"
	}
}

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

// Result is what a [Take] led to.
type Result struct {
	Verdict Verdict
	// Repeat says that an admitted operation was charged by an earlier attempt under its key, which was
	// abandoned, and not by this one.
	Repeat bool
	// RetryAfter is when the whole take would be admitted if nothing else were taken: the longest
	// wait over the limits that refuse. It is set when Verdict is Limited, and when it is InFlight, to
	// when asking again makes sense.
	RetryAfter time.Duration
	// Limits holds the state of every limit after the decision, in the order of the buckets and of
	// their limits. Limits whose mode is Off are left out.
	Limits []LimitState
	// Answer is what the first attempt answered. It is set when Verdict is Replayed.
	Answer []byte
	// Receipt settles the charge. It is zero when nothing was charged.
	Receipt Receipt
	// Candidate is the verdict under the candidate policy. It is nil if there is none or if it was not
	// judged, because the claim or a block decided.
	Candidate *CandidateResult
	// HoldsFor is for how long the answer holds for the same owners under the same limits, but for what time brings back and
	// what is charged, granted, settled, reset or overridden since: until an override record expires. Zero is no such promise, as
	// where the budgets were not judged, where parts of them are leased, and from stores that do not tell.
	HoldsFor time.Duration

	// blockedBy is the record of a Blocked verdict, and unused are those that change nothing. They are shared and do not change.
	blockedBy *Override
	unused    []*Override
	// records are all override records of the tenant, nil for none, if the store has said the time.
	records *overrideSet
	// now is the time of the store in Unix milliseconds, or zero if it has not said.
	now int64
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

// BlockedBy returns the override record that blocks the take. It is nil unless Verdict is Blocked. The record
// is a copy.
func (r *Result) BlockedBy() *Override {
	if r.blockedBy == nil {
		return nil
	}
	by := r.blockedBy.clone()
	return &by
}

// UnusedOverrides returns the override records of single limits that change nothing in the take, because its policy has
// no limit of that name, or because their numbers make no limit with those of the policy. The records are copies.
func (r *Result) UnusedOverrides() []Override {
	var all []Override
	for _, o := range r.unused {
		all = append(all, o.clone())
	}
	return all
}

// LimitState is one limit of one owner as a store sees it.
type LimitState struct {
	Owner Owner
	// Limit is the limit as it was judged: that of the policy, or what an override record makes of it.
	Limit *Limit
	// Remaining is what could be taken now, at least 0.
	Remaining int64
	// Overdraft is by how much more than the capacity is spent: by a settlement or because the limit is Soft, both by
	// at most the capacity, or by any number under another policy of the same owner.
	Overdraft int64
	// ResetAfter is the exact time until the limit is full.
	ResetAfter time.Duration
	// WindowEnd is when the current window ends, in Unix milliseconds by the clock of the store. It is
	// zero for a token bucket, and where no window is open.
	WindowEnd int64
	// Asked is what a take asked of the limit. It is zero in the answers of other calls.
	Asked int64
	// Charged is what this call took from the limit: all that was asked for, nothing, or of a limit that is Soft
	// as much as it still counts. It is negative for what the call gave back.
	Charged int64
	// Exceeded says that the limit does not have the amount: it refused the operation, or would have
	// refused it if its mode were Enforce and it were not Soft.
	Exceeded bool
	// Never says that the amount exceeds the capacity of the limit.
	Never bool
	// Overridden says that an override record was in force for the limit.
	Overridden bool
	// Mixed says that something is spent in the terms of other limits, as after a change of the policy: it comes back as those say until
	// the next charge.
	Mixed bool
	// Approximate says that parts of the limit are leased, so that others may have used some of what remains: Remaining is what this
	// process holds, and what was left for all when the store said so last.
	Approximate bool
	// Held is what of Remaining this process holds, of a limit that is Approximate: the rest is what was left for all. Other processes can
	// hold as much as the limit has besides, which this one cannot take.
	Held int64
	// RetryAfter is when this limit would have the amount. It is set when Exceeded is set and Never
	// is not.
	RetryAfter time.Duration
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
	return t.Claim == nil && t.Usage == nil && countLimits(t.Buckets) == 0 && (t.Candidate == nil || countLimits(t.Candidate.Buckets) == 0)
}
