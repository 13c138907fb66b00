package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/example/internal/account"
	"github.com/gqlgen-ratelimit/ratelimit/example/internal/codehost"
)

// fixedTime is the time in the tests.
var fixedTime = time.Date(2026, time.January, 2, 3, 4, 5, 0, time.UTC)

// startAPI serves a fresh store and returns the URL of the API.
func startAPI(t *testing.T) string {
	t.Helper()
	store := codehost.NewStore(codehost.Config{Seed: seed, Now: func() time.Time { return fixedTime }})
	server := httptest.NewServer(newMux(newAPI(store)))
	t.Cleanup(server.Close)
	t.Cleanup(store.Close)
	return server.URL + "/query"
}

// post sends a query and returns the status and the body.
func post(t *testing.T, url, key, query string) (int, string) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"query": query})
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(string(body)))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	if key != "" {
		request.Header.Set("X-API-Key", key)
	}
	return send(t, request)
}

func send(t *testing.T, request *http.Request) (int, string) {
	t.Helper()
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body)
}

func TestAPIAnswersOverHTTP(t *testing.T) {
	t.Parallel()
	const create = `mutation { createIssue(input: {repositoryId: "R_1", title: "New", labels: ["bug"]}) { issue {
		title state createdAt author { login } labels { name } repository { id } comments { totalCount } } } }`
	tests := map[string]struct {
		key, query string
		status     int
		want       string
	}{
		"an anonymous caller has no viewer": {
			query: `{ viewer { login } }`, status: 200,
			want: `{"data":{"viewer":null}}`,
		},
		"a key has a viewer": {
			key: "demo-pro", query: `{ viewer { login } }`, status: 200,
			want: `{"data":{"viewer":{"login":"jonas"}}}`,
		},
		"an unknown key is told which exist, and never repeated": {
			key: "sesame", query: `{ viewer { login } }`, status: 401,
			want: `{"errors":[{"message":"unknown key in X-API-Key: this demo has demo-free, demo-pro,
				demo-enterprise, and no key at all is anonymous","extensions":{"code":"UNAUTHENTICATED"}}],"data":null}`,
		},
		"a repository that does not exist is null": {
			query: `{ repository(owner: "mira", name: "nothing") { id } }`, status: 200,
			want: `{"data":{"repository":null}}`,
		},
		"edges and nodes hold the same page": {
			query: `{ repositories(first: 1) { edges { cursor node { id } } nodes { id } totalCount
				pageInfo { hasNextPage endCursor } } }`, status: 200,
			want: `{"data":{"repositories":{"edges":[{"cursor":"R_17","node":{"id":"R_17"}}],"nodes":[{"id":"R_17"}],
				"totalCount":24,"pageInfo":{"hasNextPage":true,"endCursor":"R_17"}}}}`,
		},
		"any object is found by its id": {
			query: `{ user: node(id: "U_1") { __typename id } issue: node(id: "I_1") { __typename }
				comment: node(id: "C_1") { __typename } none: node(id: "X") { id } }`, status: 200,
			want: `{"data":{"user":{"__typename":"User","id":"U_1"},"issue":{"__typename":"Issue"},
				"comment":{"__typename":"Comment"},"none":null}}`,
		},
		"a search finds objects of several types": {
			query: `{ search(query: "MIRA") { __typename ... on User { login } } }`, status: 200,
			want: `{"data":{"search":[{"__typename":"User","login":"mira"}]}}`,
		},
		"a page has a largest length": {
			query: `{ repositories(first: 101) { totalCount } }`, status: 200,
			want: `{"errors":[{"message":"invalid argument: first is 101 and has to be between 0 and 100",
				"path":["repositories"],"locations":[{"line":1,"column":3}],"extensions":{"code":"BAD_USER_INPUT"}}],"data":null}`,
		},
		"an issue is created": {
			key: "demo-free", query: create, status: 200,
			want: `{"data":{"createIssue":{"issue":{"title":"New","state":"OPEN","createdAt":"2026-01-02T03:04:05Z",
				"author":{"login":"mira"},"labels":[{"name":"bug"}],"repository":{"id":"R_1"},"comments":{"totalCount":0}}}}}`,
		},
		"a comment is added": {
			key: "demo-free", status: 200,
			query: `mutation { addComment(input: {issueId: "I_1", body: "Yes"}) { comment { body issue { id } } } }`,
			want:  `{"data":{"addComment":{"comment":{"body":"Yes","issue":{"id":"I_1"}}}}}`,
		},
		"an anonymous caller creates nothing": {
			query: create, status: 200,
			want: `{"errors":[{"message":"writing needs an API key","path":["createIssue"],"locations":[{"line":1,"column":12}],
				"extensions":{"code":"UNAUTHENTICATED"}}],"data":null}`,
		},
		"a comment needs an issue": {
			key: "demo-free", status: 200,
			query: `mutation { addComment(input: {issueId: "R_1", body: "Yes"}) { comment { body } } }`,
			want: `{"errors":[{"message":"not found: no issue has this id","path":["addComment"],"locations":[{"line":1,"column":12}],
				"extensions":{"code":"NOT_FOUND"}}],"data":null}`,
		},
		"a document has a largest number of tokens": {
			query: `{` + strings.Repeat(` viewer { id }`, maxTokens/4) + ` }`, status: 422,
			want: `{"errors":[{"message":"exceeded token limit of 2000",
				"extensions":{"code":"GRAPHQL_PARSE_FAILED"}}],"data":null}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, body := post(t, startAPI(t), test.key, test.query)
			require.Equal(t, test.status, status, body)
			require.JSONEq(t, strings.Join(strings.Fields(test.want), " "), body)
		})
	}
}

func TestAPIReadsNoBodyBeyondItsLimit(t *testing.T) {
	t.Parallel()
	// The status is gqlgen's: it answers 200 when it cannot read a body.
	_, body := post(t, startAPI(t), "", "{ viewer { id } } #"+strings.Repeat("x", maxBody))
	require.Contains(t, body, "http: request body too large")
}

func TestAPIAnswersAGetAndRefusesItsMutation(t *testing.T) {
	t.Parallel()
	url := startAPI(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"?query=%7Bviewer%7Blogin%7D%7D", nil)
	require.NoError(t, err)
	status, body := send(t, request)
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"data":{"viewer":null}}`, body)

	const mutation = "?query=mutation%7BaddComment(input%3A%7BissueId%3A%22I_1%22%2Cbody%3A%22x%22%7D)%7Bcomment%7Bid%7D%7D%7D"
	request, err = http.NewRequestWithContext(t.Context(), http.MethodGet, url+mutation, nil)
	require.NoError(t, err)
	status, _ = send(t, request)
	require.Equal(t, http.StatusNotAcceptable, status)
}

func TestGraphiQLIsAtTheRoot(t *testing.T) {
	t.Parallel()
	root := strings.TrimSuffix(startAPI(t), "query")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, root, nil)
	require.NoError(t, err)
	status, body := send(t, request)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "graphiql")

	request, err = http.NewRequestWithContext(t.Context(), http.MethodGet, root+"elsewhere", nil)
	require.NoError(t, err)
	status, _ = send(t, request)
	require.Equal(t, http.StatusNotFound, status)
}

