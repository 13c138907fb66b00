package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/99designs/gqlgen/graphql/handler/lru"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
)

// fixture is a gqlgen server with the extension, over real HTTP, on a store that a test can read.
type fixture struct {
	t        *testing.T
	url      string
	clock    *ratelimittest.Clock
	store    *ratelimittest.Store
	resolver *testserver.Resolver
	server   *handler.Server
	limiter  *ratelimit.Extension
	// client is the only one that the server has.
	client      *http.Client
	connections connections
}

// newFixture starts a server whose header X-Tenant names who pays. configure may change what it
// wants.
func newFixture(t *testing.T, configure func(*ratelimit.Config)) *fixture {
	t.Helper()
	return newFixtureWithin(t, configure)
}

// newFixtureWithin is newFixture with extensions that are used before the one under test, as tracers are.
func newFixtureWithin(t *testing.T, configure func(*ratelimit.Config), outer ...graphql.HandlerExtension) *fixture {
	t.Helper()
	f := &fixture{t: t, clock: &ratelimittest.Clock{}, resolver: &testserver.Resolver{}}
	f.store = ratelimittest.NewStore(f.clock)
	cfg := ratelimit.Config{
		Store:   f.store,
		Policy:  compiledPolicy(t),
		Subject: byTenantHeader,
		Observe: ratelimit.ObserveConfig{Logger: discard},
		// However many calls of one tenant a test has at once.
		Outage: ratelimit.OutageConfig{Instances: 1, MaxConcurrent: ratelimit.None, Clock: f.clock.Now},
	}
	if configure != nil {
		configure(&cfg)
	}
	f.server = newGraphQLServer(f.resolver)
	for _, extension := range outer {
		f.server.Use(extension)
	}
	f.limiter = ratelimit.New(cfg)
	f.server.Use(f.limiter)
	httpServer := httptest.NewUnstartedServer(ratelimit.Handler(f.server))
	httpServer.Listener = f.connections.listener(httpServer.Listener)
	httpServer.Start()
	t.Cleanup(httpServer.Close)
	f.url, f.client = httpServer.URL, f.connections.client()
	t.Cleanup(f.client.CloseIdleConnections)
	return f
}

func newGraphQLServer(resolver *testserver.Resolver) *handler.Server {
	server := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: resolver}))
	server.AddTransport(transport.Websocket{})
	server.AddTransport(transport.SSE{})
	server.AddTransport(transport.MultipartMixed{})
	server.AddTransport(transport.MultipartForm{})
	server.AddTransport(transport.UrlEncodedForm{})
	server.AddTransport(transport.GET{})
	server.AddTransport(transport.POST{})
	server.SetQueryCache(lru.New[*ast.QueryDocument](100))
	server.Use(extension.Introspection{})
	return server
}

func byTenantHeader(_ context.Context, r *ratelimit.Request) (ratelimit.Subject, error) {
	tenant := r.Header.Get("X-Tenant")
	if tenant == "" {
		tenant = r.InitPayload.GetString("tenant")
	}
	return ratelimit.Subject{Tenant: tenant, Team: r.Header.Get("X-Team"), User: r.Header.Get("X-User")}, nil
}

// request is one operation that a test sends.
type request struct {
	Query     string
	Variables map[string]any
	Tenant    string
	Team      string
	User      string
	Key       string
	// Extensions are those of the operation over HTTP.
	Extensions map[string]any
	// Cost is what the client asks about the price: full, report or validate.
	Cost   string
	Header http.Header
}

func (r request) tenant() string {
	if r.Tenant == "" {
		return "free"
	}
	return r.Tenant
}

func (r request) setHeaders(header http.Header) {
	for name, values := range r.Header {
		header[name] = values
	}
	header.Set("X-Tenant", r.tenant())
	if r.Team != "" {
		header.Set("X-Team", r.Team)
	}
	if r.User != "" {
		header.Set("X-User", r.User)
	}
	if r.Key != "" {
		header.Set("Idempotency-Key", r.Key)
	}
	if r.Cost != "" {
		header.Set("GraphQL-Cost", r.Cost)
	}
}

