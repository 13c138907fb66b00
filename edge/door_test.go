package edge_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/edge"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// fixed is a clock that stands.
func fixed() time.Time { return time.UnixMilli(1_800_000_000_000) }

// newDoor returns a door whose log nobody reads.
func newDoor(t testing.TB, cfg edge.Config) *edge.Door {
	t.Helper()
	if cfg.Observe.Logger == nil {
		cfg.Observe.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Clock == nil {
		cfg.Clock = fixed
	}
	door, err := edge.New(cfg)
	require.NoError(t, err)
	return door
}

// requests is a limit in requests that has so many and no more.
func requests(n int64) []bucket.Limit {
	return []bucket.Limit{{Name: "few", Unit: bucket.Requests, Capacity: n, Period: time.Minute}}
}

// none are no limits.
var none = []bucket.Limit{}

// passed is a handler that counts what reaches it, and has read its bodies.
type passed struct{ bodies []string }

func (p *passed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusTeapot)
	}
	p.bodies = append(p.bodies, string(body))
}

// answer is what a request led to.
type answer struct {
	status int
	header http.Header
	body   string
	// refusal is nil for what passed.
	refusal *ratelimitclient.Refusal
}

func ask(t testing.TB, h http.Handler, from string, change ...func(*http.Request)) answer {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/query", strings.NewReader(`{"query":"{__typename}"}`))
	r.Header.Set("Content-Type", "application/json")
	r.RemoteAddr = net.JoinHostPort(from, "4711")
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return read(t, w.Result())
}

func read(t testing.TB, response *http.Response) answer {
	t.Helper()
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	a := answer{status: response.StatusCode, header: response.Header, body: string(body)}
	if len(body) > 0 {
		got, err := ratelimitclient.FromResponse(body)
		require.NoError(t, err, a.body)
		a.refusal = got.Refusal
	}
	return a
}

// body replaces the body of a request, with a length that is known or not.
func body(text string, known bool) func(*http.Request) {
	return func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
		if !known {
			r.ContentLength = -1
		}
	}
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func get(query string) func(*http.Request) {
	return func(r *http.Request) {
		r.Method, r.Body, r.ContentLength = http.MethodGet, http.NoBody, 0
		r.URL.RawQuery = query
		r.RequestURI = r.URL.RequestURI()
	}
}

func TestAnAddressHasItsRequestsWhateverBecomesOfThem(t *testing.T) {
	t.Parallel()
	door := newDoor(t, edge.Config{Address: edge.AddressConfig{Limits: requests(3)}, Request: edge.RequestConfig{MaxBody: 100}})
	next := &passed{}
	h := door.Handler(next)
	require.Equal(t, http.StatusOK, ask(t, h, "192.0.2.1").status)
	// Too large, and paid all the same.
	require.Equal(t, ratelimitclient.CodePayloadTooLarge, ask(t, h, "192.0.2.1", body(strings.Repeat("x", 101), true)).refusal.Code)
	require.Equal(t, ratelimitclient.CodePayloadTooLarge, ask(t, h, "192.0.2.1", body(strings.Repeat("x", 101), false)).refusal.Code)

	got := ask(t, h, "192.0.2.1")
	require.Equal(t, http.StatusTooManyRequests, got.status)
	require.Equal(t, "20", got.header.Get("Retry-After"))
	require.Equal(t, &ratelimitclient.Refusal{
		Code: ratelimitclient.CodeRateLimited, Message: "too many requests from this address", Layer: edge.LayerAddress,
		RetryAfter: 20 * time.Second, Limit: "few", Unit: "requests",
	}, got.refusal)
	require.Equal(t, http.StatusOK, ask(t, h, "192.0.2.2").status)
	require.Len(t, next.bodies, 2)
}

