package frameworks_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/edge"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

var update = flag.Bool("update", false, "write what was seen into docs/guide/redis.md")

// patience is how long nothing has to come until the table says that nothing comes.
const patience = 5 * time.Second

// TestMain runs all mountings at once: they wait, and compute nothing.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// api is a server with limits, and what it has seen of its requests.
type api struct {
	handler http.Handler
	tick    chan int
	// entered is told that a mutation runs, and left how it ended: whether it noticed that its client has gone.
	entered chan struct{}
	left    chan bool
	// inContext, inLocals and address say whether a request had the values of the middleware, and an address.
	inContext, inLocals, address atomic.Bool
}

func newAPI(t *testing.T) *api {
	t.Helper()
	a := &api{tick: make(chan int), entered: make(chan struct{}, 1), left: make(chan bool, 1)}
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	resolver := &testserver.Resolver{Tick: a.tick, BeforeCreate: func(ctx context.Context) {
		a.entered <- struct{}{}
		select {
		case <-ctx.Done():
			a.left <- true
		case <-time.After(patience):
			a.left <- false
		case <-ended:
		}
	}}
	policy, err := tiers.Compile(tiers.Policy{Default: "free", Tiers: map[string]tiers.Tier{
		"free": {Limits: map[string]*tiers.Limit{"minute": {Capacity: 100, Per: tiers.Minute}}},
	}})
	require.NoError(t, err)
	srv := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: resolver}))
	srv.AddTransport(transport.Websocket{})
	srv.AddTransport(transport.SSE{})
	srv.AddTransport(transport.POST{})
	door, err := edge.New(edge.Config{Observe: edge.ObserveConfig{Logger: slog.New(slog.DiscardHandler)}})
	require.NoError(t, err)
	srv.Use(door)
	srv.Use(ratelimit.New(ratelimit.Config{
		Store: bucket.NewMemory(bucket.MemoryConfig{}), Policy: policy,
		Subject: func(ctx context.Context, r *ratelimit.Request) (ratelimit.Subject, error) {
			a.inContext.Store(ctx.Value(contextKey{}) != nil)
			a.inLocals.Store(ctx.Value(localKey{}) != nil)
			a.address.Store(r.Peer.IsLoopback())
			return ratelimit.Subject{Tenant: "tenant-" + r.Header.Get("X-Tenant")}, nil
		},
	}))
	a.handler = door.Handler(ratelimit.Handler(srv))
	return a
}

// TestThePageSaysWhatFrameworksDo writes or compares the table.
func TestThePageSaysWhatFrameworksDo(t *testing.T) {
	t.Parallel()
	rows := make([]string, len(mountings))
	t.Run("mountings", func(t *testing.T) {
		t.Parallel()
		for i, m := range mountings {
			t.Run(strings.Trim(m.title, "`"), func(t *testing.T) {
				t.Parallel()
				a := newAPI(t)
				addr := m.serve(t, a.handler)
				refusal := a.refusal(t, addr)
				values, address := a.values(), yes(a.address.Load())
				rows[i] = "| " + strings.Join([]string{
					m.title, refusal, a.stream(t, addr), a.leaving(t, addr), a.socket(t, addr), values, address,
				}, " | ") + " |\n"
			})
		}
	})
	t.Cleanup(func() {
		if !t.Failed() {
			requireTable(t, strings.Join(rows, ""))
		}
	})
}

// requireTable compares the table with that of the page, or writes it there.
func requireTable(t *testing.T, rows string) {
	t.Helper()
	const begin, end = "<!-- table -->\n", "<!-- end -->\n"
	page := filepath.Join("..", "..", "docs", "guide", "redis.md")
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	head, rest, found := strings.Cut(string(text), begin)
	require.True(t, found)
	was, tail, found := strings.Cut(rest, end)
	require.True(t, found)
	table := "| mounted in | refusals | server-sent events | a client that leaves | WebSocket | values of the context | address |\n" +
		"|---|---|---|---|---|---|---|\n" + rows
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(head+begin+table+end+tail), 0o600))
		return
	}
	require.Equal(t, was, table, "run with -update, and read what changed")
}

