package e2e_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
)

func TestTheHandlerPassesWhatIsNoOperation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		status int
		body   string
	}{
		"nothing at all": {func(http.ResponseWriter, *http.Request) {}, http.StatusOK, ""},
		"a status":       {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }, http.StatusTeapot, ""},
		"a page larger than what is held": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusAccepted)
			for range 1000 {
				_, _ = io.WriteString(w, strings.Repeat("x", 100))
			}
		}, http.StatusAccepted, strings.Repeat("x", 100_000)},
		"a flushed stream": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "first")
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, "second")
		}, http.StatusOK, "firstsecond"},
		"two statuses, of which the first counts": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusAccepted)
			w.WriteHeader(http.StatusTeapot)
		}, http.StatusAccepted, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(ratelimit.Handler(c.answer))
			defer server.Close()
			response, err := server.Client().Get(server.URL)
			require.NoError(t, err)
			defer func() { _ = response.Body.Close() }()
			body, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			require.Equal(t, c.status, response.StatusCode)
			require.Equal(t, c.body, string(body))
		})
	}
}

func TestTheHandlerKeepsThePanicOfTheHandlerItWraps(t *testing.T) {
	t.Parallel()
	handler := ratelimit.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	require.PanicsWithError(t, http.ErrAbortHandler.Error(), func() {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	})
}

// TestAStreamOfEventsIsNotHeldBackByItsPreamble reads the preamble of a subscription before its
// first event exists.
func TestAStreamOfEventsIsNotHeldBackByItsPreamble(t *testing.T) {
	t.Parallel()
	tick := make(chan int)
	f := newFixture(t, nil)
	f.resolver.Tick = tick
	httpRequest, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url,
		strings.NewReader(`{"query": "subscription { ticks(count: 1) }"}`))
	require.NoError(t, err)
	httpRequest.Header.Set("Content-Type", "application/json")
	httpRequest.Header.Set("Accept", "text/event-stream")
	httpRequest.Header.Set("X-Tenant", "free")
	response, err := f.client.Do(httpRequest)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.NotEmpty(t, response.Header.Get("RateLimit"))
	preamble := make([]byte, 3)
	_, err = io.ReadFull(response.Body, preamble)
	require.NoError(t, err)
	require.Equal(t, ":\n\n", string(preamble))
	tick <- 1
	rest, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Contains(t, string(rest), `"ticks":0`)
}