func (r request) body() map[string]any {
	body := map[string]any{"query": r.Query}
	if r.Variables != nil {
		body["variables"] = r.Variables
	}
	if r.Extensions != nil {
		body["extensions"] = r.Extensions
	}
	return body
}

// reply is what came back over HTTP.
type reply struct {
	Status int
	Header http.Header
	Body   string
}

// errorCode returns errors[0].extensions.code, empty if there is none.
func (r reply) errorCode(t *testing.T) string {
	t.Helper()
	var body struct {
		Errors []struct {
			Extensions struct{ Code string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(r.Body), &body), r.Body)
	if len(body.Errors) == 0 {
		return ""
	}
	return body.Errors[0].Extensions.Code
}

// rateLimit returns extensions.rateLimit.
func (r reply) rateLimit(t *testing.T) map[string]any {
	t.Helper()
	var body struct {
		Extensions struct {
			RateLimit map[string]any `json:"rateLimit"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(r.Body), &body), r.Body)
	return body.Extensions.RateLimit
}

func (f *fixture) post(r request) reply {
	f.t.Helper()
	return f.do(http.MethodPost, f.url, r, "application/json")
}

func (f *fixture) get(r request) reply {
	f.t.Helper()
	values := url.Values{"query": {r.Query}}
	if r.Variables != nil {
		encoded, err := json.Marshal(r.Variables)
		require.NoError(f.t, err)
		values.Set("variables", string(encoded))
	}
	return f.do(http.MethodGet, f.url+"?"+values.Encode(), r, "application/json")
}

func (f *fixture) sse(r request) reply {
	f.t.Helper()
	return f.do(http.MethodPost, f.url, r, "text/event-stream")
}

func (f *fixture) multipartMixed(r request) reply {
	f.t.Helper()
	return f.do(http.MethodPost, f.url, r, "multipart/mixed")
}

func (f *fixture) do(method, address string, r request, accept string) reply {
	f.t.Helper()
	var body io.Reader = http.NoBody
	if method == http.MethodPost {
		encoded, err := json.Marshal(r.body())
		require.NoError(f.t, err)
		body = bytes.NewReader(encoded)
	}
	return f.exchange(method, address, r, accept, "application/json", body)
}

// exchange sends a body of any type.
func (f *fixture) exchange(method, address string, r request, accept, contentType string, body io.Reader) reply {
	f.t.Helper()
	httpRequest, err := http.NewRequestWithContext(f.t.Context(), method, address, body)
	require.NoError(f.t, err)
	httpRequest.Header.Set("Content-Type", contentType)
	httpRequest.Header.Set("Accept", accept)
	r.setHeaders(httpRequest.Header)
	response, err := f.client.Do(httpRequest)
	if err != nil && f.connections.left.Load() {
		return reply{}
	}
	require.NoError(f.t, err)
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil && f.connections.left.Load() {
		return reply{}
	}
	require.NoError(f.t, err)
	return reply{Status: response.StatusCode, Header: response.Header, Body: string(content)}
}

// The protocols of a WebSocket: the current one, and the one that came before it.
const (
	transportWS = "graphql-transport-ws"
	legacyWS    = "graphql-ws"
)

// socket is a WebSocket connection that has been acknowledged.
type socket struct {
	t        *testing.T
	conn     *websocket.Conn
	protocol string
	left     *atomic.Bool
}

func (f *fixture) dial(tenant string, header http.Header) *socket {
	f.t.Helper()
	return f.dialAs(transportWS, tenant, header)
}

func (f *fixture) dialAs(protocol, tenant string, header http.Header) *socket {
	f.t.Helper()
	conn, response, err := websocket.Dial(f.t.Context(), "ws"+strings.TrimPrefix(f.url, "http"),
		&websocket.DialOptions{HTTPClient: f.client, Subprotocols: []string{protocol}, HTTPHeader: header})
	require.NoError(f.t, err)
	if response.Body != nil {
		_ = response.Body.Close()
	}
	s := &socket{t: f.t, conn: conn, protocol: protocol, left: &f.connections.left}
	f.t.Cleanup(func() { _ = conn.CloseNow() })
	s.send(map[string]any{"type": "connection_init", "payload": map[string]any{"tenant": tenant}})
	require.Contains(f.t, s.receive(), "connection_ack")
	return s
}

func (s *socket) send(message any) {
	s.t.Helper()
	encoded, err := json.Marshal(message)
	require.NoError(s.t, err)
	require.NoError(s.t, s.conn.Write(s.t.Context(), websocket.MessageText, encoded))
}

// receive returns the next message, nothing when the client has left.
func (s *socket) receive() string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Second)
	defer cancel()
	_, message, err := s.conn.Read(ctx)
	if err != nil && s.left.Load() {
		return ""
	}
	require.NoError(s.t, err)
	return string(message)
}

// start sends one operation.
func (s *socket) start(id string, r request) {
	s.t.Helper()
	payload, extensions := r.body(), map[string]any{}
	if r.Key != "" {
		extensions["idempotencyKey"] = r.Key
	}
	if r.Cost != "" {
		extensions["cost"] = r.Cost
	}
	if len(extensions) > 0 {
		payload["extensions"] = extensions
	}
	kind := "subscribe"
	if s.protocol == legacyWS {
		kind = "start"
	}
	s.send(map[string]any{"type": kind, "id": id, "payload": payload})
}

// keptAlive finds the messages that say nothing but that the connection is there.
var keptAlive = regexp.MustCompile(`"type":"(ping|pong|ka)"`)

// run sends one operation and returns its messages up to and including complete, which gqlgen sends
// after an error as well.
func (s *socket) run(id string, r request) []string {
	s.t.Helper()
	s.start(id, r)
	var messages []string
	for {
		message := s.receive()
		if keptAlive.MatchString(message) {
			continue
		}
		messages = append(messages, message)
		if message == "" || strings.Contains(message, `"type":"complete"`) {
			return messages
		}
	}
}

// inProcess is a server without sockets, for tests that run in a bubble of synctest.
type inProcess struct {
	t        *testing.T
	server   *handler.Server
	handler  http.Handler
	resolver *testserver.Resolver
	// extension is the one in use.
	extension *ratelimit.Extension
}

// see shows the decisions about operations of the server that are neither replayed nor only priced.
func see(server *handler.Server, decided func(ratelimit.Decision)) {
	server.AroundOperations(func(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
		if d, ok := ratelimit.FromContext(ctx); ok {
			decided(d)
		}
		return next(ctx)
	})
}

func newInProcess(t *testing.T, store bucket.Store, configure func(*ratelimit.Config)) *inProcess {
	t.Helper()
	cfg := ratelimit.Config{
		Store: store, Policy: compiledPolicy(t), Subject: byTenantHeader, Observe: ratelimit.ObserveConfig{Logger: discard},
		Outage: ratelimit.OutageConfig{MaxConcurrent: ratelimit.None},
	}
	if configure != nil {
		configure(&cfg)
	}
	resolver := &testserver.Resolver{}
	server := newGraphQLServer(resolver)
	extension := ratelimit.New(cfg)
	server.Use(extension)
	return &inProcess{t: t, server: server, handler: ratelimit.Handler(server), resolver: resolver, extension: extension}
}

func (p *inProcess) post(r request) reply {
	encoded, err := json.Marshal(r.body())
	if err != nil {
		p.t.Error(err)
	}
	httpRequest := httptest.NewRequestWithContext(p.t.Context(), http.MethodPost, "/query", bytes.NewReader(encoded))
	httpRequest.Header.Set("Content-Type", "application/json")
	r.setHeaders(httpRequest.Header)
	recorder := httptest.NewRecorder()
	p.handler.ServeHTTP(recorder, httpRequest)
	return reply{Status: recorder.Code, Header: recorder.Header(), Body: recorder.Body.String()}
}