func yes(right bool) string {
	if right {
		return "yes"
	}
	return "**no**"
}

func (a *api) values() string {
	switch {
	case a.inContext.Load():
		return "yes"
	case a.inLocals.Load():
		return "only those of `c.Locals`"
	}
	return "**no**"
}

// client returns one whose connections no other test shares.
func client(t *testing.T) *http.Client {
	t.Helper()
	pool := &http.Transport{}
	t.Cleanup(pool.CloseIdleConnections)
	return &http.Client{Transport: pool}
}

func request(ctx context.Context, t *testing.T, addr, tenant, query string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/query", strings.NewReader(`{"query": "`+query+`"}`))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Tenant", tenant)
	return r
}

// refusal asks for more than there is.
func (a *api) refusal(t *testing.T, addr string) string {
	t.Helper()
	var last *http.Response
	var body []byte
	for range 2 {
		response, err := client(t).Do(request(t.Context(), t, addr, "refused", "{ users(first: 60) { name } }"))
		require.NoError(t, err)
		body, err = io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		last = response
	}
	if last.StatusCode == http.StatusTooManyRequests && last.Header.Get("Retry-After") != "" &&
		last.Header.Get("RateLimit") != "" && strings.Contains(string(body), "RATE_LIMITED") {
		return "whole"
	}
	return "**" + last.Status + "**"
}

// stream reads two events, of which the second is yielded when the first has come; or, after the first, nothing
// happens until a timeout of the middleware ends it.
func (a *api) stream(t *testing.T, addr string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events := make(chan string)
	go func() {
		defer close(events)
		r := request(ctx, t, addr, "stream", "subscription { ticks(count: 2) }")
		r.Header.Set("Accept", "text/event-stream")
		response, err := client(t).Do(r)
		if err != nil {
			return
		}
		defer func() { _ = response.Body.Close() }()
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "data: {") {
				select {
				case events <- lines.Text():
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	a.tick <- 1
	select {
	case _, more := <-events:
		if !more {
			return "**none**"
		}
	case <-time.After(patience):
		return "**none**"
	}
	// A stream without a timeout waits for the second tick; one with a timeout ends without it.
	select {
	case <-events:
		return "at once, **cut off by the timeout**"
	case <-time.After(2 * timeout):
	}
	a.tick <- 2
	select {
	case _, more := <-events:
		if more {
			return "at once"
		}
	case <-time.After(patience):
	}
	return "**the first only**"
}

// leaving ends a request while its mutation runs.
func (a *api) leaving(t *testing.T, addr string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-a.entered
		cancel()
	}()
	response, err := client(t).Do(request(ctx, t, addr, "leaves", `mutation { createUser(input: {name: \"Ada\"}) { id } }`))
	if err == nil {
		_ = response.Body.Close()
	}
	require.ErrorIs(t, err, context.Canceled)
	if <-a.left {
		return "noticed"
	}
	return "**never noticed**"
}

// socket runs a subscription over graphql-transport-ws.
func (a *api) socket(t *testing.T, addr string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, response, err := websocket.Dial(ctx, "ws://"+addr+"/query", &websocket.DialOptions{ //nolint:bodyclose // Dial closes it
		HTTPClient: client(t), Subprotocols: []string{"graphql-transport-ws"},
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "**hangs**"
	case err != nil && response != nil:
		return "**" + response.Status + "**"
	case err != nil:
		return "**no connection**"
	}
	defer func() { _ = conn.CloseNow() }()
	messages := []map[string]any{
		{"type": "connection_init"},
		{"id": "1", "type": "subscribe", "payload": map[string]any{"query": "subscription { ticks(count: 1) }"}},
	}
	for _, message := range messages {
		if wsjson.Write(ctx, conn, message) != nil {
			return "**no messages**"
		}
	}
	go func() {
		select {
		case a.tick <- 1:
		case <-ctx.Done():
		}
	}()
	for {
		var message struct {
			Type string `json:"type"`
		}
		if wsjson.Read(ctx, conn, &message) != nil {
			return "**no messages**"
		}
		if message.Type == "complete" {
			return "yes"
		}
	}
}
