package edge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/inbound"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// withoutUpgrade returns the request without an upgrade to something that is no WebSocket, which a server may ignore (RFC
// 9110, section 7.8). gqlgen would take it for the handshake of one.
func withoutUpgrade(r *http.Request) *http.Request {
	plain := new(http.Request)
	*plain = *r
	plain.Header = r.Header.Clone()
	plain.Header.Del("Upgrade")
	return plain
}

// isHandshake says whether the request can become a WebSocket (RFC 6455, section 4.2.1).
func isHandshake(r *http.Request) bool {
	keys := r.Header["Sec-Websocket-Key"]
	if r.Method != http.MethodGet || r.ProtoMajor != 1 || !r.ProtoAtLeast(1, 1) || len(keys) != 1 ||
		!inbound.HasToken(r.Header, "Connection", "upgrade") || r.Header.Get("Sec-Websocket-Version") != "13" {
		return false
	}
	nonce, err := base64.StdEncoding.DecodeString(strings.TrimSpace(keys[0]))
	return err == nil && len(nonce) == 16
}

// hijacks says whether a connection can be taken over from the writer, as far as that can be known before.
func hijacks(w http.ResponseWriter) bool {
	for {
		switch beneath := w.(type) {
		case http.Hijacker:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = beneath.Unwrap()
		default:
			return false
		}
	}
}

// upgrade lets a WebSocket in, for as long as the handler runs.
func (d *Door) upgrade(w http.ResponseWriter, r *http.Request, a *arrival, next http.Handler) {
	if !isHandshake(r) {
		d.refuse(w, r, a, unreadable(http.StatusBadRequest, LayerConnection, "this is no handshake of a WebSocket (RFC 6455, section 4.2.1)"))
		return
	}
	if !hijacks(w) {
		d.refuse(w, r, a, unreadable(http.StatusNotImplemented, LayerConnection, "a middleware of this server lets no WebSocket through"))
		return
	}
	switch d.sockets.enter(a.client, a.site, 1) {
	case roomless:
		d.refuse(w, r, a, overloaded("the server has too many WebSockets"))
		return
	case crowded:
		d.refuse(w, r, a, tooMany(LayerAddress, "there are too many WebSockets of this address: close one first"))
		return
	default:
	}
	defer d.sockets.leave(a.client, a.site, 1)
	defer d.documents.abandon(a)
	a.socket = &socket{arrival: a, name: "connection " + strconv.FormatUint(d.connections.Add(1), 10)}
	next.ServeHTTP(&upgradeWriter{ResponseWriter: w, socket: a.socket}, r)
}

// socket is a WebSocket.
type socket struct {
	arrival *arrival
	// name is that of its budget.
	name string
	// unpaid is how many bytes were read that were not taken from a limit.
	unpaid atomic.Int64
	// unanswered is how many bytes were read before the server answered, and answered says that it has.
	unanswered atomic.Int64
	answered   atomic.Bool

	mu      sync.Mutex
	running int
}

// operation takes an operation that has arrived from the limits.
func (s *socket) operation(ctx context.Context) *refusal {
	a := s.arrival
	if refusal := a.take(ctx, bucket.Requests, 1); refusal != nil {
		return refusal
	}
	if refusal := a.take(ctx, Bytes, s.unpaid.Swap(0)); refusal != nil {
		return refusal
	}
	return a.door.take(ctx, a, s.name, LayerConnection, a.door.connection, bucket.Requests, 1)
}

// begin counts an operation that runs until ctx ends, which gqlgen cancels with each operation of a WebSocket.
func (s *socket) begin(ctx context.Context) *refusal {
	a := s.arrival
	most := a.door.cfg.Connection.Operations
	s.mu.Lock()
	defer s.mu.Unlock()
	if most != None && s.running >= most {
		return tooMany(LayerConnection, "too many operations of this connection run at once: end one first")
	}
	switch a.door.running.enter(a.client, a.site, 1) {
	case roomless:
		return overloaded("too many operations run on the WebSockets of the server")
	case crowded:
		return tooMany(LayerAddress, "too many operations run on the WebSockets of this address")
	default:
	}
	operation := graphql.GetOperationContext(ctx)
	var t tally
	t.members(operation.Variables, None)
	t.members(operation.Extensions, None)
	if refusal := a.hold(t.held()); refusal != nil {
		a.door.running.leave(a.client, a.site, 1)
		return refusal
	}
	s.running++
	context.AfterFunc(ctx, func() {
		a.door.running.leave(a.client, a.site, 1)
		a.door.held.leave(a.client, a.site, t.held())
		s.mu.Lock()
		defer s.mu.Unlock()
		s.running--
	})
	return nil
}

