package ratelimit

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// operationKey finds the operation in a context.
type operationKey struct{}

// operation is the state of one operation from its decision to its answer.
type operation struct {
	extension *Extension
	// rules is what applies.
	rules tiers.Rules
	// buckets, amounts and states are room for what is asked of the store and for its answer, so that the
	// usual operation needs no memory of its own for them.
	buckets [4]bucket.Bucket
	amounts [5]bucket.Amount
	owners  [6]bucket.Owner
	states  [4]bucket.LimitState
	claim   *idempotency.Claim
	// calls are those of root fields, which operation rules may ask about.
	calls cost.Calls
	// store is the one that the rules name.
	store *backend.Store
	// plan is the compiled operation, nil if it could not be compiled, and document the text that it came in.
	plan     *cost.Plan
	document string
	// parsed is how many milliseconds of parsing the claim of the operation pays for.
	parsed int64
	// charged is what the take has charged, and responses what is known of the responses, which corrects it.
	charged   charged
	responses responses
	// size bounds and counts what leaves, and stream is what a subscription has taken for its events.
	size   answerSize
	stream stream
	// trial is the candidate that has admitted the operation as well.
	trial *bucket.Candidate
	// started says that a root resolver may have run.
	started atomic.Bool

	mu       sync.Mutex
	decision decision.Decision
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

func (op *operation) snapshot() decision.Decision {
	op.mu.Lock()
	defer op.mu.Unlock()
	return op.decision
}

// answering returns whether this is the first answer, which it says once, and why the operation was
// refused, nil if it was not.
func (op *operation) answering() (first bool, refusal *decision.Refusal) {
	op.mu.Lock()
	defer op.mu.Unlock()
	first = !op.answered
	op.answered = true
	return first, op.decision.Refusal
}

// report takes in what the first response came to, nil if it is not known. It returns the decision, and
// whether a Charge or a correction changed its limits since the headers were set.
func (op *operation) report(actual *int64) (d decision.Decision, recharged bool) {
	op.mu.Lock()
	defer op.mu.Unlock()
	op.decision.Actual = actual
	recharged = op.recharged
	op.recharged = false
	return op.decision, recharged
}

// newOperation returns an operation about which nothing is decided.
func (e *Extension) newOperation() *operation {
	op := &operation{extension: e}
	op.decision.Rules = &op.rules
	told, d := &e.cfg.Response, &op.decision
	d.Hide, d.ShowShadow, d.Full, d.HelpURL = told.Hide, told.ShowShadow, told.Full, told.HelpURL
	return op
}

// useStore takes the store that the rules name.
func (op *operation) useStore() {
	op.store = op.extension.stores.Named(op.rules.Store)
	op.decision.Store = op.store.Name()
}

func (op *operation) mutation() bool { return op.decision.Kind == ast.Mutation }