func TestASiteIsBoundedAboveItsClients(t *testing.T) {
	t.Parallel()
	door := newDoor(t, edge.Config{Address: edge.AddressConfig{Limits: requests(2), SiteLimits: requests(3)}})
	h := door.Handler(&passed{})
	for i, from := range []string{"2001:db8:1:1::1", "2001:db8:1:1::2", "2001:db8:1:2::1"} {
		require.Equal(t, http.StatusOK, ask(t, h, from).status, i)
	}
	require.Equal(t, http.StatusTooManyRequests, ask(t, h, "2001:db8:1:1::3").status, "the client has used its budget")
	require.Equal(t, http.StatusTooManyRequests, ask(t, h, "2001:db8:1:3::1").status, "the site has used its budget")
	require.Equal(t, http.StatusOK, ask(t, h, "2001:db8:1:100::1").status, "it is another site")
}

func TestAKeyHasItsRequestsWhereverTheyComeFrom(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]edge.KeyConfig{
		"by header":   {Header: "X-Api-Key", Limits: requests(2)},
		"by function": {Find: func(r *http.Request) string { return strings.TrimSpace(r.Header.Get("X-Api-Key")) }, Limits: requests(2)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newDoor(t, edge.Config{Key: key}).Handler(&passed{})
			require.Equal(t, http.StatusOK, ask(t, h, "192.0.2.1", header("X-Api-Key", "a")).status)
			require.Equal(t, http.StatusOK, ask(t, h, "192.0.2.2", header("X-Api-Key", "a")).status)
			require.Equal(t, edge.LayerKey, ask(t, h, "192.0.2.3", header("X-Api-Key", "a")).refusal.Layer)
			require.Equal(t, http.StatusOK, ask(t, h, "192.0.2.3", header("X-Api-Key", "b")).status)
			require.Equal(t, http.StatusOK, ask(t, h, "192.0.2.3").status)
		})
	}
}

func TestAFunctionThatPanicsHasFoundNoKey(t *testing.T) {
	t.Parallel()
	door := newDoor(t, edge.Config{Key: edge.KeyConfig{Find: func(*http.Request) string { panic("no") }}})
	require.Equal(t, http.StatusOK, ask(t, door.Handler(&passed{}), "192.0.2.1").status)
}

func TestBytesAreCountedWhetherOrNotTheirNumberIsToldBefore(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{true, false} {
		door := newDoor(t, edge.Config{
			Address: edge.AddressConfig{Limits: []bucket.Limit{{Name: "bytes", Unit: edge.Bytes, Capacity: 10_000, Period: time.Minute}}},
			Request: edge.RequestConfig{MaxBody: 6000, MaxHeader: 1000, MaxQuery: 500, MaxValues: 10},
		})
		next := &passed{}
		h := door.Handler(next)
		require.Equal(t, http.StatusOK, ask(t, h, "192.0.2.1", body(strings.Repeat("x", 6000), known)).status)
		got := ask(t, h, "192.0.2.1", body(strings.Repeat("x", 6000), known))
		require.Equal(t, http.StatusTooManyRequests, got.status)
		require.Equal(t, "bytes", got.refusal.Unit)
		require.Equal(t, http.StatusOK, ask(t, h, "192.0.2.1", body("x", known)).status)
		require.Equal(t, []string{strings.Repeat("x", 6000), "x"}, next.bodies)
	}
}

// noHead is how a form begins that is no upload of GraphQL.
const noHead = "--b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n"

