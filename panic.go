package ratelimit

import (
	"context"
	"errors"
	"net/http"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
)

// begin begins an operation that was admitted, and ends its account however it ends. gqlgen lets panics through: those of the fields of the root while they are
// collected, of scalars while they are written, of the error presenter and of other extensions. Each is the last answer of its operation, with HTTP 500 where the
// status is still open.
func (e *Extension) begin(ctx context.Context, op *operation, next graphql.OperationHandler) (answers graphql.ResponseHandler) {
	defer func() {
		if cause := recover(); cause != nil {
			answers = graphql.OneShot(e.breaks(ctx, op, cause))
		}
	}()
	inside := next(ctx)
	return func(ctx context.Context) *graphql.Response { return e.answer(ctx, op, inside) }
}

// answer returns the next answer of an operation that runs, nil if there is none.
func (e *Extension) answer(ctx context.Context, op *operation, inside graphql.ResponseHandler) (response *graphql.Response) {
	if op.ended || op.closedBy(asked) == abandoned {
		return nil
	}
	start, returned := e.start(op), false
	defer func() { e.end(ctx, start, response, !returned) }()
	defer func() {
		if cause := recover(); cause != nil {
			op.ended, response = true, e.breaks(ctx, op, cause)
		}
	}()
	response = inside(ctx)
	returned = true
	if response == nil {
		e.over(ctx, op)
		return nil
	}
	if first, _ := op.answering(); first {
		// The resolver of a subscription has failed, which gqlgen shows to no extension, or an earlier one has answered the first event. Only the next answer tells which.
		response = e.outside(ctx, op, response, op.decision.Kind != ast.Subscription)
	}
	return response
}

// closer is who closes the account of an operation, zero while nobody does.
type closer uint8

const (
	// asked is the response handler, which was called.
	asked closer = iota + 1
	// abandoned is the [Handler]: nobody has called the response handler, which answers nothing from now on.
	abandoned
)

// closedBy returns who closes the account: the first who asks to.
func (op *operation) closedBy(one closer) closer {
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.closer == 0 {
		op.closer = one
	}
	return op.closer
}

// Abandon implements sink.Running. The operation has failed: an earlier extension has panicked, or has answered in its place.
func (op *operation) Abandon() {
	if op.closedBy(abandoned) != abandoned {
		return
	}
	op.extension.outside(&op.ctx, op, &graphql.Response{Data: []byte("null")}, true)
	if op.beside != nil && op.beside.held != nil {
		op.beside.held.Abandon(&op.ctx)
	}
}

// unbroken returns the next answer of what is inside of the extension. A panic there is the last answer, as the server presents it.
func (e *Extension) unbroken(ctx context.Context, op *operation, next graphql.ResponseHandler) (response *graphql.Response) {
	if op.broken {
		return nil
	}
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		if op.passesOn(cause) {
			panic(cause)
		}
		op.broken = true
		op.exchange.Fail()
		fresh := graphql.WithFreshResponseContext(ctx)
		graphql.AddError(fresh, graphql.Recover(fresh, cause))
		response = &graphql.Response{Data: []byte("null"), Errors: graphql.GetErrors(fresh), Extensions: graphql.GetExtensions(ctx)}
	}()
	return next(ctx)
}

// passesOn reports whether a panic goes on when the account is closed: net/http is to break off the answer, or nobody but gqlgen can give it a status.
func (op *operation) passesOn(cause any) bool {
	err, _ := cause.(error)
	return op.exchange == nil || errors.Is(err, http.ErrAbortHandler)
}

// breaks closes the account of an operation that a panic outside of [Extension.InterceptResponse] has ended, and returns its last answer. The error presenter of the
// server is out of reach there, so that the answer does not say what the recover function says.
func (e *Extension) breaks(ctx context.Context, op *operation, cause any) *graphql.Response {
	response := &graphql.Response{Data: []byte("null"), Errors: gqlerror.List{{Message: "internal system error"}}}
	op.responses.spoiled.Store(true)
	response = e.outside(ctx, op, response, true)
	if op.passesOn(cause) {
		panic(cause)
	}
	op.exchange.Fail()
	guard.Run(ctx, e.cfg.Observe.Logger, "the recover function of the server", func() {
		_ = graphql.GetOperationContext(ctx).RecoverFunc(ctx, cause)
	})
	return response
}

// outside takes in an answer that did not come through [Extension.InterceptResponse], and reports the decision with it. The account has the answer in it if it has no
// other, and is closed if that is the last one.
func (e *Extension) outside(ctx context.Context, op *operation, response *graphql.Response, last bool) *graphql.Response {
	ctx = graphql.WithResponseContext(ctx, graphql.DefaultErrorPresenter, graphql.DefaultRecover)
	if op.responses.count.Load() == 0 {
		e.leave(ctx, op, response)
	}
	if last {
		e.over(ctx, op)
	}
	return e.reported(ctx, op, response)
}
