package edge

import (
	"context"
	"sync/atomic"

	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/document"
	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/turn"
)

type arrivalKey struct{}

// arrival is what the door knows of a request, which a WebSocket has once for all its operations.
type arrival struct {
	// client and site are the networks of the address, and key is a hash of the API key. Each is empty if there is none.
	client, site, key string
	// socket is nil without a WebSocket.
	socket *socket
	// inContext says that the context of the request leads to it.
	inContext bool
	// began says that an operation has come.
	began atomic.Bool
	// found is what the cache of documents had for the operation that is being read, and turn the last turn of a document.
	found atomic.Pointer[document.Entry]
	turn  atomic.Pointer[turn.Turn]
	// values is how many values of JSON a request of HTTP holds.
	values atomic.Int64
}

// arrivalFrom returns the arrival of the request that ctx belongs to, nil if it did not come through [Door.Handler].
func arrivalFrom(ctx context.Context) *arrival {
	a, _ := ctx.Value(arrivalKey{}).(*arrival)
	return a
}

// names are those for whom something counts: a client, its site and its key. An empty one is nobody.
func (a *arrival) names() (whose [3]string) {
	for i, of := range [...]struct{ prefix, name string }{{"client ", a.client}, {"site ", a.site}, {"key ", a.key}} {
		if of.name != "" {
			whose[i] = of.prefix + of.name
		}
	}
	return whose
}
