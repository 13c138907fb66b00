package bucket

import (
	"context"
	"errors"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// Errors of a store. Every error of a [Store] method matches one of them.
var (
	// ErrUnavailable says that the store did not act: nothing was charged.
	ErrUnavailable = errors.New("bucket: store unavailable")
	// ErrAmbiguous says that no answer came back: the store may or may not have acted.
	ErrAmbiguous = errors.New("bucket: no answer from the store, the charge may have been applied")
	// ErrInvalid says that the call itself was wrong: a negative amount, two buckets of one owner.
	// Nothing was charged.
	ErrInvalid = errors.New("bucket: invalid call")
)

// Store keeps the buckets of all tenants and the claims of their idempotency keys.
//
// What was spent keeps the terms in which it was charged, whatever limits of the same name and unit an owner is under
// later, until another policy with room for it charges the limit: it comes back no faster than the policy says that
// charged it, or the one that charges it now. A call that does not charge a limit leaves it as it is.
// docs/reference/policy-changes.md has the rules.
//
// A refusal is a value; an error means that the store broke. Implementations are safe for
// concurrent use and give the same answers for the same sequence of calls: buckettest runs one
// contract against all of them. Time is the store's own: a caller's clock decides nothing.
type Store interface {
	// Take charges all buckets or none, and writes the claim, if there is one, in the same step. It
	// returns the verdict with the state of every limit.
	Take(ctx context.Context, take Take) (Result, error)

	// Settle corrects a charge and ends a claim, once: a repeated call changes nothing and returns
	// Applied false.
	Settle(ctx context.Context, settlement Settlement) (Settled, error)

	// Renew extends the lease of a claim. It returns false if the attempt holds the claim no longer.
	Renew(ctx context.Context, tenant string, claim *idempotency.Claim) (bool, error)

	// Peek returns the state of the limits and changes nothing.
	Peek(ctx context.Context, tenant string, buckets []Bucket) ([]LimitState, error)

	// Grant gives budget back, as support does for a customer: each limit gains the amount of its
	// unit, until nothing is spent, under whichever policy that was.
	Grant(ctx context.Context, tenant string, buckets []Bucket, amounts Amounts) ([]LimitState, error)

	// Reset makes the buckets full again by forgetting them.
	Reset(ctx context.Context, tenant string, buckets []Bucket) error
}

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
	// Amounts are what to take, one for each unit, none negative.
	Amounts Amounts
	// Candidate is another policy to be judged in the same step. Nil means that there is none.
	Candidate *Candidate
	// Claim marks an idempotency key as in use. Nil means that there is no key.
	Claim *idempotency.Claim
	// States is room for the answer: Result.Limits uses it if it is large enough, so that a caller
	// that keeps it saves an allocation. Nil is fine.
	States []LimitState

	// Observe asks for Result.Judgment where the take is refused, and ObserveAdmitted where it is admitted as
	// well. They are for what remembers verdicts in front of a store.
	Observe, ObserveAdmitted bool
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

// Result is what a [Take] led to.
type Result struct {
	Verdict Verdict
	// Repeat says that an admitted operation was charged by an earlier attempt under its key, and
	// not by this one: the claim was abandoned, or the answer of a query was not stored.
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
	// Judgment is what the verdict was reached by, if [Take.Observe] asked for it. It is nil where the budgets
	// were not judged, and from stores that do not tell.
	Judgment *Judgment

	// blockedBy is the record of a Blocked verdict. It is shared and does not change.
	blockedBy *Override
	// now is the time of the store in Unix milliseconds, or zero if it has not said.
	now int64
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

// LimitState is one limit of one owner as a store sees it.
type LimitState struct {
	Owner Owner
	// Limit is the limit as it was judged: that of the policy, or what an override record makes of it.
	Limit *Limit
	// Overridden says that an override record was in force for the limit.
	Overridden bool
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
	// Charged is what this call took from the limit: all that was asked for, nothing, or of a limit that is Soft
	// as much as it still counts. It is negative for what the call gave back.
	Charged int64
	// Exceeded says that the limit does not have the amount: it refused the operation, or would have
	// refused it if its mode were Enforce and it were not Soft.
	Exceeded bool
	// Never says that the amount exceeds the capacity of the limit.
	Never bool
	// RetryAfter is when this limit would have the amount. It is set when Exceeded is set and Never
	// is not.
	RetryAfter time.Duration
}

// MaxReceiptAge is how long after a take its receipt can still be settled. It is the life of the
// marker that makes a settlement happen once, so that a late one cannot happen twice. With a claim
// there is no such bound: the record of the claim is the marker, and it lives longer.
const MaxReceiptAge = 60 * time.Second

// Settlement says what an operation came to after it ran.
type Settlement struct {
	// Receipt is that of the take. A zero Receipt settles only the claim.
	Receipt Receipt
	// Actual is what the operation was worth in the end. A unit that is absent keeps its charge. Less
	// than was taken is given back, at most what was charged and the refill has not repaid since the take. More is
	// charged on, which cannot be refused and may overdraw to twice the capacity.
	Actual Amounts
	// Claim ends the claim of the operation. Nil means that there is none.
	Claim *ClaimSettlement
}

// ClaimSettlement ends a claim.
type ClaimSettlement struct {
	Tenant  string
	Claim   *idempotency.Claim
	Outcome idempotency.Outcome
	// Answer is stored for replays when Outcome is Done. Nil stores none.
	Answer []byte
}

// Settled is what a [Settlement] led to.
type Settled struct {
	// Applied says that this call settled. It is false when an earlier call had done so, when the
	// receipt was older than [MaxReceiptAge], when another attempt holds the claim, or when its record
	// is gone.
	Applied bool
	// Limits holds the state of every limit of the receipt. It is empty when Applied is false.
	Limits []LimitState
}
