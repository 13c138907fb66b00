// Package sink holds an HTTP answer back until it is decided which status and which headers it has. It knows nothing of
// limits.
package sink

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"

	"github.com/99designs/gqlgen/graphql/handler/transport"

	"github.com/gqlgen-ratelimit/ratelimit/internal/inbound"
)

// Handler gives each request of the handler an [Exchange], and holds its answer back until that is decided. A connection
// that the handler takes over, as a WebSocket does, is its own from then on.
func Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := &held{Exchange: Exchange{response: w, peer: inbound.Peer(r), url: r.URL}, Context: r.Context()}
		x := &h.Exchange
		r = r.WithContext(h) //nolint:contextcheck // It is in that of the request.
		defer x.end()
		next.ServeHTTP(heldWriter{x}, r)
	})
}

// maxHeld bounds what is held back. gqlgen writes at most a preamble before the decision; anything
// larger is no GraphQL answer and passes.
const maxHeld = 64 << 10

type (
	exchangeKey struct{}
	requestKey  struct{}
)

// held is an [Exchange] with the context in which it is found: one piece of memory in the place of two.
type held struct {
	Exchange
	context.Context //nolint:containedctx // It is one.
}

// Value implements context.Context.
func (h *held) Value(key any) any {
	switch key {
	case exchangeKey{}:
		return &h.Exchange
	case requestKey{}:
		return h.Context
	}
	return h.Context.Value(key)
}

// Exchange is one HTTP request with its answer, as the handler and the hooks of gqlgen share it. A WebSocket has one
// for all its operations. It is safe for concurrent use.
type Exchange struct {
	response http.ResponseWriter
	peer     netip.Addr
	url      *url.URL

	mu sync.Mutex
	// left is what the hooks of an operation have left for each other, and whose is what they know the operation by.
	left, whose any
	// payload is what a WebSocket client sent when it connected, as far as an operation has shown it.
	payload transport.InitPayload
	// shown says that an operation has come so far that gqlgen shows the payload, if there is one, and unshown how many have asked before.
	shown   bool
	unshown int
	// passed says that the answer is on its way: status and headers are out of reach.
	passed bool
	// over says that the wrapped handler has returned: what still writes, writes to nobody.
	over bool
	// socket says that the connection was taken over, as a WebSocket does.
	socket  bool
	decided bool
	// failed says that the server has failed.
	failed bool
	// watched says that what is left is an operation that is abandoned when the wrapped handler returns.
	watched bool
	// expose are the headers that are listed for browsers when the answer leaves.
	expose  []string
	flush   bool
	status  int
	refusal int
	body    bytes.Buffer
}

// From returns the exchange that ctx belongs to, nil if its request did not come through the [Handler].
func From(ctx context.Context) *Exchange {
	x, _ := ctx.Value(exchangeKey{}).(*Exchange)
	return x
}

// Request returns the context of the request that ctx belongs to as it came to the [Handler], nil if it did not come through one.
func Request(ctx context.Context) context.Context {
	request, _ := ctx.Value(requestKey{}).(context.Context)
	return request
}

// Socket reports whether an operation with these headers came over a WebSocket: whether the transport has taken over the connection. Where
// nobody knows, because x is nil, it goes by what the headers ask for.
func (x *Exchange) Socket(headers http.Header) bool {
	if x == nil {
		return inbound.Upgrades(headers)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.socket
}

// URL is that of the request, on a WebSocket of the upgrade. It must not be changed.
func (x *Exchange) URL() *url.URL { return x.url }

// Peer is the address of the TCP peer. It is invalid where the listener has none, as on a Unix socket.
func (x *Exchange) Peer() netip.Addr { return x.peer }

// Single reports whether the transport of gqlgen has declared that its answer is one value of JSON. One that streams has declared another
// type by the time in which an operation is decided about, and a WebSocket declares none.
func (x *Exchange) Single() bool {
	media, _, err := mime.ParseMediaType(x.response.Header().Get("Content-Type"))
	return err == nil && !x.Socket(nil) && (media == "application/json" || strings.HasSuffix(media, "+json"))
}

// Remember returns the payload of the connection: the given one, or the last that was given. If it is shown, gqlgen shows it
// from now on, if there is one.
func (x *Exchange) Remember(payload transport.InitPayload, shown bool) transport.InitPayload {
	x.mu.Lock()
	defer x.mu.Unlock()
	if shown {
		x.shown = true
	}
	if payload != nil {
		x.payload = payload
	}
	return x.payload
}

// Leave keeps a value for the later hooks of an operation, which spares the map that the statistics of the operation would
// have for it. It returns false, and keeps nothing, if another operation has left something, or may, as on a WebSocket.
func (x *Exchange) Leave(operation, value any) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.socket || x.whose != nil && x.whose != operation {
		return false
	}
	x.whose, x.left = operation, value
	return true
}

