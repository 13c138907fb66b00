package edge

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/jsonvalue"
	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/occupancy"
	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/websocket"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// sockets bounds WebSockets and what runs on them. It is safe for concurrent use.
type sockets struct {
	cfg     *ConnectionConfig
	budgets *budgets
	values  *values
	// open counts WebSockets, and running what runs on them.
	open, running *occupancy.Room
	// numbers are those of WebSockets.
	numbers atomic.Uint64
}

func newSockets(cfg *Config, budgets *budgets, values *values) *sockets {
	return &sockets{
		cfg: &cfg.Connection, budgets: budgets, values: values,
		open:    occupancy.New(cfg.Connection.All, cfg.Address.Connections),
		running: occupancy.New(cfg.Connection.AllOperations, cfg.Address.Operations),
	}
}

// enter lets a WebSocket in, which leave has to be told of when it has ended.
func (s *sockets) enter(w http.ResponseWriter, r *http.Request, a *arrival) *refusal {
	if !websocket.IsHandshake(r) {
		return unreadable(http.StatusBadRequest, LayerConnection, "this is no handshake of a WebSocket (RFC 6455, section 4.2.1)")
	}
	if !websocket.Hijacks(w) {
		return unreadable(http.StatusNotImplemented, LayerConnection, "a middleware of this server lets no WebSocket through")
	}
	refusal := unlessEntered(s.open.Enter(a.client, a.site, 1),
		"the server has too many WebSockets", "there are too many WebSockets of this address: close one first")
	if refusal == nil {
		a.socket = &socket{name: "connection " + strconv.FormatUint(s.numbers.Add(1), 10)}
	}
	return refusal
}

func (s *sockets) leave(a *arrival) { s.open.Leave(a.client, a.site, 1) }

// operation takes an operation that has arrived from the limits.
func (s *sockets) operation(ctx context.Context, a *arrival) *refusal {
	if refusal := s.budgets.take(ctx, a, bucket.Requests, 1); refusal != nil {
		return refusal
	}
	if refusal := s.budgets.take(ctx, a, Bytes, a.socket.unpaid.Swap(0)); refusal != nil {
		return refusal
	}
	return s.budgets.takeOperation(ctx, a)
}

// begin counts an operation that runs until ctx ends, which gqlgen cancels with each operation of a WebSocket.
func (s *sockets) begin(ctx context.Context, a *arrival) *refusal {
	own := a.socket
	own.mu.Lock()
	defer own.mu.Unlock()
	if own.running >= bounded(s.cfg.Operations) {
		return tooMany(LayerConnection, "too many operations of this connection run at once: end one first")
	}
	if refusal := unlessEntered(s.running.Enter(a.client, a.site, 1),
		"too many operations run on the WebSockets of the server", "too many operations run on the WebSockets of this address"); refusal != nil {
		return refusal
	}
	operation := graphql.GetOperationContext(ctx)
	var t jsonvalue.Tally
	t.Members(operation.Variables, math.MaxInt)
	t.Members(operation.Extensions, math.MaxInt)
	if refusal := s.values.hold(a, t.Held()); refusal != nil {
		s.running.Leave(a.client, a.site, 1)
		return refusal
	}
	own.running++
	context.AfterFunc(ctx, func() {
		s.running.Leave(a.client, a.site, 1)
		s.values.letGo(a, t.Held())
		own.mu.Lock()
		defer own.mu.Unlock()
		own.running--
	})
	return nil
}

// meter has the bytes of a WebSocket paid for.
type meter struct {
	sockets *sockets
	arrival *arrival
}

var _ websocket.Meter = (*meter)(nil)

// Ahead implements websocket.Meter.
func (m *meter) Ahead(n, extra int) {
	m.arrival.socket.unpaid.Add(int64(n + extra))
	m.arrival.socket.unanswered.Add(int64(n))
}

// errInitTooLarge ends a connection that says too much before it was answered.
var errInitTooLarge = errors.New("edge: too many bytes before the first answer on a WebSocket")

// Read implements websocket.Meter. It ends the connection when its address has no bytes left.
func (m *meter) Read(n, extra int) error {
	if !m.pay(n + extra) {
		return errNoBytesLeft
	}
	if !m.introduces(n) {
		return errInitTooLarge
	}
	return nil
}

// Answered implements websocket.Meter.
func (m *meter) Answered() { m.arrival.socket.answered.Store(true) }

// pay counts bytes that were read, and takes them from the limits from time to time, so that messages which are no
// operations are paid as well. It returns false when there are no bytes left.
func (m *meter) pay(n int) bool {
	own := m.arrival.socket
	if own.unpaid.Add(int64(n)) < step {
		return true
	}
	budgets, ctx := m.sockets.budgets, context.Background()
	refusal := budgets.take(ctx, m.arrival, Bytes, own.unpaid.Swap(0))
	if refusal != nil {
		budgets.reporter.told(ctx, m.arrival, refusal, bucket.Enforce)
	}
	return refusal == nil
}

// introduces counts bytes that were read before the server has answered, and returns false when they are too many.
func (m *meter) introduces(n int) bool {
	own, most := m.arrival.socket, m.sockets.cfg.MaxInit
	if most == None || own.answered.Load() || own.unanswered.Add(int64(n)) <= int64(most) {
		return true
	}
	m.sockets.budgets.reporter.told(context.Background(), m.arrival, refused(ratelimitclient.CodePayloadTooLarge, LayerConnection,
		fmt.Sprintf("what a WebSocket begins with may have %d bytes", most), 0), bucket.Enforce)
	return false
}