const subscription = `subscription { issueCreated(repositoryId: "R_1", first: 2) { title } }`

// createTwo creates two issues in the repository that the subscription wants and one in another.
func createTwo(t *testing.T, url string) {
	t.Helper()
	for _, issue := range []string{`"R_1", title: "one"`, `"R_2", title: "other"`, `"R_1", title: "two"`} {
		status, body := post(t, url, "demo-pro",
			`mutation { createIssue(input: {repositoryId: `+issue+`}) { issue { id } } }`)
		require.Equal(t, http.StatusOK, status)
		require.NotContains(t, body, "errors")
	}
}

func TestSSEStreamsUntilTheStreamHasItsIssues(t *testing.T) {
	t.Parallel()
	url := startAPI(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	body, err := json.Marshal(map[string]string{"query": subscription})
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(string(body)))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()

	stream := make(chan string, 1)
	go func() {
		// What cannot be read is missing from the stream, which the test sees.
		body, _ := io.ReadAll(response.Body)
		stream <- string(body)
	}()
	// The headers come before the resolver has subscribed: issues are created until the stream has
	// seen enough of them.
	var events string
	for events == "" {
		select {
		case events = <-stream:
		case <-time.After(20 * time.Millisecond):
			createTwo(t, url)
		}
	}
	require.Equal(t, 2, strings.Count(events, `data: {"data":{"issueCreated":`), events)
	require.NotContains(t, events, "other")
	require.Contains(t, events, "event: complete")
}

func TestWebSocketActsForTheKeyInItsInitPayload(t *testing.T) {
	t.Parallel()
	url := startAPI(t)
	conn := dial(t, url, `{"X-API-Key": "demo-pro"}`)
	require.JSONEq(t, `{"type":"connection_ack"}`, read(t, conn))

	write(t, conn, `{"id":"1","type":"subscribe","payload":{"query":"{ viewer { login } }"}}`)
	require.JSONEq(t, `{"id":"1","type":"next","payload":{"data":{"viewer":{"login":"jonas"}}}}`, read(t, conn))
	require.JSONEq(t, `{"id":"1","type":"complete"}`, read(t, conn))
}

func TestWebSocketRefusesAnUnknownKey(t *testing.T) {
	t.Parallel()
	conn := dial(t, startAPI(t), `{"X-API-Key": "sesame"}`)
	_, _, err := conn.ReadMessage()
	var closed *websocket.CloseError
	require.ErrorAs(t, err, &closed)
	require.Equal(t, account.CloseUnknownKey, closed.Code)
	require.Equal(t, "unknown key in X-API-Key: this demo has demo-free, demo-pro, demo-enterprise, "+
		"and no key at all is anonymous", closed.Text)
}

func TestWebSocketReadsNoMessageBeyondTheLimit(t *testing.T) {
	t.Parallel()
	conn := dial(t, startAPI(t), `{}`)
	require.JSONEq(t, `{"type":"connection_ack"}`, read(t, conn))
	write(t, conn, `{"id":"1","type":"subscribe","payload":{"query":"{ viewer { id } } #`+strings.Repeat("x", maxBody)+`"}}`)
	_, _, err := conn.ReadMessage()
	var closed *websocket.CloseError
	require.ErrorAs(t, err, &closed)
	require.Equal(t, websocket.CloseMessageTooBig, closed.Code)
}

// dial opens a WebSocket and introduces the client with the payload.
func dial(t *testing.T, url, payload string) *websocket.Conn {
	t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{"graphql-transport-ws"}}
	conn, response, err := dialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(url, "http"), nil)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	write(t, conn, `{"type":"connection_init","payload":`+payload+`}`)
	return conn
}

func write(t *testing.T, conn *websocket.Conn, message string) {
	t.Helper()
	require.NoError(t, conn.WriteMessage(websocket.TextMessage, []byte(message)))
}

// read returns the next message that is no ping.
func read(t *testing.T, conn *websocket.Conn) string {
	t.Helper()
	for {
		_, message, err := conn.ReadMessage()
		require.NoError(t, err)
		if text := strings.TrimSpace(string(message)); !strings.Contains(text, `"type":"ping"`) {
			return text
		}
	}
}
