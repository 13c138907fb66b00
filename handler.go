package ratelimit

import (
	"net/http"

	"github.com/gqlgen-ratelimit/ratelimit/internal/sink"
)

// Handler wraps the HTTP handler of a gqlgen server and gives the extension what gqlgen does not:
// the status and the headers of the answer, and the address of the peer.
//
//	http.Handle("/query", ratelimit.Handler(srv))
//
// It holds the answer back until the decision is known, at most 64 KiB of it, which gives a refusal
// its status and Retry-After on every HTTP transport, server-sent events included. A WebSocket is
// passed through: there the same facts are in the messages. Without the Handler everything works
// except status, headers and [ByPeer], which fails with [ErrNoPeer].
func Handler(next http.Handler) http.Handler { return sink.Handler(next) }
