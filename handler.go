package ratelimit

import (
	"bytes"
	"context"
	"net/http"
	"net/netip"
	"sync"

	"github.com/99designs/gqlgen/graphql/handler/transport"
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
func Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{response: w, peer: peerOf(r)}
		r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
		if onWebSocket(r.Header) {
			x.passed = true
			next.ServeHTTP(w, r)
			return
		}
		defer x.release()
		next.ServeHTTP(heldWriter{x}, r)
	})
}

// maxHeld bounds what is held back. gqlgen writes at most a preamble before the decision; anything
// larger is no GraphQL answer and passes.
const maxHeld = 64 << 10

type exchangeKey struct{}

// exchange is one HTTP request with its answer, as the Handler and the extension share it. A
// WebSocket has one for all its operations.
type exchange struct {
	response http.ResponseWriter
	peer     netip.Addr

	mu sync.Mutex
	// payload is what a WebSocket client sent when it connected, as far as an operation has shown it.
	payload transport.InitPayload
	// passed says that the answer is on its way: status and headers are out of reach.
	passed  bool
	decided bool
	// expose lists the headers of this package for browsers, when the answer leaves.
	expose  bool
	flush   bool
	status  int
	refusal int
	body    bytes.Buffer
}

func exchangeFrom(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// remember returns the payload of the connection: the given one, or the last that was given.
func (x *exchange) remember(payload transport.InitPayload) transport.InitPayload {
	x.mu.Lock()
	defer x.mu.Unlock()
	if payload != nil {
		x.payload = payload
	}
	return x.payload
}

// decide sets the headers and, for a refusal, the status. It may be called again until the answer
// is on its way; after that it does nothing.
func (x *exchange) decide(status int, expose bool, set func(http.Header)) {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.passed {
		return
	}
	x.decided = true
	x.refusal, x.expose = status, expose
	set(x.response.Header())
	if x.flush {
		x.passHeld()
	}
}

// release lets go of what is held when the wrapped handler returns without a decision.
func (x *exchange) release() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.passed && (x.status != 0 || x.body.Len() > 0 || x.flush) {
		x.passHeld()
	}
}

// passHeld commits status and headers and sends what was held. The lock is held.
func (x *exchange) passHeld() {
	x.passed = true
	if x.expose {
		exposeHeaders(x.response.Header())
	}
	switch {
	case x.refusal != 0:
		x.response.WriteHeader(x.refusal)
	case x.status != 0:
		x.response.WriteHeader(x.status)
	}
	if x.body.Len() > 0 {
		// A failed write shows again in the next one, which the transport makes itself.
		_, _ = x.response.Write(x.body.Bytes())
		x.body = bytes.Buffer{}
	}
	if x.flush {
		_ = http.NewResponseController(x.response).Flush()
	}
}

// heldWriter is the ResponseWriter that the wrapped handler sees. Its methods are safe for
// concurrent use, because streaming transports write from goroutines of their own.
type heldWriter struct{ *exchange }

// Header returns the header map of the answer.
func (w heldWriter) Header() http.Header { return w.response.Header() }

// Unwrap gives http.ResponseController the writer beneath.
func (w heldWriter) Unwrap() http.ResponseWriter { return w.response }

// WriteHeader notes the status, or passes it on if the answer is on its way.
func (w heldWriter) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	informational := status < http.StatusOK
	if w.passed || informational {
		w.response.WriteHeader(status)
		return
	}
	if w.status == 0 {
		w.status = status
	}
}

// Write holds the bytes until the decision is known.
func (w heldWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.passed && (w.decided || w.body.Len()+len(p) > maxHeld) {
		w.passHeld()
	}
	if w.passed {
		return w.response.Write(p)
	}
	return w.body.Write(p)
}

// Flush sends what was written once the decision is known.
func (w heldWriter) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.passed {
		_ = http.NewResponseController(w.response).Flush()
		return
	}
	w.flush = true
	if w.decided {
		w.passHeld()
	}
}

func peerOf(r *http.Request) netip.Addr {
	addrPort, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return addrPort.Addr()
}
