package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/example/internal/account"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

func TestHeadersAndURLsBeyondTheLimitAreRefused(t *testing.T) {
	t.Parallel()
	url := startExample(t).url
	for name, change := range map[string]func(*http.Request){
		"a header":                func(r *http.Request) { r.Header.Set("X-Long", strings.Repeat("x", 2*maxHeader)) },
		"the document of a query": func(r *http.Request) { r.URL.RawQuery = "query=%7B__typename%7D%23" + strings.Repeat("x", 2*maxHeader) },
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		require.NoError(t, err)
		change(request)
		require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, send(t, request).status, name)
	}
}

// TestMergedFieldsAreCheckedInTimeThatGrowsWithTheDocument sends a document whose fields merge in another way on each of 2^20
// paths. validation.Rules let it pass to its price; those of gqlparser need longer than anybody waits.
func TestMergedFieldsAreCheckedInTimeThatGrowsWithTheDocument(t *testing.T) {
	t.Parallel()
	const levels = 20
	field := func(alias, spreads string) string {
		return alias + ": issues(first: 1) { nodes { repository { " + spreads + " } } }"
	}
	var document strings.Builder
	document.WriteString("{ repositories(first: 1) { nodes { ...F0 } } }")
	for i := range levels {
		fmt.Fprintf(&document, " fragment F%d on Repository { %s %s }", i,
			field("a", fmt.Sprintf("...F%d ...G%d", i+1, i)), field("b", fmt.Sprintf("...F%d", i+1)))
		fmt.Fprintf(&document, " fragment G%d on Repository { x%d: id %s %s }", i, i,
			field("a", fmt.Sprintf("...G%d", i+1)), field("b", fmt.Sprintf("...G%d", i+1)))
	}
	fmt.Fprintf(&document, " fragment F%d on Repository { id } fragment G%d on Repository { id }", levels, levels)
	got := post(t, startAPI(t), request{query: document.String()})
	require.Equal(t, ratelimitclient.CodeQueryLimitExceeded, got.refusal(t).Code, "it was valid, and has too many aliases")
}

// guess asks with a key from an address.
func guess(t *testing.T, handler http.Handler, key, from string) reply {
	t.Helper()
	return askFrom(t, handler, from, request{key: key, query: `{ viewer { login } }`})
}

// askFrom asks from an address.
func askFrom(t *testing.T, handler http.Handler, from string, asked request) reply {
	t.Helper()
	r := newRequest(t, "/query", asked)
	r.RemoteAddr = from
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, r)
	return reply{status: recorder.Code, header: recorder.Header(), body: recorder.Body.String()}
}

func TestAnAddressGuessesFewKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		handler := newHandler(t)
		const from = "192.0.2.1:1000"
		for i := range account.GuessesOfClient {
			require.Equal(t, http.StatusUnauthorized, guess(t, handler, fmt.Sprint("guess-", i), from).status)
		}
		// A good key is not looked up either, or the answer would tell that it is good.
		for _, key := range []string{"another", "demo-pro"} {
			got := guess(t, handler, key, from)
			require.Equal(t, http.StatusTooManyRequests, got.status, got.body)
			require.Equal(t, "6", got.header.Get("Retry-After"))
			refusal := got.refusal(t)
			require.Equal(t, ratelimitclient.CodeRateLimited, refusal.Code)
			require.Equal(t, "address", refusal.Layer)
		}
		guess(t, handler, "", from).requireCharged(t, 3)
		guess(t, handler, "demo-pro", "192.0.2.2:1000").requireCharged(t, 3)
	})
}

func TestASiteOfIPv6GuessesFewKeysFromAllNetworks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		handler := newHandler(t)
		wrong := 0
		for i := range 256 {
			if guess(t, handler, "guess", fmt.Sprintf("[2001:db8:0:%x::1]:1000", i)).status == http.StatusUnauthorized {
				wrong++
			}
		}
		require.Equal(t, account.GuessesOfSite, wrong)
	})
}

func TestGoodKeysAreNoGuesses(t *testing.T) {
	t.Parallel()
	handler := newHandler(t)
	for range 3 * account.GuessesOfClient {
		require.Equal(t, http.StatusOK, guess(t, handler, "demo-pro", "192.0.2.1:1000").status)
	}
}

func TestAWebSocketIsNoOtherPlaceToGuessAt(t *testing.T) {
	t.Parallel()
	url := startAPI(t)
	for range account.GuessesOfClient {
		require.EqualValues(t, account.CloseUnknownKey, closedWith(t, url, "guess"))
	}
	require.EqualValues(t, account.CloseTooManyKeys, closedWith(t, url, "demo-pro"))
	require.Equal(t, http.StatusTooManyRequests, post(t, url, request{key: "demo-pro", query: `{ viewer { login } }`}).status)
}

// closedWith is the code with which a WebSocket is closed that introduces itself with the key.
func closedWith(t *testing.T, url, key string) websocket.StatusCode {
	t.Helper()
	_, _, err := dial(t, url, `{"X-API-Key": "`+key+`"}`).Read(t.Context())
	return websocket.CloseStatus(err)
}
