package edge_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/edge"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// lines is what servers log. It may be written to by several goroutines at once.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// served is a GraphQL server behind a door.
type served struct {
	*httptest.Server

	resolver *testserver.Resolver
	errors   *lines
}

func serve(t *testing.T, cfg edge.Config, configure func(*httptest.Server)) *served {
	t.Helper()
	s := &served{resolver: &testserver.Resolver{}, errors: &lines{}}
	srv := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: s.resolver}))
	srv.AddTransport(transport.Websocket{})
	srv.AddTransport(transport.SSE{})
	srv.AddTransport(transport.MultipartMixed{})
	srv.AddTransport(transport.MultipartForm{})
	srv.AddTransport(transport.GET{})
	srv.AddTransport(transport.POST{})
	door := newDoor(t, cfg)
	srv.Use(door)
	s.Server = httptest.NewUnstartedServer(door.Handler(ratelimit.Handler(srv)))
	s.Config.ErrorLog = log.New(s.errors, "", 0)
	if configure != nil {
		configure(s.Server)
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

func (s *served) post(t *testing.T, body io.Reader, headers ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, body)
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := s.Client().Do(r)
	require.NoError(t, err)
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return answer{status: response.StatusCode, header: response.Header, body: string(text)}
	}
	return read(t, response)
}

const document = `{"query":"{ me { id } }"}`

// unsized hides the length of a reader, so that it is sent in chunks.
type unsized struct{ io.Reader }

func TestAServerBehindADoorAnswersOverHTTP1AndHTTP2(t *testing.T) {
	t.Parallel()
	for name, configure := range map[string]func(*httptest.Server){
		"HTTP/1": nil,
		"HTTP/2": func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, edge.Config{Request: edge.RequestConfig{MaxBody: 1000}}, configure)
			for range 2 {
				require.JSONEq(t, `{"data":{"me":{"id":"1"}}}`, s.post(t, strings.NewReader(document)).body)
				require.JSONEq(t, `{"data":{"me":{"id":"1"}}}`, s.post(t, unsized{strings.NewReader(document)}).body)
				got := s.post(t, unsized{strings.NewReader(document + strings.Repeat(" ", 2000))})
				require.Equal(t, http.StatusRequestEntityTooLarge, got.status)
				require.Equal(t, ratelimitclient.CodePayloadTooLarge, got.refusal.Code)
				require.Equal(t, http.StatusRequestEntityTooLarge, s.post(t, strings.NewReader(strings.Repeat(" ", 2000))).status)
			}
			events := s.post(t, strings.NewReader(`{"query":"subscription { ticks(count: 2) }"}`), "Accept", "text/event-stream")
			require.Equal(t, http.StatusOK, events.status)
			require.Equal(t, 2, strings.Count(events.body, `"ticks"`), events.body)
			require.Empty(t, s.errors.String())
		})
	}
}

func TestTheDocumentOfAGETIsBounded(t *testing.T) {
	t.Parallel()
	s := serve(t, edge.Config{}, nil)
	get := func(query string) answer {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"?query="+query, http.NoBody)
		require.NoError(t, err)
		response, err := s.Client().Do(r)
		require.NoError(t, err)
		return read(t, response)
	}
	require.Equal(t, http.StatusOK, get("%7Bme%7Bid%7D%7D").status)
	require.Equal(t, ratelimitclient.CodePayloadTooLarge, get("%7Bme%7Bid%7D%7D%23"+strings.Repeat("x", 1_000_000)).refusal.Code)
	require.Equal(t, int64(1), s.resolver.Asked.Load())
}

