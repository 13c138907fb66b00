package ratelimit

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/internal/sink"
)

var _ interface {
	graphql.HandlerExtension
	graphql.OperationContextMutator
	graphql.OperationInterceptor
	graphql.ResponseInterceptor
	graphql.RootFieldInterceptor
} = (*Extension)(nil)

// InterceptOperation decides. An operation that is refused does not reach its resolvers; a replay
// is answered at once.
func (e *Extension) InterceptOperation(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
	opCtx := graphql.GetOperationContext(ctx)
	x := sink.From(ctx)
	if x == nil && opCtx.Headers != nil {
		e.warnOnce(ctx, oddity{what: "handler"}, "the server is not behind ratelimit.Handler: refusals have no HTTP status, "+
			"and answers no rate limit headers; serve ratelimit.Handler(srv) instead of srv")
	}
	op, answer := e.decide(ctx, x, opCtx)
	ctx = op.within(ctx)
	d := op.snapshot()
	e.signal(x, &d)

	switch {
	case answer != nil:
		return graphql.OneShot(withExtension(answer, &d))
	case d.Refusal != nil && opCtx.Operation.Operation == ast.Subscription:
		// The resolver of a subscription runs inside next, so this is the last moment.
		return graphql.OneShot(withExtension(
			&graphql.Response{Errors: gqlerror.List{e.graphQLError(&d)}}, &d))
	case d.Refusal != nil:
		return next(ctx)
	}
	if e.cfg.Answer.MaxBytes > 0 {
		op.size.limit(e.cfg.Answer.MaxBytes, opCtx)
	}
	e.follow(ctx, opCtx, op)
	return e.run(ctx, op, next)
}

// InterceptResponse reports the decision with the first payload, and answers a refused operation in
// the place of its resolvers, so that the error presenter sees the refusal.
func (e *Extension) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	op := operationFrom(ctx)
	if op == nil {
		return e.interceptUndecided(ctx, next)
	}
	first, refusal := op.answering()
	if refusal != nil {
		if !first {
			return nil
		}
		return e.refuse(ctx, op)
	}
	response := e.nextAnswer(ctx, op, next)
	switch {
	case response == nil:
		return nil
	case !first:
		return op.tellRefused(response)
	}
	return e.reported(ctx, op, response)
}

// reported adds the decision to the first answer of an operation that runs.
func (e *Extension) reported(ctx context.Context, op *operation, response *graphql.Response) *graphql.Response {
	var actual *int64
	if points, known := op.spent(ctx); known {
		actual = &points
	}
	d, recharged := op.report(actual)
	if recharged {
		e.signal(op.exchange, &d)
	}
	return withExtension(response, &d)
}

// nextAnswer returns the next answer of an operation that runs, as far as it may leave, nil if there is none.
func (e *Extension) nextAnswer(ctx context.Context, op *operation, next graphql.ResponseHandler) *graphql.Response {
	if op.stream != nil {
		return e.nextEvent(ctx, op, next)
	}
	response := e.unbroken(ctx, op, next)
	e.leave(ctx, op, response)
	return response
}

// leave bounds, counts and prices an answer; nil says that there are no more.
func (e *Extension) leave(ctx context.Context, op *operation, response *graphql.Response) {
	if response != nil && !op.size.leaves(response, op.decision.Kind == ast.Subscription) {
		op.responses.cut.Store(true)
		e.tooLarge(ctx, op, response)
	}
	e.add(ctx, op, response)
}

// refuse returns the answer to a refused operation, with the error as the server presents it.
func (e *Extension) refuse(ctx context.Context, op *operation) *graphql.Response {
	d := op.snapshot()
	graphql.AddError(ctx, e.graphQLError(&d))
	response := &graphql.Response{Errors: graphql.GetErrors(ctx), Extensions: graphql.GetExtensions(ctx)}
	return withExtension(response, &d)
}

// interceptUndecided handles what never became an operation. A document that failed to parse or
// validate is charged a flat amount; what another extension refused, and a body that is not JSON,
// is not.
func (e *Extension) interceptUndecided(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	if !graphql.HasOperationContext(ctx) {
		return next(ctx)
	}
	opCtx := graphql.GetOperationContext(ctx)
	if op := e.decideUnread(ctx, opCtx); op != nil {
		d := op.snapshot()
		e.signal(sink.From(ctx), &d)
		return e.refuse(graphql.WithFreshResponseContext(ctx), op)
	}
	// Without a text an extension has refused the parameters. With an operation and its variables the
	// document was valid, and an extension has refused it.
	invalid := opCtx.RawQuery != "" && (opCtx.Operation == nil || opCtx.Variables == nil)
	if !invalid || e.cfg.Pricing.InvalidDocument < 0 {
		return next(ctx)
	}
	op := e.decideInvalid(ctx, opCtx)
	if op == nil {
		return next(ctx)
	}
	d := op.snapshot()
	e.signal(sink.From(ctx), &d)
	if d.Refusal != nil {
		// The context holds what is wrong with the document, which is not the answer.
		return e.refuse(graphql.WithFreshResponseContext(ctx), op)
	}
	response := next(ctx)
	if response == nil {
		return nil
	}
	return withExtension(response, &d)
}

// InterceptRootField notes that a resolver may have run, after which a claim is not released, and bounds what the field
// writes.
func (e *Extension) InterceptRootField(ctx context.Context, next graphql.RootResolver) graphql.Marshaler {
	op := operationFrom(ctx)
	if op == nil {
		return next(ctx)
	}
	if op.claim != nil {
		op.started.Store(true)
	}
	return op.size.bounded(next(ctx))
}
