package main

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/example/internal/account"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

func TestWebSocketActsForTheKeyInItsInitPayload(t *testing.T) {
	t.Parallel()
	url := startAPI(t)
	conn := dial(t, url, `{"X-API-Key": "demo-pro"}`)
	require.JSONEq(t, `{"type":"connection_ack"}`, read(t, conn))

	got := ask(t, conn, "1", request{query: `{ viewer { login } }`})
	require.JSONEq(t, `{"data":{"viewer":{"login":"jonas"}}}`, withoutRateLimit(t, got.body))
	require.EqualValues(t, 2500, got.rateLimit(t).Capacity, "of the tier pro")
	got.requireCharged(t, 3)
}

// search costs 611 points, of which demo-free has 1000 a minute.
const search = `{ search(query: "nothing like it", first: 100) { ... on Issue { comments(first: 3) { nodes { id } } } } }`

func TestWebSocketAndHTTPSpendOneBudget(t *testing.T) {
	t.Parallel()
	url := startAPI(t)
	post(t, url, request{key: "demo-free", query: search}).requireCharged(t, 611)

	conn := dial(t, url, `{"X-API-Key": "demo-free"}`)
	require.JSONEq(t, `{"type":"connection_ack"}`, read(t, conn))
	got := ask(t, conn, "1", request{query: search})
	require.JSONEq(t, `null`, data(t, got))
	refusal := got.refusal(t)
	require.Equal(t, ratelimitclient.CodeRateLimited, refusal.Code)
	require.Equal(t, "minute", refusal.Limit)
	require.Positive(t, refusal.RetryAfter)
	require.Zero(t, got.rateLimit(t).Charged)

	// A refusal ends the operation and not the connection, and takes nothing.
	ask(t, conn, "2", request{query: `{ viewer { login } }`}).requireCharged(t, 3)
}

func TestWebSocketRefusesASubscriptionThatTheBudgetDoesNotCover(t *testing.T) {
	t.Parallel()
	url := startAPI(t)
	const spend = `{ repositories(first: 98) { nodes { owner { login } } } }`
	conn := dial(t, url, `{}`)
	require.JSONEq(t, `{"type":"connection_ack"}`, read(t, conn))
	ask(t, conn, "1", request{query: spend}).requireCharged(t, 297)

	// It is dear, so that refill does not matter: the anonymous tier gets 5 points a second. Were it
	// admitted, no answer would come until an issue is created.
	const subscribe = `subscription { issueCreated { comments(first: 90) { nodes { author { login } } } } }`
	got := ask(t, conn, "2", request{query: subscribe})
	require.Equal(t, ratelimitclient.CodeRateLimited, got.refusal(t).Code)
	require.EqualValues(t, 285, got.rateLimit(t).Cost)
	require.Zero(t, got.rateLimit(t).Charged)
}

func TestWebSocketWithoutAKeyIsAnonymousByItsAddress(t *testing.T) {
	t.Parallel()
	url := startAPI(t)
	conn := dial(t, url, `{}`)
	require.JSONEq(t, `{"type":"connection_ack"}`, read(t, conn))
	got := ask(t, conn, "1", request{query: `{ repositories(first: 90) { nodes { owner { login } } } }`})
	got.requireCharged(t, 273)
	require.EqualValues(t, 300, got.rateLimit(t).Capacity, "of the tier anonymous")

	// The same address over HTTP, whatever it says about itself, has what is left.
	forged := newRequest(t, url, request{query: `{ repositories(first: 90) { nodes { owner { login } } } }`})
	forged.Header.Set("X-Forwarded-For", "203.0.113.7")
	send(t, forged).requireRefused(t, 273)
}

func TestWebSocketReplaysAKeyOfItsOperationsExtensions(t *testing.T) {
	t.Parallel()
	url := startAPI(t)
	conn := dial(t, url, `{"X-API-Key": "demo-pro"}`)
	require.JSONEq(t, `{"type":"connection_ack"}`, read(t, conn))
	create := request{key: "demo-pro", once: "websocket-0001", query: createIssue}
	first := ask(t, conn, "1", create)
	first.requireCharged(t, 20)

	for transport, again := range map[string]reply{
		"websocket": ask(t, conn, "2", create),
		"http":      post(t, url, create),
	} {
		require.True(t, again.rateLimit(t).Replayed, transport)
		require.Zero(t, again.rateLimit(t).Charged, transport)
		require.Equal(t, issueNumber(t, first), issueNumber(t, again), transport)
	}
}

func TestWebSocketRefusesAnUnknownKey(t *testing.T) {
	t.Parallel()
	conn := dial(t, startAPI(t), `{"X-API-Key": "sesame"}`)
	_, _, err := conn.Read(t.Context())
	var closed websocket.CloseError
	require.ErrorAs(t, err, &closed)
	require.EqualValues(t, account.CloseUnknownKey, closed.Code)
	require.Equal(t, "unknown key in X-API-Key: this demo has demo-free, demo-pro, demo-enterprise, "+
		"and no key at all is anonymous", closed.Reason)
}

func TestWebSocketReadsNoMessageBeyondTheLimit(t *testing.T) {
	t.Parallel()
	conn := dial(t, startAPI(t), `{}`)
	require.JSONEq(t, `{"type":"connection_ack"}`, read(t, conn))
	write(t, conn, `{"id":"1","type":"subscribe","payload":{"query":"{ viewer { id } } #`+strings.Repeat("x", maxBody)+`"}}`)
	_, _, err := conn.Read(t.Context())
	var closed websocket.CloseError
	require.ErrorAs(t, err, &closed)
	require.Equal(t, websocket.StatusMessageTooBig, closed.Code)
}

// dial opens a WebSocket and introduces the client with the payload.
func dial(t *testing.T, url, payload string) *websocket.Conn {
	t.Helper()
	conn, response, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(url, "http"),
		&websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}})
	require.NoError(t, err)
	if response.Body != nil {
		require.NoError(t, response.Body.Close())
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	write(t, conn, `{"type":"connection_init","payload":`+payload+`}`)
	return conn
}

// ask sends an operation and returns its only answer, as if it had come over HTTP.
func ask(t *testing.T, conn *websocket.Conn, id string, r request) reply {
	t.Helper()
	payload := map[string]any{"query": r.query}
	if r.once != "" {
		payload["extensions"] = map[string]any{"idempotencyKey": r.once}
	}
	message, err := json.Marshal(map[string]any{"id": id, "type": "subscribe", "payload": payload})
	require.NoError(t, err)
	write(t, conn, string(message))
	next := struct {
		ID, Type string
		Payload  json.RawMessage
	}{}
	require.NoError(t, json.Unmarshal([]byte(read(t, conn)), &next))
	require.Equal(t, "next", next.Type, string(next.Payload))
	require.Equal(t, id, next.ID)
	require.JSONEq(t, `{"id":"`+id+`","type":"complete"}`, read(t, conn))
	return reply{status: http.StatusOK, body: string(next.Payload)}
}

func write(t *testing.T, conn *websocket.Conn, message string) {
	t.Helper()
	require.NoError(t, conn.Write(t.Context(), websocket.MessageText, []byte(message)))
}

// read returns the next message that is no ping.
func read(t *testing.T, conn *websocket.Conn) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		_, message, err := conn.Read(ctx)
		require.NoError(t, err)
		if text := strings.TrimSpace(string(message)); !strings.Contains(text, `"type":"ping"`) {
			return text
		}
	}
}