func TestWhatIsTooLargeDoesNotReachTheServer(t *testing.T) {
	t.Parallel()
	door := newDoor(t, edge.Config{Request: edge.RequestConfig{MaxBody: 100, MaxUpload: 200, MaxQuery: 300, MaxHeader: 1000}})
	next := &passed{}
	h := door.Handler(next)
	form := header("Content-Type", "multipart/form-data; boundary=b")
	for name, request := range map[string][]func(*http.Request){
		"a body":                  {body(strings.Repeat("x", 101), true)},
		"a body in chunks":        {body(strings.Repeat("x", 101), false)},
		"the body of a GET":       {get(""), body(strings.Repeat("x", 101), false)},
		"an upload":               {form, body(strings.Repeat("x", 201), true)},
		"a query string":          {get("query=" + strings.Repeat("x", 300))},
		"a header":                {header("X", strings.Repeat("x", 1000))},
		"headers and URL":         {header("X", strings.Repeat("x", 700)), get("query=" + strings.Repeat("x", 290))},
		"a body of another kind":  {header("Content-Type", "application/graphql"), body(strings.Repeat("x", 101), true)},
		"a form that is not read": {header("Content-Type", "application/x-www-form-urlencoded"), body(strings.Repeat("x", 101), false)},
	} {
		got := ask(t, h, "192.0.2.1", request...)
		require.Equal(t, http.StatusRequestEntityTooLarge, got.status, name)
		require.Equal(t, ratelimitclient.CodePayloadTooLarge, got.refusal.Code, name)
		require.Equal(t, edge.LayerDocument, got.refusal.Layer, name)
		require.Zero(t, got.refusal.RetryAfter, name)
	}
	require.Empty(t, next.bodies)
	require.Equal(t, http.StatusOK, ask(t, h, "192.0.2.1", body(strings.Repeat("x", 100), false)).status)
	upload := func(bytes int) string { return noHead + strings.Repeat("x", bytes-len(noHead)) }
	require.Equal(t, http.StatusOK, ask(t, h, "192.0.2.1", form, body(upload(200), true)).status)
	require.Equal(t, http.StatusTeapot, ask(t, h, "192.0.2.1", form, body(upload(201), false)).status,
		"an upload that does not tell its length ends where it is too long")
}

func TestARefusalIsInTheMediaTypeThatTheClientAccepts(t *testing.T) {
	t.Parallel()
	const graphQL = "application/graphql-response+json"
	for accept, want := range map[string]string{
		"": "application/json", "*/*": "application/json", graphQL: graphQL, graphQL + ", application/json": graphQL,
		"application/json, " + graphQL: "application/json", "text/event-stream": "application/json", ";;": "application/json",
		strings.Repeat("text/html,", 31) + graphQL: graphQL, strings.Repeat(",", 10_000) + graphQL: "application/json",
	} {
		door := newDoor(t, edge.Config{Request: edge.RequestConfig{MaxBody: 1}})
		got := ask(t, door.Handler(&passed{}), "192.0.2.1", header("Accept", accept))
		require.Equal(t, http.StatusRequestEntityTooLarge, got.status)
		require.Equal(t, want, got.header.Get("Content-Type"), accept)
		require.True(t, json.Valid([]byte(got.body)))
	}
}

func TestAllRefusalsCanHaveStatus200(t *testing.T) {
	t.Parallel()
	door := newDoor(t, edge.Config{StatusOK: true, Request: edge.RequestConfig{MaxBody: 1}})
	got := ask(t, door.Handler(&passed{}), "192.0.2.1")
	require.Equal(t, http.StatusOK, got.status)
	require.Equal(t, ratelimitclient.CodePayloadTooLarge, got.refusal.Code)
}

// TestOneAddressLeavesRoomForOthers holds all that it lets in.
func TestOneAddressLeavesRoomForOthers(t *testing.T) {
	t.Parallel()
	door := newDoor(t, edge.Config{Request: edge.RequestConfig{UnderWay: 8}, Address: edge.AddressConfig{UnderWay: 100}})
	held, free := make(chan struct{}), make(chan struct{})
	h := door.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		held <- struct{}{}
		<-free
	}))
	entered := func(from string) bool {
		done := make(chan answer, 1)
		go func() { done <- ask(t, h, from) }()
		select {
		case <-held:
			return true
		case got := <-done:
			require.Equal(t, http.StatusServiceUnavailable, got.status)
			require.Equal(t, ratelimitclient.CodeOverloaded, got.refusal.Code)
			return false
		}
	}
	count := func(from string) (n int) {
		for entered(from) {
			n++
		}
		return n
	}
	require.Equal(t, 4, count("192.0.2.1"), "half")
	require.Equal(t, 2, count("192.0.2.2"), "half of what is left")
	require.Equal(t, 1, count("192.0.2.3"))
	require.Equal(t, 1, count("192.0.2.4"))
	require.Zero(t, count("192.0.2.5"))
	close(free)
}

