package ratelimit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Outcome says what a decision came to, in the word that spans and metrics carry.
type Outcome string

// The outcomes of a decision. An operation runs after the first group and does not after the second.
const (
	// Admitted: the operation was charged, or had nothing to be charged for.
	Admitted Outcome = "admitted"
	// Shadowed: the operation runs although something that is in shadow mode would have refused it.
	Shadowed Outcome = "shadowed"
	// Warned: the same for something that is in mode warn, of which the client is told.
	Warned Outcome = "warned"
	// Repeated: the operation runs again on the charge of an earlier attempt under its key.
	Repeated Outcome = "repeated"
	// Unjudged: the operation runs because the store is away and its limits fail open.
	Unjudged Outcome = "unjudged"
	// AdmittedLocally: the operation runs because the store is away and this instance's share of its limits,
	// which fail local, had the amount. The store is charged when it is back.
	AdmittedLocally Outcome = "admitted_locally"
	// Exempt: the subject is not subject to limits at all.
	Exempt Outcome = "exempt"

	// Limited: a limit does not have the amount now.
	Limited Outcome = "limited"
	// TooExpensive: the operation costs more than it ever may.
	TooExpensive Outcome = "too_expensive"
	// QueryLimited: the operation breaks a rule of shape, such as giving two slicing arguments.
	QueryLimited Outcome = "query_limited"
	// Blocked: the tenant may not use the API.
	Blocked Outcome = "blocked"
	// LimitedLocally: the store is away, and this instance's share of a limit that fails local does not have
	// the amount now.
	LimitedLocally Outcome = "limited_locally"
	// Unavailable: the store is away and a limit fails closed, or fails local and this instance's share of it is
	// too small for the operation.
	Unavailable Outcome = "unavailable"
	// SubjectUnknown: nobody could be found who pays, or the caller's authentication failed.
	SubjectUnknown Outcome = "subject_unknown"
	// KeyInvalid: the idempotency key is malformed.
	KeyInvalid Outcome = "key_invalid"
	// KeyReused: the idempotency key was used for something else.
	KeyReused Outcome = "key_reused"
	// InFlight: another attempt under the idempotency key is running.
	InFlight Outcome = "in_flight"
	// AnswerUnavailable: the key is done and its answer was not stored.
	AnswerUnavailable Outcome = "answer_unavailable"
	// OutcomeUnknown: an attempt under the idempotency key was abandoned, and no other may run after it.
	OutcomeUnknown Outcome = "outcome_unknown"
	// Validated: the client asked for the price of the operation instead of running it, by GraphQL-Cost:
	// validate.
	Validated Outcome = "validated"
	// CostRequestInvalid: the client asked about the price in words that nobody understands.
	CostRequestInvalid Outcome = "cost_request_invalid"
	// CostRequestForbidden: the tier does not permit pricing without running.
	CostRequestForbidden Outcome = "cost_request_forbidden"
	// Busy: the tenant has as many calls of the store under way as [OutageConfig] lets it have.
	Busy Outcome = "busy"
	// Replayed: the client got the stored answer of the first attempt.
	Replayed Outcome = "replayed"
)