// Left returns what the hooks of the operation have left, nil if they have left nothing here.
func (x *Exchange) Left(operation any) any {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.whose != operation {
		return nil
	}
	return x.left
}

// maxUnshown is how many operations of a WebSocket are taken for those of somebody whose payload is still to be seen. One that
// is valid shows it; who sends none needs no more.
const maxUnshown = 8

// Unshown says whether the payload of the connection may still come, and counts who asks. It is false after a few operations,
// so that one who never sends what is valid does not stay unknown.
func (x *Exchange) Unshown() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.shown || x.unshown >= maxUnshown {
		return false
	}
	x.unshown++
	return true
}

// Decide sets the headers, and the status unless it is zero. Those of the headers in expose that the answer has when it
// leaves are listed for scripts in browsers. It may be called again until the answer is on its way; after that it does
// nothing. The root chooses the status, in response.go.
func (x *Exchange) Decide(status int, expose []string, set func(http.Header)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.passed || x.over {
		return
	}
	x.decided = true
	x.refusal, x.expose = status, expose
	set(x.response.Header())
	if x.flush {
		x.passHeld()
	}
}

// Fail has the answer be an internal server error. It does nothing when the answer is on its way.
func (x *Exchange) Fail() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.failed = x.failed || !x.passed && !x.over
}

// Running is an operation that is to have an answer.
type Running interface {
	// Abandon ends the operation if nobody has asked for its answer, which nobody is going to. It is called when the wrapped handler has returned or panics.
	Abandon()
}

// Watch leaves an operation in the place of what its hooks have left, and has it be abandoned when the wrapped handler returns. Of several it knows the last, and of those of a WebSocket none.
func (x *Exchange) Watch(operation Running) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.socket && !x.over {
		x.left, x.watched = operation, true
	}
}

// end abandons the operation that was left without an answer, and lets go of what is held.
func (x *Exchange) end() {
	x.mu.Lock()
	running, _ := x.left.(Running)
	watched := x.watched
	x.mu.Unlock()
	// It tells the exchange what it came to, so that the lock is not held.
	if watched {
		running.Abandon()
	}
	x.release()
}

// release lets go of what is held when the wrapped handler returns without a decision, and ends the answer.
func (x *Exchange) release() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = true
	if !x.passed && (x.status != 0 || x.body.Len() > 0 || x.flush) {
		x.passHeld()
	}
}

// passHeld commits status and headers and sends what was held. The lock is held.
func (x *Exchange) passHeld() {
	x.passed = true
	exposeHeaders(x.response.Header(), x.expose)
	switch {
	case x.failed:
		x.response.WriteHeader(http.StatusInternalServerError)
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

// errOver is returned to who writes after the wrapped handler has returned.
var errOver = errors.New("ratelimit: the handler has returned, and the answer is over")

// heldWriter is the ResponseWriter that the wrapped handler sees. Its methods are safe for
// concurrent use, because streaming transports write from goroutines of their own. One of those may outlive the handler, as
// the keep-alive of gqlgen's SSE does: net/http takes its buffers back at that moment, and a write would end the process.
type heldWriter struct{ *Exchange }

// Header returns the header map of the answer.
func (w heldWriter) Header() http.Header { return w.response.Header() }

// Unwrap gives http.ResponseController the writer beneath.
func (w heldWriter) Unwrap() http.ResponseWriter { return w.response }

// Hijack implements http.Hijacker. It is how a transport makes a WebSocket of the request.
func (w heldWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.response).Hijack()
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.passed, w.socket = true, true
	}
	return conn, buffered, err
}

// WriteHeader notes the status, or passes it on if the answer is on its way.
func (w heldWriter) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	informational := status < http.StatusOK
	if w.passed || informational {
		w.response.WriteHeader(status)
		// The writer of gin only notes it, and what takes over the connection asks the one that it has.
		if noting, ok := w.response.(interface{ WriteHeaderNow() }); ok && status == http.StatusSwitchingProtocols {
			noting.WriteHeaderNow()
		}
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
	if w.over {
		return 0, errOver
	}
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
	if w.over {
		return
	}
	if w.passed {
		_ = http.NewResponseController(w.response).Flush()
		return
	}
	w.flush = true
	if w.decided {
		w.passHeld()
	}
}
