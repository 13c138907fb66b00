package ratelimit

import (
	"context"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
)

// actual adds up what one operation really costs, from its responses as they leave.
type actual struct {
	outline *cost.Outline
	tally   *cost.Tally
	// events counts the responses of a subscription.
	events atomic.Int64
	// forget ends the wait for a client that leaves in the middle of a stream.
	forget func() bool
}

// follow begins to add up an operation that is about to run. It does nothing if nobody would be told,
// or if the operation is too large for its responses to be priced.
func (e *Extension) follow(ctx context.Context, opCtx *graphql.OperationContext, op *operation) {
	if e.cfg.NoActualCost {
		return
	}
	outline, err := e.estimator.OutlineText(opCtx.RawQuery, opCtx.Doc, opCtx.Operation)
	if err != nil {
		return
	}
	op.actual = &actual{outline: outline, tally: outline.Tally(opCtx.Variables)}
	if outline.NeedsTypes() {
		opCtx.ResolverMiddleware = observing(opCtx.ResolverMiddleware, outline, op.actual.tally)
	}
	if op.decision.Kind == ast.Subscription {
		e.awaitLeave(ctx, op)
	}
}

// observing wraps the middleware of all fields, so that the tally learns the types of objects that the
// response does not tell. A field knows the type that it is on.
func observing(next graphql.FieldMiddleware, outline *cost.Outline, tally *cost.Tally) graphql.FieldMiddleware {
	// The fields of one object mostly come one after the other.
	var last atomic.Pointer[graphql.FieldContext]
	return func(ctx context.Context, resolve graphql.Resolver) (any, error) {
		field := graphql.GetFieldContext(ctx)
		if field != nil && field.Parent != nil && outline.NeedsType(field.Object) && last.Swap(field.Parent) != field.Parent {
			tally.Observe(field.Parent.Path(), field.Object)
		}
		return next(ctx, resolve)
	}
}

// awaitLeave ends the account of a stream when its client leaves, because then nobody asks for the
// response that would say that the stream is over.
func (e *Extension) awaitLeave(ctx context.Context, op *operation) {
	if op.actual.forget == nil {
		op.actual.forget = context.AfterFunc(ctx, func() { e.finish(ctx, op, nil, true) })
	}
}

// add prices one response of the operation; nil says that there are no more.
func (e *Extension) add(ctx context.Context, op *operation, response *graphql.Response) {
	op.answers.note(response)
	a := op.actual
	if response == nil {
		e.over(ctx, op, nil)
		return
	}
	if a != nil {
		a.events.Add(1)
		// What cannot be read makes the whole unknown, which Cost says.
		_ = a.tally.AddAt(response.Path, response.Data)
	}
	switch {
	case response.HasNext != nil && *response.HasNext:
		if a != nil {
			e.awaitLeave(ctx, op)
		}
	case op.decision.Kind != ast.Subscription:
		e.over(ctx, op, response)
	}
}

// over says that the last response is on its way.
func (e *Extension) over(ctx context.Context, op *operation, last *graphql.Response) {
	if op.actual != nil && op.actual.forget != nil {
		op.actual.forget()
	}
	e.finish(ctx, op, last, false)
}

// points returns the price of what was added up so far. It returns false if it is unknown.
func (a *actual) points(e *Extension) (int64, bool) {
	if a == nil {
		return 0, false
	}
	spent, err := a.tally.Cost()
	if err != nil {
		return 0, false
	}
	return e.price(spent), true
}

// estimate returns what the operation was estimated at, in points. That of a subscription is the price of one
// event, so that it is taken for as many events as there were.
func (a *actual) estimate(e *Extension, d *decision.Decision) int64 {
	if d.Kind != ast.Subscription {
		return d.Points
	}
	return e.price(a.outline.Stream(d.Cost, a.events.Load()))
}
