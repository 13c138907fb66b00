package ratelimit

import (
	"context"
	"crypto/sha256"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/internal/sink"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// unreadName is where the statistics of an operation keep what was refused before it was read.
const unreadName = extensionName + ".unread"

// RefusesUnread returns the answer to an operation of which only the parameters are known, if the extension is certain to
// refuse it, whatever its variables are: the tenant is blocked, or a limit of its own in requests has nothing left, as far as
// this server remembers, or the operation has broken an enforced rule of shape before. It returns nil for all others, and for every operation that
// carries an idempotency key, which may be a replay, unless the subject is anonymous and has none. On a
// WebSocket it returns nil for an anonymous subject until a valid operation has shown who connected, eight times at most. An empty limit
// in points does not count: operations of 0 points pass it.
//
// It is for what stands before the parser, as package edge does, which calls it for documents that are not in the cache:
// [Config.Subject] then runs a second time for those that are parsed after all. It takes nothing, and asks no store
// that is outside of this process. Its answer is to be returned from MutateOperationParameters: the extension reports the
// refusal, with the status and headers that belong to it, in InterceptResponse.
func (e *Extension) RefusesUnread(ctx context.Context, params *graphql.RawParams) *gqlerror.Error {
	if e.stores == nil || e.hasCandidate() {
		return nil
	}
	op := e.newOperation(sink.From(ctx))
	read := &graphql.OperationContext{Headers: params.Headers, Extensions: params.Extensions}
	if !e.identify(ctx, read, op) && op.decision.Outcome != decision.Blocked || op.decision.Subject.Exempt {
		return nil
	}
	// Nothing is a replay for an anonymous subject, which could otherwise pass with a key that nobody looks at.
	if anonymous := op.decision.Subject.Anonymous; anonymous && isUnshown(ctx, params) || !anonymous && e.carriesKey(op.exchange, params) {
		return nil
	}
	// Nobody knows what it costs.
	op.decision.Hide.Cost = true
	if op.decision.Refusal == nil && !op.refusedByShape(e.misshapen.find(params)) && !op.refusedUnread(ctx, read) {
		return nil
	}
	graphql.GetOperationContext(ctx).Stats.SetExtension(unreadName, op)
	return e.graphQLError(&op.decision)
}

// isUnshown says whether the payload of a WebSocket may still tell who it is: gqlgen shows it only when the first document was read.
func isUnshown(ctx context.Context, params *graphql.RawParams) bool {
	x := sink.From(ctx)
	return x != nil && x.Socket(params.Headers) && x.Unshown()
}

// Admitted reports whether the operation that ctx belongs to was decided about and admitted at its price, so that its
// document is worth keeping. One that was only priced, which the policy may permit, is not.
func (e *Extension) Admitted(ctx context.Context) bool {
	if !graphql.HasOperationContext(ctx) {
		return false
	}
	op := left(sink.From(ctx), graphql.GetOperationContext(ctx))
	if op == nil || !op.taken.Load() {
		return false
	}
	d := op.snapshot()
	return d.Outcome != "" && d.Refusal == nil && d.Outcome != decision.Validated
}

// carriesKey says whether there may be an idempotency key.
func (e *Extension) carriesKey(x *sink.Exchange, params *graphql.RawParams) bool {
	return e.cfg.Idempotency.Keys != KeysIgnored && e.claims.Carries(params.Headers, params.Extensions, x.Socket(params.Headers))
}

// hasCandidate says whether another policy is tried, which is to be told of every operation.
func (e *Extension) hasCandidate() bool {
	_, candidate := tiers.CandidateOf(e.cfg.Policy)
	return candidate != nil
}

// refusedByShape refuses the operation if what is known of its shape is enforced.
func (op *operation) refusedByShape(err error) bool {
	if err == nil {
		return false
	}
	op.price.err = err
	refusal := op.tooExpensive()
	if refusal == nil || refusal.Mode != bucket.Enforce {
		return false
	}
	op.decision.Refuse(refusal)
	return true
}

// refusedUnread refuses the operation if the store would refuse any that has no price and is not in the cache of documents. A
// question about a price, where it may be asked, takes nothing of the store.
func (op *operation) refusedUnread(ctx context.Context, read *graphql.OperationContext) bool {
	d := &op.decision
	if asked, err := costRequestOf(op.exchange, read); op.decision.Rules.CostValidate && (asked == costReport || asked == costValidate || err != nil) {
		return false
	}
	take := bucket.Take{
		Tenant: d.Subject.Tenant, Buckets: unasked(judged(op.decision.Rules)), States: op.states[:], Owners: op.members(op.owners[:]),
		Amounts: bucket.Amounts{{Unit: bucket.Points}, {Unit: bucket.Requests, N: 1}},
		Lease:   op.decision.Rules.Lease,
	}
	if take.Buckets == nil || op.decision.Rules.PaysByCall() {
		return false
	}
	result, ok := op.store.Foresee(ctx, &take)
	if !ok {
		return false
	}
	d.Asked, d.Limits, d.Overridden = take.Amounts, result.Limits, overridden(&result)
	d.Refuse(refusedBy(&result))
	return true
}

// decideUnread reports what was refused before it was read.
func (e *Extension) decideUnread(ctx context.Context, opCtx *graphql.OperationContext) *operation {
	op, _ := opCtx.Stats.GetExtension(unreadName).(*operation)
	if op == nil {
		return nil
	}
	ctx, span := e.reporter.Start(ctx)
	e.decided(ctx, span, &op.decision)
	return op
}

// misshapenSlots is how many operations are remembered that break a rule of shape whatever their variables are.
const misshapenSlots = 4096

// misshapen remembers the latest of them by hashes. Whether they are refused is up to the policy of whoever sends them. It is
// safe for concurrent use.
type misshapen struct {
	mu    sync.Mutex
	why   map[misshape]error
	order []misshape
	next  int
}

// misshape names an operation as a client asks for it: by the text of its document and the name that it gives.
type misshape struct{ text, name [sha256.Size]byte }

func misshapeOf(text, name string) misshape {
	return misshape{sha256.Sum256([]byte(text)), sha256.Sum256([]byte(name))}
}

// note remembers an operation that has no price, or that breaks a rule of shape, whatever its variables are.
func (m *misshapen) note(opCtx *graphql.OperationContext, plan *cost.Plan, why error) {
	if why == nil || plan != nil && plan.BreaksShape() == nil {
		return
	}
	key := misshapeOf(opCtx.RawQuery, opCtx.OperationName)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.why == nil {
		m.why, m.order = make(map[misshape]error), make([]misshape, misshapenSlots)
	}
	if _, known := m.why[key]; known {
		return
	}
	delete(m.why, m.order[m.next])
	m.order[m.next] = key
	m.next = (m.next + 1) % misshapenSlots
	m.why[key] = why
}

// find returns why an operation cannot pass where shape is enforced, nil if it may.
func (m *misshapen) find(params *graphql.RawParams) error {
	m.mu.Lock()
	none := len(m.why) == 0
	m.mu.Unlock()
	if none || params.Query == "" {
		return nil
	}
	key := misshapeOf(params.Query, params.OperationName)
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.why[key]
}
