package edge

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/document"
	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/failure"
	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/turn"
)

// gate is the part of the door that documents pass.
type gate struct {
	cfg    DocumentConfig
	bounds document.Bounds
	// turns is nil if any number is parsed at once, and failures if none is remembered.
	turns    *turn.Queue
	failures *failure.Memory

	mu     sync.Mutex
	schema *ast.Schema
}

// newGate returns a gate. Defaults have been filled in.
func newGate(cfg *DocumentConfig) *gate {
	g := &gate{cfg: *cfg, bounds: cfg.bounds()}
	if cfg.MaxParsing > 0 {
		g.turns = turn.New(cfg.MaxParsing, max(0, cfg.MaxWaiting), cfg.MaxWait)
	}
	if cfg.RememberInvalid > 0 {
		g.failures = failure.New(cfg.RememberInvalid)
	}
	return g
}

// serve notes the schema, of which a gate has one.
func (g *gate) serve(schema *ast.Schema) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.schema != nil && g.schema != schema {
		return errors.New("edge: the door serves another schema already: make one with edge.New for each server")
	}
	g.schema = schema
	return nil
}

// abandon ends what a panic has left: the turn of a document, of which a request, or what a WebSocket reads, has one at a time.
func (g *gate) abandon(a *arrival) {
	if left := a.turn.Swap(nil); left != nil {
		g.turns.Leave(left)
	}
}

// enter refuses what need not be parsed, and waits for the turn of what has to be. An error is the answer of the limiter,
// or that to an invalid document.
func (g *gate) enter(ctx context.Context, a *arrival, params *graphql.RawParams) (*refusal, *gqlerror.Error) {
	operation := graphql.GetOperationContext(ctx)
	if found := g.cfg.Cache.find(params.Query); found != nil {
		a.hand(operation, found)
		return nil, nil
	}
	p := &passage{whom: a.names(), refused: true}
	if passageOf(operation) != nil {
		return nil, gqlerror.Errorf("edge: the server uses a door twice: call srv.Use with one edge.Door, once")
	}
	operation.Stats.SetExtension(passageName, p)
	if broken := g.bounds.Count(params.Query); broken != nil {
		return outOfBounds(broken), nil
	}
	// A text that is a part of a larger one, such as of a URL, would keep all of that in memory.
	params.Query = strings.Clone(params.Query)
	if err := g.known(ctx, operation, params, p); err != nil {
		return nil, err
	}
	if g.turns != nil {
		if p.turn = g.turns.Enter(ctx, p.whom); p.turn == nil {
			return overloadedParser(), nil
		}
		a.turn.Store(p.turn)
	}
	p.refused = false
	return nil, nil
}

// known returns the answer to what the limiter refuses whatever the document says, and to what is known to be invalid. The
// limiter decides about both: what it refuses is its own affair, and an invalid document has a price.
func (g *gate) known(ctx context.Context, operation *graphql.OperationContext, params *graphql.RawParams, p *passage) *gqlerror.Error {
	if g.cfg.Limiter != nil {
		if err := g.cfg.Limiter.RefusesUnread(ctx, params); err != nil {
			return err
		}
	}
	// An empty text is that of a persisted query, which an extension fills in.
	if g.failures == nil || params.Query == "" {
		return nil
	}
	known := g.failures.Find(params.Query)
	if known == nil {
		return nil
	}
	// As gqlgen leaves it for an operation whose document has failed.
	operation.RawQuery, operation.OperationName = params.Query, params.OperationName
	operation.Extensions, operation.Headers = params.Extensions, params.Headers
	answer := known.Answer(p.whom)
	p.known = answer[1:]
	return answer[0]
}

// leave ends the turn of a document, if it has one.
func (g *gate) leave(p *passage) {
	if p != nil && p.turn != nil {
		g.turns.Leave(p.turn)
		p.turn = nil
	}
}

// decided keeps the document of an operation that was admitted.
func (g *gate) decided(ctx context.Context) {
	p := passageIn(ctx)
	if p == nil || p.document == nil {
		return
	}
	if g.cfg.Limiter == nil || g.cfg.Limiter.Admitted(ctx) {
		p.cache.Keep(p.text, p.document)
	}
	p.cache, p.document = nil, nil
}

// answer ends the turn of a document that has failed, and remembers that.
func (g *gate) answer(ctx context.Context, operation *graphql.OperationContext, next graphql.ResponseHandler) *graphql.Response {
	p := passageOf(operation)
	g.leave(p)
	// Variables are never nil once gqlgen has found the operation and read them.
	if operation.Doc != nil && operation.Variables != nil {
		return next(ctx)
	}
	// Who has refused it may have done so before gqlgen asked for its document.
	_ = handedIn(ctx)
	// With a document it is valid, and without a text the parameters were refused.
	if p != nil && operation.Doc == nil && operation.RawQuery != "" {
		for _, err := range p.known {
			graphql.AddError(ctx, err)
		}
		if !p.refused && g.failures != nil {
			g.failures.Remember(operation.RawQuery, p.whom, graphql.GetErrors(ctx))
		}
	}
	return g.cut(next(ctx))
}

// cut leaves of the errors what an answer lists.
func (g *gate) cut(response *graphql.Response) *graphql.Response {
	if response != nil && g.cfg.MaxErrors > 0 {
		response.Errors = failure.Listed(response.Errors, g.cfg.MaxErrors)
	}
	return response
}
