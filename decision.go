package ratelimit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
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
	// Repeated: the operation runs again on the charge of an earlier attempt under its key.
	Repeated Outcome = "repeated"
	// Unjudged: the operation runs because the store is away and its limits fail open.
	Unjudged Outcome = "unjudged"
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
	// Unavailable: the store is away and a limit fails closed.
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
	// Points is the price of the operation in points.
	Points int64
	// Charged is how many points the subject pays: 0 for a refusal, a replay, and where no limit
	// counts points.
	Charged int64
	// Limits is the state of every limit that was judged, as of the decision or of the last Charge.
	Limits []bucket.LimitState
	// Refusal is why the operation does not run. It is nil if the operation runs or was replayed.
	Refusal *RefusedError
	// WouldRefuse is why the operation would not have run if the shadow mode were enforced.
	WouldRefuse *RefusedError
	// StoreErr is the error of the store. It matches bucket.ErrUnavailable or bucket.ErrAmbiguous.
	StoreErr error
	// StoreDuration is how long the store took. It is zero if the store was not asked.
	StoreDuration time.Duration
}

// operationKey finds the operation in a context.
type operationKey struct{}

// operation is the state of one operation from its decision to its answer.
type operation struct {
	extension *Extension
	rules     tiers.Rules
	claim     *idempotency.Claim
	mutation  bool
	receipt   bucket.Receipt
	// started says that a root resolver may have run.
	started atomic.Bool

	mu       sync.Mutex
	decision Decision
	answered bool
	// recharged says that a Charge changed the limits after they were reported in the headers.
	recharged bool
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

// firstAnswer returns true once.
func (op *operation) firstAnswer() bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	first := !op.answered
	op.answered = true
	return first
}

// takeRecharged returns whether a Charge changed the limits since the headers were set.
func (op *operation) takeRecharged() bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	recharged := op.recharged
	op.recharged = false
	return recharged
}
