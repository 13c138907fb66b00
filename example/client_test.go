package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// request is one operation that a test posts.
type request struct {
	// query is the document.
	query string
	// key is the API key. Empty sends none.
	key string
	// once is the idempotency key. Empty sends none.
	once string
}

// reply is what came back over HTTP.
type reply struct {
	status int
	header http.Header
	body   string
}

// post sends an operation.
func post(t *testing.T, url string, r request) reply {
	t.Helper()
	return send(t, newRequest(t, url, r))
}

func newRequest(t *testing.T, url string, r request) *http.Request {
	t.Helper()
	body, err := json.Marshal(map[string]string{"query": r.query})
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(string(body)))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	if r.key != "" {
		request.Header.Set("X-API-Key", r.key)
	}
	if r.once != "" {
		request.Header.Set("Idempotency-Key", r.once)
	}
	return request
}

// client has connections of its own: each httptest.Server that is closed closes the idle ones of the default client.
var client = &http.Client{Transport: &http.Transport{}}

func send(t *testing.T, request *http.Request) reply {
	t.Helper()
	response, err := client.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return reply{status: response.StatusCode, header: response.Header, body: string(body)}
}

// limits returns what the reply says about limits, as a Go client reads it.
func (r reply) limits(t *testing.T) ratelimitclient.Response {
	t.Helper()
	read, err := ratelimitclient.FromResponse([]byte(r.body))
	require.NoError(t, err, r.body)
	return read
}

// rateLimit returns extensions.rateLimit, which has to be there.
func (r reply) rateLimit(t *testing.T) ratelimitclient.RateLimit {
	t.Helper()
	read := r.limits(t)
	require.NotNil(t, read.RateLimit, r.body)
	return *read.RateLimit
}

// refusal returns why the operation was refused, which it has to be.
func (r reply) refusal(t *testing.T) ratelimitclient.Refusal {
	t.Helper()
	read := r.limits(t)
	require.NotNil(t, read.Refusal, r.body)
	return *read.Refusal
}

// requireCharged checks that the operation ran and was charged the points.
func (r reply) requireCharged(t *testing.T, points int64) {
	t.Helper()
	require.Equal(t, http.StatusOK, r.status, r.body)
	require.Nil(t, r.limits(t).Refusal, r.body)
	got := r.rateLimit(t)
	require.Equal(t, points, got.Cost, r.body)
	require.Equal(t, points, got.Charged, r.body)
	require.False(t, got.Replayed, r.body)
}

// requireRefused checks that the budget was used up, and that the client is told when to come again.
func (r reply) requireRefused(t *testing.T, points int64) {
	t.Helper()
	require.Equal(t, http.StatusTooManyRequests, r.status, r.body)
	after, found := ratelimitclient.RetryAfter(r.header)
	require.True(t, found, "Retry-After is there")
	require.Positive(t, after)
	refusal := r.refusal(t)
	require.Equal(t, ratelimitclient.CodeRateLimited, refusal.Code)
	require.Positive(t, refusal.RetryAfter)
	require.LessOrEqual(t, refusal.RetryAfter, after, "a client that waits as the header says does not come early")
	got := r.rateLimit(t)
	require.Equal(t, points, got.Cost)
	require.Zero(t, got.Charged)
}

// limit returns the state of the limit with the name, of a short answer the one that it is about.
func limit(t *testing.T, state ratelimitclient.RateLimit, name string) ratelimitclient.Limit {
	t.Helper()
	for _, l := range state.Limits {
		if l.Name == name {
			return l
		}
	}
	if state.Limits == nil && state.Limit == name {
		return ratelimitclient.Limit{
			Name: name, Unit: state.Unit, Capacity: state.Capacity, Remaining: state.Remaining, ResetAfter: state.ResetAfter,
		}
	}
	require.Failf(t, "no such limit", "%s in %+v", name, state)
	return ratelimitclient.Limit{}
}

// withoutRateLimit returns a body, or a message of a stream, without extensions.rateLimit.
func withoutRateLimit(t *testing.T, body string) string {
	t.Helper()
	var answer map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(body), &answer), body)
	if extensions, found := answer["extensions"]; found {
		var values map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(extensions, &values), body)
		require.Contains(t, values, "rateLimit")
		require.Len(t, values, 1, "nothing else is in the extensions")
		delete(answer, "extensions")
	}
	rest, err := json.Marshal(answer)
	require.NoError(t, err)
	return string(rest)
}

// How long and how often poll tries.
const (
	pollTimeout  = 30 * time.Second
	pollInterval = 20 * time.Millisecond
)

// poll tries until it succeeds, and fails the test with what was waited for when that takes too long.
func poll(t *testing.T, waitingFor string, try func() bool) {
	t.Helper()
	deadline := time.After(pollTimeout)
	for !try() {
		select {
		case <-deadline:
			require.FailNow(t, "timed out waiting for "+waitingFor)
		case <-time.After(pollInterval):
		}
	}
}

// createIssue costs 20 points.
const createIssue = `mutation { createIssue(input: {repositoryId: "R_1", title: "Once"}) { issue { id number } } }`

// data returns what the resolvers returned.
func data(t *testing.T, r reply) string {
	t.Helper()
	var body struct{ Data json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(r.body), &body), r.body)
	return string(body.Data)
}
