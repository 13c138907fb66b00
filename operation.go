package ratelimit

import (
	"context"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
	"github.com/gqlgen-ratelimit/ratelimit/internal/claims"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/internal/sink"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// operationKey finds the operation in a context.
type operationKey struct{}

// operationContext is the context in which an operation runs. It is a part of the operation, so that it takes no memory of
// its own.
type operationContext struct {
	context.Context //nolint:containedctx // It is one.

	op *operation
}

// Value implements context.Context.
func (c *operationContext) Value(key any) any {
	if key == (operationKey{}) {
		return c.op
	}
	return c.Context.Value(key)
}

// within returns the context in which the operation runs.
func (op *operation) within(ctx context.Context) context.Context {
	op.ctx = operationContext{ctx, op}
	return &op.ctx
}

// priced is what the mutator leaves for the decision, beside the price in that.
type priced struct {
	plan *cost.Plan
	err  error
}

// operation is the state of one operation from its price to its answer. It is made anew for each: whoever has its context can
// ask for the decision and charge more, long after the answer has left. So it has no more in it than most operations use.
type operation struct {
	ctx       operationContext
	extension *Extension
	// exchange is the HTTP request, nil without the Handler.
	exchange *sink.Exchange
	// price is what the mutator has left.
	price priced
	// amounts, owners and states are room for what is asked of the store and for its answer, so that the
	// usual operation needs no memory of its own for them.
	amounts [3]bucket.Amount
	owners  [3]bucket.Owner
	states  [4]bucket.LimitState
	claim   *idempotency.Claim
	// store is the one that the rules name.
	store *backend.Store
	// request is what the operation came as.
	request *graphql.OperationContext
	// charged is what the take has charged, and responses what is known of the responses, which corrects it.
	charged   charged
	responses responses
	// size bounds and counts what leaves, and stream is what a subscription has taken for its events, nil if no limit counts
	// them nor their bytes.
	size   answerSize
	stream *stream
	// load is what the throttle has counted of it.
	load load
	// beside is what most operations have not, nil for none of it.
	beside *beside
	// actual adds up what the operation comes to. It is nil if it does not run, or if nobody asks.
	actual *actual

	// Fields that are small stand together. taken says that the mutator has left a price and that the operation is decided
	// about, and started that a root resolver may have run.
	taken, started atomic.Bool
	// asks says that the client asks for everything.
	asks bool
	// What follows belongs to the response handler, which is not called twice at once: begun says that the throttle knows of the operation, broken that a panic inside
	// of the extension was its last answer, and ended that one outside was.
	begun, broken, ended bool
	// What follows is under mu: answered says that an answer has left, recharged that a Charge or a correction changed the limits
	// after they were reported in the headers, and claimEnded that the call which ends the claim is under way. closer is who closes the account.
	answered, recharged, claimEnded bool
	closer                          closer
	mu                              sync.Mutex
	// correction is what the call that ends the claim corrects, nil if nothing.
	correction *correction
	decision   decision.Decision
}

// beside is what an operation was charged and judged by beside the tenant's own.
type beside struct {
	// trial is the candidate that has admitted the operation as well.
	trial *bucket.Candidate
	// shared is the receipt of what shared budgets were charged. It is zero where nothing can correct that.
	shared bucket.Receipt
	// held is the claim while the operation runs, nil if it has none.
	held *claims.Held
}

// withBeside returns room for what most operations have not.
func (op *operation) withBeside() *beside {
	if op.beside == nil {
		op.beside = &beside{}
	}
	return op.beside
}

// trial is the candidate that has admitted the operation as well, nil if none has.
func (op *operation) trial() *bucket.Candidate {
	if op.beside == nil {
		return nil
	}
	return op.beside.trial
}

// corrects reports whether there is anything to correct by what the operation comes to.
func (op *operation) corrects() bool {
	return op.charged.corrects() || op.beside != nil && !op.beside.shared.IsZero()
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
	d = op.decision
	op.decision.RefusedInside = false
	return d, recharged
}

// refusal returns the decision if a charge was refused of which no answer has told, nil otherwise.
func (op *operation) refusal() *decision.Decision {
	op.mu.Lock()
	defer op.mu.Unlock()
	if !op.decision.RefusedInside {
		return nil
	}
	d := op.decision
	op.decision.RefusedInside = false
	return &d
}

// newOperation returns an operation about which nothing is decided.
func (e *Extension) newOperation(x *sink.Exchange) *operation {
	op := &operation{extension: e, exchange: x}
	op.apply(&noRules)
	told, d := &e.cfg.Response, &op.decision
	d.Hide, d.ShowShadow, d.Full = told.Hide, told.ShowShadow, told.Full
	return op
}

// noRules are those of an operation of which nobody knows who pays.
var noRules tiers.Rules

// apply makes the rules those of the operation. Only who decides does so, before anybody else has the operation: later they are read without mu.
func (op *operation) apply(rules *tiers.Rules) { op.decision.Rules = rules }

// particulars are rules that others do not share, and what they look at.
type particulars struct {
	rules    tiers.Rules
	selected tiers.Selection
	calls    cost.Calls
	op       *operation
	// query are the parameters of the URL, once somebody has asked.
	query url.Values
}

var _ tiers.Parameters = (*particulars)(nil)

// useStore takes the store that the rules name.
func (op *operation) useStore() {
	op.store = op.extension.stores.Named(op.decision.Rules.Store)
}

func (op *operation) mutation() bool { return op.decision.Kind == ast.Mutation }

// rulesOf returns the rules of a policy for the operation. The decision keeps what they were chosen by.
func (op *operation) rulesOf(policy *tiers.Snapshot, record *tiers.Record) *tiers.Rules {
	subject := op.decision.Subject
	if record == nil {
		if shared := policy.SharedRules(subject); shared != nil {
			if op.extension.reporter.Counts() && (op.several() || len(policy.Parameters()) > 0) {
				// Who records what was asked for wants to know what no rule looks at yet.
				op.decision.Selected = &op.selected(policy, nil).selected
			}
			return shared
		}
	}
	own := op.selected(policy, record)
	op.decision.Selected = &own.selected
	own.rules = policy.Rules(subject, own.selected)
	return &own.rules
}

// several reports whether the operation makes more calls than one, or none.
func (op *operation) several() bool {
	if op.price.plan == nil || len(op.decision.RootFields) == 0 {
		return false
	}
	calls := op.price.plan.Calls(op.request.Variables)
	return len(op.decision.RootFields) > 1 || calls.Len() != 1
}

// selected returns what operation rules of the policy look at. The document stands in it only if they name any.
func (op *operation) selected(policy *tiers.Snapshot, record *tiers.Record) *particulars {
	p := &particulars{op: op}
	p.selected.Fields, p.selected.Calls, p.selected.Record = op.decision.RootFields, &p.calls, record
	if plan := op.price.plan; plan != nil {
		p.calls = plan.Calls(op.request.Variables)
	}
	p.selected.Parameters = p
	if len(p.selected.Fields) > 0 && policy.NamesDocuments() {
		p.selected.Document = op.price.plan.Document(op.request.RawQuery, tiers.DocumentID)
	}
	return p
}