func TestOneAddressHasSoManyRequestsUnderWay(t *testing.T) {
	t.Parallel()
	door := newDoor(t, edge.Config{Address: edge.AddressConfig{UnderWay: 1}})
	var h http.Handler
	var inner answer
	h = door.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Inner") == "" {
			inner = ask(t, h, "192.0.2.1", header("Inner", "yes"))
		}
	}))
	require.Equal(t, http.StatusOK, ask(t, h, "192.0.2.1").status)
	require.Equal(t, http.StatusTooManyRequests, inner.status)
	require.Equal(t, edge.LayerAddress, inner.refusal.Layer)
	require.Equal(t, http.StatusOK, ask(t, h, "192.0.2.1", header("Inner", "yes")).status, "what has ended makes room")
}

func TestAnAddressBehindAProxyIsTheOneThatTheProxyTells(t *testing.T) {
	t.Parallel()
	proxies := edge.ProxyConfig{Trusted: prefixes("10.0.0.0/8")}
	h := newDoor(t, edge.Config{Proxies: proxies, Address: edge.AddressConfig{Limits: requests(1)}}).Handler(&passed{})
	forwarded := func(addresses string) func(*http.Request) { return header("X-Forwarded-For", addresses) }
	require.Equal(t, http.StatusOK, ask(t, h, "10.0.0.1", forwarded("192.0.2.1")).status)
	require.Equal(t, http.StatusTooManyRequests, ask(t, h, "10.0.0.2", forwarded("198.51.100.1, 192.0.2.1")).status)
	require.Equal(t, http.StatusOK, ask(t, h, "10.0.0.1", forwarded("192.0.2.2")).status)
	require.Equal(t, http.StatusOK, ask(t, h, "192.0.2.9", forwarded("192.0.2.1")).status, "who is no proxy says nothing")
}

func TestALimitInShadowIsToldAndRefusesNothing(t *testing.T) {
	t.Parallel()
	shadow := requests(1)
	shadow[0].Mode = bucket.Shadow
	told := &observer{}
	h := newDoor(t, edge.Config{Address: edge.AddressConfig{Limits: shadow, SiteLimits: none}, Observe: edge.ObserveConfig{Observer: told}}).
		Handler(&passed{})
	for range 3 {
		require.Equal(t, http.StatusOK, ask(t, h, "192.0.2.1").status)
	}
	require.Len(t, told.all(), 1)
	require.Equal(t, "shadow", told.all()[0].Mode)
}

func TestWhoHasLeftIsNobodysRefusal(t *testing.T) {
	t.Parallel()
	h := newDoor(t, edge.Config{}).Handler(&passed{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, http.StatusOK, ask(t, h, "192.0.2.1", func(r *http.Request) { *r = *r.WithContext(ctx) }).status)
}

func TestABodyIsNobodysWhenItsRequestHasEnded(t *testing.T) {
	t.Parallel()
	var kept []io.Reader
	h := newDoor(t, edge.Config{}).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.CopyN(io.Discard, r.Body, 1)
		require.NoError(t, err)
		kept = append(kept, r.Body)
	}))
	for range 10 {
		ask(t, h, "192.0.2.1", body("the secret of a client", true))
	}
	for _, late := range kept {
		got, err := io.ReadAll(late)
		require.ErrorIs(t, err, http.ErrBodyReadAfterClose)
		require.Empty(t, got)
	}
}
