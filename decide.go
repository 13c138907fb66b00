package ratelimit

import (
	"context"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"go.opentelemetry.io/otel/trace"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
	"github.com/gqlgen-ratelimit/ratelimit/internal/sink"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// decide finds out who pays, what the rules are and whether the budget suffices, in one call of the
// store. The response is the stored answer of a replay, and nil otherwise.
func (e *Extension) decide(
	ctx context.Context, x *sink.Exchange, opCtx *graphql.OperationContext,
) (*operation, *graphql.Response) {
	op := e.undecided(x, opCtx)
	d := &op.decision
	d.Kind, d.Name = opCtx.Operation.Operation, opCtx.Operation.Name
	ctx, span := e.reporter.Start(ctx)
	answer := e.judge(ctx, opCtx, op)
	e.nameDearest(opCtx, d)
	e.decided(ctx, span, d)
	return op, answer
}

// decided tells everybody of a decision.
func (e *Extension) decided(ctx context.Context, span trace.Span, d *decision.Decision) {
	e.reporter.Decided(ctx, span, d)
	if !e.cfg.Observe.RootSpan {
		return
	}
	if request := sink.Request(ctx); request != nil {
		e.reporter.MarkRoot(request, d)
	}
}

// undecided returns the operation that the mutator has priced, or one that is not if it has not seen it.
func (e *Extension) undecided(x *sink.Exchange, opCtx *graphql.OperationContext) *operation {
	op := left(x, opCtx)
	if op != nil && op.taken.CompareAndSwap(false, true) {
		return op
	}
	// Whoever runs an operation twice has it decided twice, at the price that it has.
	again := e.newOperation(x)
	if op != nil {
		again.price, again.decision.Cost, again.decision.Points = op.price, op.decision.Cost, op.decision.Points
		again.taken.Store(true)
	}
	return again
}

// ownRules are why an operation may be refused by itself, whatever its budgets have, in the order in which they are asked.
var ownRules = [...]func(*operation) *decision.Refusal{(*operation).unstreamed, (*operation).tooExpensive, (*operation).tooManyValues}

// judge fills the decision of the operation.
func (e *Extension) judge(ctx context.Context, opCtx *graphql.OperationContext, op *operation) *graphql.Response {
	d := &op.decision
	if !op.taken.Load() {
		// Another extension replaced the operation after it was priced: it was never judged.
		d.Refuse(refusedUnavailable())
		return nil
	}
	if plan := op.price.plan; plan != nil {
		d.RootFields = plan.RootFields()
	}
	judged := e.identify(ctx, opCtx, op)
	if d.Refusal != nil {
		return nil
	}
	if answer := e.explain(opCtx, op); answer != nil || d.Refusal != nil {
		return answer
	}
	if !judged {
		return nil
	}
	for _, rule := range ownRules {
		refusal := rule(op)
		if refusal != nil && refusal.Mode == bucket.Enforce {
			d.Refuse(refusal)
			return nil
		}
		d.Note(refusal)
	}
	if e.shed(op) {
		return nil
	}
	answer := e.charge(ctx, opCtx, op)
	if answer != nil || d.Refusal != nil {
		e.withdraw(op)
	}
	return answer
}

// charge asks the stores whether the budgets suffice, and charges them.
func (e *Extension) charge(ctx context.Context, opCtx *graphql.OperationContext, op *operation) *graphql.Response {
	d := &op.decision
	if err := op.claims(opCtx); err != nil {
		wrong := strings.TrimPrefix(err.Error(), idempotency.ErrKeyInvalid.Error()+": ")
		d.Refuse(&decision.Refusal{Outcome: decision.KeyInvalid, Detail: "invalid idempotency key: " + wrong})
		return nil
	}
	return e.takeFor(ctx, op, d.Points)
}

// decideInvalid decides about a document that failed to parse or validate. It returns nil if there is
// nothing to decide.
func (e *Extension) decideInvalid(ctx context.Context, opCtx *graphql.OperationContext) *operation {
	op := e.newOperation(sink.From(ctx))
	d := &op.decision
	ctx, span := e.reporter.Start(ctx)
	d.Points = e.cfg.Pricing.InvalidDocument
	if e.identify(ctx, opCtx, op) {
		e.takeFor(ctx, op, d.Points)
	}
	d.Full = d.Full || asksForAll(op.exchange, opCtx, op.decision.Rules)
	if d.Outcome == decision.SubjectUnknown && op.exchange.Socket(opCtx.Headers) {
		// gqlgen shows the init payload only to valid operations. Until one has been seen, the client is
		// better told what is wrong with its document than that nobody knows it.
		span.End()
		return nil
	}
	e.decided(ctx, span, d)
	return op
}

// identify finds the subject and its rules. It returns false if the decision is made.
func (e *Extension) identify(ctx context.Context, opCtx *graphql.OperationContext, op *operation) bool {
	d := &op.decision
	request := Request{
		Header:      opCtx.Headers,
		InitPayload: transport.GetInitPayload(ctx),
		Operation:   opCtx.Operation,
		Variables:   opCtx.Variables,
	}
	if x := op.exchange; x != nil {
		request.Peer = x.Peer()
		request.Client = e.cfg.Proxies.Client(request.Peer, opCtx.Headers)
		request.InitPayload = x.Remember(request.InitPayload, request.Operation != nil)
	}
	subject, err := e.subject(ctx, &request)
	if err != nil {
		d.Refuse(refusedSubject(err))
		return false
	}
	d.Subject = subject
	// What is known of the tenant beside the policy.
	var record *tiers.Record
	if e.preparer != nil && subject.Tenant != "" {
		record = e.prepare(ctx, subject)
	}
	if subject.Exempt {
		// Nothing is judged, but the keys of an exempt tenant are honoured, and its tier says what it may ask.
		rules := e.cfg.Policy.Snapshot().Rules(subject, tiers.Selection{Record: record})
		op.apply(&rules)
		d.Mode, d.Outcome = bucket.Off, decision.Exempt
		d.Hide = d.Hide.Or(op.decision.Rules.Hide)
		op.useStore()
		return subject.Tenant != ""
	}
	op.request = opCtx
	op.apply(op.rulesOf(e.cfg.Policy.Snapshot(), record))
	d.Tier, d.Mode, d.Hide = op.decision.Rules.Tier, op.decision.Rules.Mode, d.Hide.Or(op.decision.Rules.Hide)
	e.warnOfTier(ctx, d)
	e.warnOfRecord(ctx, op.decision.Rules)
	op.useStore()
	if op.decision.Rules.Blocked {
		d.Refuse(&decision.Refusal{Outcome: decision.Blocked})
		return false
	}
	return true
}

// prepare asks the policy what is known of a tenant that it does not list.
func (e *Extension) prepare(ctx context.Context, subject Subject) (record *tiers.Record) {
	guard.Run(ctx, e.cfg.Observe.Logger, "Config.Policy", func() { record = e.preparer.Prepare(ctx, subject) })
	return record
}

// subject calls the user's function.
func (e *Extension) subject(ctx context.Context, request *Request) (subject Subject, err error) {
	err = guard.Call("Config.Subject", func() (err error) {
		subject, err = e.cfg.Subject(ctx, request)
		return err
	})
	if err == nil && subject.Tenant == "" && !subject.Exempt {
		err = ErrNoSubject
	}
	return subject, err
}
