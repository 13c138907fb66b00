package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEachAnswerIsCountedOnceAndAsWhatItIs(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]struct {
		status int
		answers
	}{
		`{"data":{},"extensions":{"rateLimit":{"cost":0}}}`:                                                                   {200, answers{Store: 1}},
		`{"data":{},"extensions":{"rateLimit":{"storeUnavailable":true}}}`:                                                    {200, answers{Local: 1, Without: 1}},
		`{"errors":[{"extensions":{"code":"RATE_LIMITED"}}],"extensions":{"rateLimit":{}}}`:                                   {429, answers{Limited: 1}},
		`{"errors":[{"extensions":{"code":"RATE_LIMITED"}}],"extensions":{"rateLimit":{"storeUnavailable":true}}}`:            {429, answers{Limited: 1, Without: 1}},
		`{"errors":[{"extensions":{"code":"OVERLOADED"}}]}`:                                                                   {503, answers{Busy: 1, Without: 1}},
		`{"errors":[{"extensions":{"code":"TENANT_BLOCKED"}}],"extensions":{"rateLimit":{}}}`:                                 {403, answers{Other: 1}},
		`{"errors":[{"extensions":{"code":"RATE_LIMIT_UNAVAILABLE"}}],"extensions":{"rateLimit":{"storeUnavailable":true}}} `: {503, answers{Other: 1, Without: 1}},
		`not JSON`: {502, answers{None: 1}},
	} {
		var got answers
		got.count(want.status, []byte(body))
		require.Equal(t, want.answers, got, body)
	}
}

func TestALoadCountsEveryRequestOfEachClient(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") == blockedKey {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"errors":[{"extensions":{"code":"TENANT_BLOCKED"}}]}`))
			return
		}
		_, _ = w.Write([]byte(`{"data":{}}`))
	}))
	defer server.Close()
	l := load{URL: server.URL, Seconds: 1, Clients: []client{
		{Key: limitedKey, Burst: 20, EveryMillis: 500}, {Key: withinKey, PerSecond: 100}, {Key: blockedKey, PerSecond: 10},
	}}
	found := l.run(t.Context())
	require.Equal(t, []answers{{Store: 40}, {Store: 100}, {Other: 10}}, found.Clients)
	require.Positive(t, found.P99)
}