// pay counts bytes that were read, and takes them from the limits from time to time, so that messages which are no
// operations are paid as well. It returns false when there are no bytes left.
func (s *socket) pay(n int) bool {
	if s.unpaid.Add(int64(n)) < step {
		return true
	}
	a, ctx := s.arrival, context.Background()
	refusal := a.take(ctx, Bytes, s.unpaid.Swap(0))
	if refusal != nil {
		a.door.reporter.told(ctx, a, refusal, bucket.Enforce)
	}
	return refusal == nil
}

// introduces counts bytes that were read before the server has answered, and returns false when they are too many.
func (s *socket) introduces(n int) bool {
	a := s.arrival
	most := a.door.cfg.Connection.MaxInit
	if most == None || s.answered.Load() || s.unanswered.Add(int64(n)) <= int64(most) {
		return true
	}
	a.door.reporter.told(context.Background(), a, refused(ratelimitclient.CodePayloadTooLarge, LayerConnection,
		fmt.Sprintf("what a WebSocket begins with may have %d bytes", most), 0), bucket.Enforce)
	return false
}

// upgradeWriter counts what is read of a connection that its handler takes over.
type upgradeWriter struct {
	http.ResponseWriter

	socket *socket
}

// Unwrap gives http.ResponseController the writer beneath.
func (w *upgradeWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader passes the status on. Writers that only note it are told to write it, as WebSocket libraries tell them if
// they see them.
func (w *upgradeWriter) WriteHeader(status int) {
	w.ResponseWriter.WriteHeader(status)
	if noting, ok := w.ResponseWriter.(interface{ WriteHeaderNow() }); ok && status == http.StatusSwitchingProtocols {
		noting.WriteHeaderNow()
	}
}

// Hijack implements http.Hijacker.
func (w *upgradeWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	counted := &countedConn{Conn: conn, socket: w.socket}
	ahead, _ := buffered.Peek(buffered.Reader.Buffered()) // which it has
	w.socket.unpaid.Add(int64(len(ahead) + counted.frames.extra(ahead)))
	buffered.Reader.Reset(io.MultiReader(bytes.NewReader(bytes.Clone(ahead)), counted))
	// WebSocket libraries look for what is buffered, and may read the rest of the connection itself.
	_, _ = buffered.Peek(len(ahead))
	if buffered.Writer.Buffered() == 0 {
		buffered.Writer.Reset(counted)
	}
	w.socket.unanswered.Add(int64(len(ahead)))
	return counted, buffered, nil
}

// countedConn counts what is read of a connection.
type countedConn struct {
	net.Conn

	socket *socket
	// frames are of what was read, which one goroutine does at a time.
	frames frames
}

// errInitTooLarge ends a connection that says too much before it was answered.
var errInitTooLarge = errors.New("edge: too many bytes before the first answer on a WebSocket")

// Read ends the connection when its address has no bytes left.
func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.socket.pay(n + c.frames.extra(p[:n])) {
		return 0, errNoBytesLeft
	}
	if !c.socket.introduces(n) {
		return 0, errInitTooLarge
	}
	return n, err
}

// Write notes the first message, which no client receives before it has introduced itself. The answer to the handshake begins
// with another byte, and so do pings, pongs and the end.
func (c *countedConn) Write(p []byte) (int, error) {
	if len(p) > 0 && p[0]&opcodeBits == textFrame {
		c.socket.answered.Store(true)
	}
	return c.Conn.Write(p)
}
