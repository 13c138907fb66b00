package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

func TestAPIAnswersOverHTTP(t *testing.T) {
	t.Parallel()
	const create = `mutation { createIssue(input: {repositoryId: "R_1", title: "New", labels: ["bug"]}) { issue {
		title state createdAt author { login } labels { name } repository { id } comments { totalCount } } } }`
	tests := map[string]struct {
		key, query string
		status     int
		// points is what the operation is charged, 0 if the limiter never saw it.
		points int64
		want   string
	}{
		"an anonymous caller has no viewer": {
			query: `{ viewer { login } }`, status: 200, points: 3,
			want: `{"data":{"viewer":null}}`,
		},
		"a key has a viewer": {
			key: "demo-pro", query: `{ viewer { login } }`, status: 200, points: 3,
			want: `{"data":{"viewer":{"login":"jonas"}}}`,
		},
		"an unknown key is told which exist, and never repeated": {
			key: "sesame", query: `{ viewer { login } }`, status: 401,
			want: `{"errors":[{"message":"unknown key in X-API-Key: this demo has demo-free, demo-pro,
				demo-enterprise, and no key at all is anonymous","extensions":{"code":"UNAUTHENTICATED"}}],"data":null}`,
		},
		"a repository that does not exist is null": {
			query: `{ repository(owner: "mira", name: "nothing") { id } }`, status: 200, points: 3,
			want: `{"data":{"repository":null}}`,
		},
		"edges and nodes hold the same page": {
			query: `{ repositories(first: 1) { edges { cursor node { id } } nodes { id } totalCount
				pageInfo { hasNextPage endCursor } } }`, status: 200, points: 5,
			want: `{"data":{"repositories":{"edges":[{"cursor":"R_17","node":{"id":"R_17"}}],"nodes":[{"id":"R_17"}],
				"totalCount":24,"pageInfo":{"hasNextPage":true,"endCursor":"R_17"}}}}`,
		},
		"any object is found by its id": {
			query: `{ user: node(id: "U_1") { __typename id } issue: node(id: "I_1") { __typename }
				comment: node(id: "C_1") { __typename } none: node(id: "X") { id } }`, status: 200, points: 10,
			want: `{"data":{"user":{"__typename":"User","id":"U_1"},"issue":{"__typename":"Issue"},
				"comment":{"__typename":"Comment"},"none":null}}`,
		},
		"a search finds objects of several types": {
			query: `{ search(query: "MIRA") { __typename ... on User { login } } }`, status: 200, points: 21,
			want: `{"data":{"search":[{"__typename":"User","login":"mira"}]}}`,
		},
		"a page has a largest length": {
			query: `{ repositories(first: 101) { totalCount } }`, status: 200, points: 3,
			want: `{"errors":[{"message":"invalid argument: first is 101 and has to be between 0 and 100",
				"path":["repositories"],"locations":[{"line":1,"column":3}],"extensions":{"code":"BAD_USER_INPUT"}}],"data":null}`,
		},
		"an issue is created": {
			key: "demo-free", query: create, status: 200, points: 27,
			want: `{"data":{"createIssue":{"issue":{"title":"New","state":"OPEN","createdAt":"2026-01-02T03:04:05Z",
				"author":{"login":"mira"},"labels":[{"name":"bug"}],"repository":{"id":"R_1"},"comments":{"totalCount":0}}}}}`,
		},
		"a comment is added": {
			key: "demo-free", status: 200, points: 18,
			query: `mutation { addComment(input: {issueId: "I_1", body: "Yes"}) { comment { body issue { id } } } }`,
			want:  `{"data":{"addComment":{"comment":{"body":"Yes","issue":{"id":"I_1"}}}}}`,
		},
		"an anonymous caller creates nothing": {
			query: create, status: 200, points: 27,
			want: `{"errors":[{"message":"writing needs an API key","path":["createIssue"],"locations":[{"line":1,"column":12}],
				"extensions":{"code":"UNAUTHENTICATED"}}],"data":null}`,
		},
		"a comment needs an issue": {
			key: "demo-free", status: 200, points: 16,
			query: `mutation { addComment(input: {issueId: "R_1", body: "Yes"}) { comment { body } } }`,
			want: `{"errors":[{"message":"not found: no issue has this id","path":["addComment"],"locations":[{"line":1,"column":12}],
				"extensions":{"code":"NOT_FOUND"}}],"data":null}`,
		},
		"a document has a largest number of tokens": {
			query: `{` + strings.Repeat(` viewer { id }`, maxTokens/4) + ` }`, status: 400,
			want: `{"errors":[{"message":"the document has more than 2000 tokens: ask for less at once, and send lists in variables","extensions":{"allowed":2000,
				"code":"QUERY_LIMIT_EXCEEDED","given":2001,"layer":"document","rule":"tokens"}}],"data":null}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := post(t, startAPI(t), request{key: test.key, query: test.query})
			require.Equal(t, test.status, got.status, got.body)
			require.JSONEq(t, strings.Join(strings.Fields(test.want), " "), withoutRateLimit(t, got.body))
			if test.points == 0 {
				require.Nil(t, got.limits(t).RateLimit, got.body)
				return
			}
			require.Equal(t, test.points, got.rateLimit(t).Cost, got.body)
			require.Equal(t, test.points, got.rateLimit(t).Charged, got.body)
		})
	}
}

func TestAnonymousCallersHaveABudgetForEachAddress(t *testing.T) {
	t.Parallel()
	handler := newHandler(t)
	from := func(address string) reply {
		r := newRequest(t, "/query", request{query: `{ repositories(first: 90) { nodes { owner { login } } } }`})
		r.RemoteAddr = address
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, r)
		return reply{status: recorder.Code, header: recorder.Header(), body: recorder.Body.String()}
	}
	from("192.0.2.1:1000").requireCharged(t, 273)
	from("192.0.2.1:2000").requireRefused(t, 273)
	from("192.0.2.2:1000").requireCharged(t, 273)
}

func TestAPIReadsNoBodyBeyondItsLimit(t *testing.T) {
	t.Parallel()
	got := post(t, startAPI(t), request{query: "{ viewer { id } } #" + strings.Repeat("x", maxBody)})
	require.Equal(t, http.StatusRequestEntityTooLarge, got.status)
	require.Equal(t, ratelimitclient.CodePayloadTooLarge, got.refusal(t).Code)
}

func TestAPIAnswersAGetAndRefusesItsMutation(t *testing.T) {
	t.Parallel()
	url := startAPI(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"?query=%7Bviewer%7Blogin%7D%7D", nil)
	require.NoError(t, err)
	got := send(t, request)
	got.requireCharged(t, 3)
	require.JSONEq(t, `{"data":{"viewer":null}}`, withoutRateLimit(t, got.body))

	const mutation = "?query=mutation%7BaddComment(input%3A%7BissueId%3A%22I_1%22%2Cbody%3A%22x%22%7D)%7Bcomment%7Bid%7D%7D%7D"
	request, err = http.NewRequestWithContext(t.Context(), http.MethodGet, url+mutation, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusNotAcceptable, send(t, request).status)
}

func TestGraphiQLIsAtTheRoot(t *testing.T) {
	t.Parallel()
	root := strings.TrimSuffix(startAPI(t), "query")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, root, nil)
	require.NoError(t, err)
	got := send(t, request)
	require.Equal(t, http.StatusOK, got.status)
	require.Contains(t, got.body, "graphiql")

	request, err = http.NewRequestWithContext(t.Context(), http.MethodGet, root+"elsewhere", nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, send(t, request).status)
}

// A stranger opens GraphiQL five times in a minute, whichever version it is, and still has points to query with.
func TestGraphiQLOpensFiveTimesAMinuteForStrangers(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../cost/testdata/introspection/*.graphql")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		handler := newHandler(t)
		ask := func(query string) reply {
			recorder := httptest.NewRecorder()
			r := newRequest(t, "/query", request{query: query})
			r.RemoteAddr = "192.0.2.1:1000"
			handler.ServeHTTP(recorder, r)
			return reply{status: recorder.Code, header: recorder.Header(), body: recorder.Body.String()}
		}
		for range 5 {
			got := ask(string(text))
			require.Equal(t, http.StatusOK, got.status, got.body)
			require.Contains(t, got.body, `"fields":[`)
		}
		ask(`{ viewer { login } }`).requireCharged(t, 3)
	}
}

// A stranger who repeats or nests the lists of introspection is refused for the price, whatever the budget.
func TestIntrospectionBombsOfStrangersAreRefused(t *testing.T) {
	t.Parallel()
	handler := newHandler(t)
	aliases := func(n int, selection string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, " a%d: %s", i, selection)
		}
		return b.String()
	}
	for _, query := range []string{
		"{ __schema { types {" + aliases(100, "fields { name type { name } }") + " } } }",
		"{ __schema { types { fields { type {" + aliases(50, "fields { name type { name } }") + " } } } } }",
		"{ __schema {" + aliases(60, "types { fields { type { fields { name } } } }") + " } }",
		"{" + aliases(100, `__type(name: "Query") { name }`) + " }",
	} {
		recorder := httptest.NewRecorder()
		r := newRequest(t, "/query", request{query: query})
		r.RemoteAddr = "192.0.2.1:1000"
		handler.ServeHTTP(recorder, r)
		require.Equal(t, http.StatusBadRequest, recorder.Code, recorder.Body)
		require.Contains(t, recorder.Body.String(), ratelimitclient.CodeCostLimitExceeded)
	}
}

const subscription = `subscription { issueCreated(repositoryId: "R_1", first: 2) { title } }`

// createTwo creates two issues in the repository that the subscription wants and one in another.
func createTwo(t *testing.T, url string) {
	t.Helper()
	for _, issue := range []string{`"R_1", title: "one"`, `"R_2", title: "other"`, `"R_1", title: "two"`} {
		got := post(t, url, request{
			key: "demo-enterprise", query: `mutation { createIssue(input: {repositoryId: ` + issue + `}) { issue { id } } }`,
		})
		require.Equal(t, http.StatusOK, got.status, got.body)
		require.NotContains(t, got.body, "errors")
	}
}

func TestSSEStreamsUntilTheStreamHasItsIssues(t *testing.T) {
	t.Parallel()
	url := startAPI(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	request := newRequest(t, url, request{query: subscription}).WithContext(ctx)
	request.Header.Set("Accept", "text/event-stream")
	response, err := client.Do(request)
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
	require.Equal(t, 1, strings.Count(events, `"rateLimit"`), "the first event says what the stream cost")
	require.Contains(t, events, "event: complete")
}