// Decision is what was decided about one operation.
type Decision struct {
	// Outcome is the verdict.
	Outcome Outcome
	// Subject is who pays.
	Subject Subject
	// Tier is the tier whose rules applied. It is empty if none was looked up.
	Tier string
	// Mode is the mode of these rules.
	Mode bucket.Mode
	// RootFields are the coordinates of the root fields that the operation selects, sorted, such as
	// Mutation.createOrder. The slice is shared: do not change it.
	RootFields []string
	// Cost is the static cost of the operation. It is zero for a document that did not validate.
	Cost cost.Cost
	// Breakdown explains Cost. It is nil unless the client has asked for it and may.
	Breakdown *cost.Breakdown
	// Points is the price of the operation in points. A subscription pays it once, when it begins: its base
	// and one event.
	Points int64
	// Charged is how many points the subject pays: 0 for a refusal, a replay, and where no limit
	// counts points.
	Charged int64
	// Refunded is how many of the points charged are being given back, because the operation came to less. It
	// is zero until the operation has run, and so for [Config.OnDecision].
	Refunded int64
	// Actual is what the first response came to in points, by the lists that it really has. It is nil before
	// that, and where it is not known.
	Actual *int64
	// Limits is the state of every limit that was judged, as of the decision or of the last Charge. The
	// times in it are those that clients are told: where a window ends for all at once they are later
	// than the store's, by up to a twentieth of the window and a minute, so that not everybody comes
	// back in the same moment. Of an operation that was judged locally they are those limits that fail local,
	// with what is left of the share of this instance.
	Limits []bucket.LimitState
	// Overridden says that an override record, and not the policy alone, has decided: it blocked the
	// operation, or changed one of the Limits. bucket.OverrideStore tells which, why, and by whom.
	Overridden bool
	// Candidate is what the candidate policy would have decided. It is nil if there is none, or if the
	// operation was decided without asking what is left: it is too expensive or malformed, its tenant is
	// blocked, its key was used before, or the store is away.
	Candidate *CandidateDecision
	// Refusal is why the operation does not run. It is nil if the operation runs or was replayed.
	Refusal *RefusedError
	// WouldRefuse is why the operation would not have run if everything were enforced; its Mode says
	// whether that is in mode warn or shadow. It is nil if the operation would have run. Where the
	// Outcome is Validated, it is why the operation can never run.
	WouldRefuse *RefusedError
	// StoreErr is the error of the store. It matches bucket.ErrUnavailable or bucket.ErrAmbiguous.
	StoreErr error
	// StoreDuration is how long the store took. It is zero if the store was not asked, or if a
	// the memory of its refusals answered in its place.
	StoreDuration time.Duration

	// blockedBy is the override record that blocks the operation, nil if none does.
	blockedBy *bucket.Override
	// hide is what of it clients are not told.
	hide tiers.Hide
}

// operationKey finds the operation in a context.
type operationKey struct{}

// operation is the state of one operation from its decision to its answer.
type operation struct {
	extension *Extension
	// rules is what applies.
	rules tiers.Rules
	// buckets, amounts and states are room for what is asked of the store and for its answer, so that the
	// usual operation needs no memory of its own for them.
	buckets  [4]bucket.Bucket
	amounts  [3]bucket.Amount
	owners   [6]bucket.Owner
	states   [4]bucket.LimitState
	claim    *idempotency.Claim
	mutation bool
	// store is the one that the rules name.
	store *backend.Store
	// document is the text of the document that the operation came in.
	document string
	kind     ast.Operation
	// name is the one that the client gave the operation.
	name string
	// asked are the amounts that the store was asked for, and keyed says that it was given a key.
	asked bucket.Amounts
	keyed bool
	// paid is what the take has charged, and answers what is known of the responses, by which that is
	// corrected.
	paid    paid
	answers answers
	// trial is the candidate that has admitted the operation as well.
	trial *bucket.Candidate
	// started says that a root resolver may have run.
	started atomic.Bool

	mu       sync.Mutex
	decision Decision
	answered bool
	// actual adds up what the operation comes to. It is nil if it does not run, or if nobody asks.
	actual *actual
	// recharged says that a Charge or a correction changed the limits after they were reported in the headers.
	recharged bool
	// correction is what the call that ends the claim corrects, and claimEnded says that it is under way.
	correction correction
	claimEnded bool
}

func operationFrom(ctx context.Context) *operation {
	op, _ := ctx.Value(operationKey{}).(*operation)
	return op
}

// FromContext returns the decision about the operation that ctx belongs to, for resolvers and for
// other extensions. It returns false if the extension has not decided. The limits are shared: do not
// change them.
func FromContext(ctx context.Context) (Decision, bool) {
	op := operationFrom(ctx)
	if op == nil {
		return Decision{}, false
	}
	return op.snapshot(), true
}

func (op *operation) snapshot() Decision {
	op.mu.Lock()
	defer op.mu.Unlock()
	return op.decision
}

// answering returns whether this is the first answer, which it says once, and why the operation was
// refused, nil if it was not.
func (op *operation) answering() (first bool, refusal *RefusedError) {
	op.mu.Lock()
	defer op.mu.Unlock()
	first = !op.answered
	op.answered = true
	return first, op.decision.Refusal
}

// report takes in what the first response came to, nil if it is not known. It returns the decision, and
// whether a Charge or a correction changed its limits since the headers were set.
func (op *operation) report(actual *int64) (decision Decision, recharged bool) {
	op.mu.Lock()
	defer op.mu.Unlock()
	op.decision.Actual = actual
	recharged = op.recharged
	op.recharged = false
	return op.decision, recharged
}