// TestNothingThatAClientSendsReachesTheLogs has what gqlgen and net/http write lines about. The log of the process is one for all
// tests, which is why it does not run beside them.
func TestNothingThatAClientSendsReachesTheLogs(t *testing.T) { //nolint:paralleltest // it replaces the log of the process
	process := &lines{}
	before := log.Writer()
	log.SetOutput(process)
	defer log.SetOutput(before)
	s := serve(t, edge.Config{Request: edge.RequestConfig{MaxBody: 1000}}, nil)

	for _, accept := range []string{"text/event-stream", "multipart/mixed"} {
		for _, text := range []string{`{"query": secret`, `["secret"]`, `{"query": 5, "variables": {"a": "secret"}}`, "0\nERROR a forged line, secret"} {
			got := s.post(t, strings.NewReader(text), "Accept", accept)
			require.Equal(t, http.StatusBadRequest, got.status, "%s: %s", accept, text)
			require.NotContains(t, got.body, "secret")
		}
	}
	for name, value := range map[string]string{"Upgrade": "h2c", "Connection": "x"} {
		require.Equal(t, http.StatusOK, s.post(t, strings.NewReader(document), name, value).status, name)
	}
	broken := s.post(t, strings.NewReader(document), "Upgrade", "websocket", "Connection", "Upgrade")
	require.Equal(t, http.StatusBadRequest, broken.status)
	require.Contains(t, broken.body, `"layer":"connection"`)
	require.Equal(t, http.StatusRequestEntityTooLarge, s.post(t, strings.NewReader(strings.Repeat(" ", 1001))).status)
	require.Empty(t, process.String())
	require.Empty(t, s.errors.String())
}

// socket is a client of graphql-transport-ws.
type socket struct {
	t    *testing.T
	conn *websocket.Conn
}

// dial connects, and returns nil and the answer if there is no WebSocket.
func (s *served) dial(t *testing.T, upgrade string) (*socket, answer) {
	t.Helper()
	client := &http.Client{Transport: upgradesTo{upgrade, s.Client().Transport}}
	conn, response, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(s.URL, "http"),
		&websocket.DialOptions{HTTPClient: client, Subprotocols: []string{"graphql-transport-ws"}})
	if err != nil {
		require.NotNil(t, response, err)
		return nil, read(t, response)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	c := &socket{t, conn}
	c.send(map[string]any{"type": "connection_init"})
	require.Contains(t, c.receive(), "connection_ack")
	return c, answer{}
}

// upgradesTo sends another Upgrade than the client does.
type upgradesTo struct {
	upgrade string
	http.RoundTripper
}

func (u upgradesTo) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Upgrade", u.upgrade)
	return u.RoundTripper.RoundTrip(r)
}

func (c *socket) send(message any) {
	c.t.Helper()
	text, err := json.Marshal(message)
	require.NoError(c.t, err)
	require.NoError(c.t, c.conn.Write(c.t.Context(), websocket.MessageText, text))
}

func (c *socket) receive() string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	_, text, err := c.conn.Read(ctx)
	require.NoError(c.t, err)
	return string(text)
}

func (c *socket) start(id, query string) {
	c.t.Helper()
	c.send(map[string]any{"id": id, "type": "subscribe", "payload": map[string]any{"query": query}})
}

// run starts a query and returns its first message, after it has ended.
func (c *socket) run(id string) string {
	c.t.Helper()
	c.start(id, "{ me { id } }")
	first := c.receive()
	for last := first; !strings.Contains(last, `"complete"`) && !strings.Contains(last, `"error"`); {
		last = c.receive()
	}
	return first
}

func TestAnOperationOnAWebSocketIsARequestOfItsAddress(t *testing.T) {
	t.Parallel()
	for _, upgrade := range []string{"websocket", "foo, WebSocket"} {
		s := serve(t, edge.Config{Address: edge.AddressConfig{Limits: requests(4)}}, nil)
		c, _ := s.dial(t, upgrade)
		for _, id := range []string{"1", "2", "3"} {
			require.Contains(t, c.run(id), `"me"`, upgrade)
		}
		refused := c.run("4")
		require.Contains(t, refused, `"code":"RATE_LIMITED"`)
		require.Contains(t, refused, `"layer":"address"`)
		require.Equal(t, http.StatusTooManyRequests, s.post(t, strings.NewReader(document)).status, "it is one budget")
		require.Equal(t, int64(3), s.resolver.Asked.Load())
	}
}

func TestAWebSocketHasItsOperationsASecond(t *testing.T) {
	t.Parallel()
	s := serve(t, edge.Config{Connection: edge.ConnectionConfig{Limits: requests(1)}}, nil)
	c, _ := s.dial(t, "websocket")
	require.Contains(t, c.run("1"), `"me"`)
	require.Contains(t, c.run("2"), `"layer":"connection"`)
	other, _ := s.dial(t, "websocket")
	require.Contains(t, other.run("1"), `"me"`)
}

func TestAWebSocketHasItsOperationsAtOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, edge.Config{Connection: edge.ConnectionConfig{Operations: 2}}, nil)
	s.resolver.Tick = make(chan int)
	c, _ := s.dial(t, "websocket")
	const subscription = "subscription { ticks(count: 100) }"
	for _, id := range []string{"1", "2"} {
		c.start(id, subscription)
	}
	require.Eventually(t, func() bool { return s.resolver.Asked.Load() == 2 }, time.Minute, time.Millisecond)
	refused := c.run("3")
	require.Contains(t, refused, `"layer":"connection"`)
	require.Contains(t, refused, `"code":"RATE_LIMITED"`)
	c.send(map[string]any{"id": "1", "type": "complete"})
	require.Contains(t, c.receive(), `"id":"1"`)
	require.Eventually(t, func() bool { return strings.Contains(c.run("4"), `"me"`) }, time.Minute, time.Millisecond,
		"what has ended makes room")
}

func TestAnAddressHasItsWebSocketsAtOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, edge.Config{Address: edge.AddressConfig{Connections: 2}, Connection: edge.ConnectionConfig{All: 100}}, nil)
	first, _ := s.dial(t, "websocket")
	second, _ := s.dial(t, "foo, websocket")
	require.NotNil(t, second)
	third, got := s.dial(t, "websocket")
	require.Nil(t, third)
	require.Equal(t, http.StatusTooManyRequests, got.status)
	require.Equal(t, "there are too many WebSockets of this address: close one first", got.refusal.Message)
	require.Equal(t, http.StatusOK, s.post(t, strings.NewReader(document)).status, "they are no requests under way")
	require.NoError(t, first.conn.Close(websocket.StatusNormalClosure, ""))
	require.Eventually(t, func() bool { again, _ := s.dial(t, "websocket"); return again != nil }, time.Minute, time.Millisecond)
}

// TestWhatComesWithTheHandshakeIsRead sends a message before it is told that there is a WebSocket.
func TestWhatComesWithTheHandshakeIsRead(t *testing.T) {
	t.Parallel()
	s := serve(t, edge.Config{}, nil)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	message := `{"type":"connection_init"}`
	// A frame of text whose mask changes nothing (RFC 6455, section 5.2).
	frame := append([]byte{0x81, 0x80 | byte(len(message)), 0, 0, 0, 0}, message...)
	_, err = conn.Write(append([]byte("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n"), frame...))
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusSwitchingProtocols, response.StatusCode)
	_, err = reader.ReadString('{')
	require.NoError(t, err)
	rest, err := reader.ReadString('}')
	require.NoError(t, err)
	require.Contains(t, rest, "connection_ack")
}

// noting is a writer that only notes a status, as that of gin does.
type noting struct {
	http.ResponseWriter

	status, written int
}

func (n *noting) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, http.ErrNotSupported }

func (n *noting) WriteHeader(status int) { n.status = status }
func (n *noting) WriteHeaderNow()        { n.written = n.status }

func TestAWriterThatOnlyNotesItsStatusIsToldToWriteIt(t *testing.T) {
	t.Parallel()
	h := newDoor(t, edge.Config{}).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusSwitchingProtocols)
	}))
	w := &noting{ResponseWriter: httptest.NewRecorder()}
	h.ServeHTTP(w, handshake(t))
	require.Equal(t, http.StatusSwitchingProtocols, w.written)
}

func handshake(t *testing.T) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/query", http.NoBody)
	for name, value := range map[string]string{
		"Connection": "keep-alive, Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
	} {
		r.Header.Set(name, value)
	}
	return r
}

// TestAWriterThatGivesNoConnectionAwayIsToldBeforeTheAnswerBegins has that of http.TimeoutHandler, among others.
func TestAWriterThatGivesNoConnectionAwayIsToldBeforeTheAnswerBegins(t *testing.T) {
	t.Parallel()
	next := &passed{}
	w := httptest.NewRecorder()
	http.TimeoutHandler(newDoor(t, edge.Config{}).Handler(next), time.Minute, "").ServeHTTP(w, handshake(t))
	require.Equal(t, http.StatusNotImplemented, w.Code)
	require.Empty(t, next.bodies)
}
