package edge

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/document"
	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/turn"
	"github.com/gqlgen-ratelimit/ratelimit/internal/inbound"
)

// passageName is where the statistics of an operation keep its passage.
const passageName = inbound.Passage

// passage is what the gate knows of one operation whose document was not in the cache.
type passage struct {
	// whom are the names of those for whom it counts.
	whom [3]string
	// turn is that of the document. It is nil before and after.
	turn *turn.Turn
	// known is what else is wrong with a document that is known to be invalid.
	known gqlerror.List
	// refused says that the gate has refused the operation.
	refused bool
	// found is the entry of a document that was in the cache, of a request that did not come through [Door.Handler].
	found *document.Entry
	// document is what the cache keeps if the operation is admitted, and text what it was parsed from.
	cache    *document.Cache
	text     string
	document *ast.QueryDocument
}

// passageIn returns the passage of the operation that ctx belongs to, nil if there is none.
func passageIn(ctx context.Context) *passage {
	if !graphql.HasOperationContext(ctx) {
		return nil
	}
	return passageOf(graphql.GetOperationContext(ctx))
}

func passageOf(operation *graphql.OperationContext) *passage {
	p, _ := operation.Stats.GetExtension(passageName).(*passage)
	return p
}

// hand keeps what the cache had for the operation, so that it does not depend on whether that is still there when gqlgen asks for it: it
// would be parsed without a turn.
func (a *arrival) hand(operation *graphql.OperationContext, found *document.Entry) {
	if a.inContext {
		a.found.Store(found)
	} else {
		operation.Stats.SetExtension(passageName, &passage{found: found})
	}
}

// handedIn returns what was handed to the operation that ctx belongs to, once, and nil if nothing was.
func handedIn(ctx context.Context) *document.Entry {
	if a := arrivalFrom(ctx); a != nil {
		return a.found.Swap(nil)
	}
	if p := passageIn(ctx); p != nil {
		return p.found
	}
	return nil
}
