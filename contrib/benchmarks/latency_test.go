package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func windowServer(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

const plainAnswer = `{"data":{"users":[]}}`

func send(t *testing.T, w *window) (*seen, error) {
	t.Helper()
	s := &sender{}
	defer s.hangUp()
	return s.send(t.Context(), w)
}

// A server that stands still for a while makes all requests late that are due meanwhile, and not only those that it has.
func TestARequestThatWaitsForASlowServerIsTimedFromWhenItWasDue(t *testing.T) {
	t.Parallel()
	const requests, perSecond = 4 * mostConnections, 100_000
	still := make(chan struct{})
	var asked atomic.Int64
	address := windowServer(t, func(w http.ResponseWriter, _ *http.Request) {
		// All connections are in use from here on: the rest of the window cannot be sent.
		if asked.Add(1) == mostConnections {
			time.AfterFunc(100*time.Millisecond, func() { close(still) })
		}
		<-still
		_, _ = w.Write([]byte(plainAnswer))
	})
	found, err := send(t, &window{Address: address, Path: "/", PerSecond: perSecond, Requests: requests})
	require.NoError(t, err)
	require.Len(t, found.Took, requests)
	require.Len(t, found.Late, requests)
	for _, took := range found.Took {
		// The last was due five milliseconds after the first.
		require.Greater(t, took, int64(90*time.Millisecond))
	}
}

func TestAWindowAsksForManyTenantsAndCountsAnswersWithoutTheStore(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	address := windowServer(t, func(w http.ResponseWriter, r *http.Request) {
		text := `{"data":{"users":[]},"extensions":{"rateLimit":{"cost":1}}}`
		if asked.Add(1)%4 == 0 {
			text = `{"data":{"users":[]},"extensions":{"rateLimit":{"storeUnavailable":true}}}`
		}
		if r.URL.Path != "/path" || r.Header.Get("X-Tenant") != tenantNames[asked.Load()] {
			http.Error(w, "another request", http.StatusBadRequest)
			return
		}
		_, _ = w.Write([]byte(text))
	})
	// One after the other: none is due before the one before is answered, whatever the machine does.
	s := &sender{}
	defer s.hangUp()
	away := 0
	for range 8 {
		found, err := s.send(t.Context(), &window{Address: address, Path: "/path", PerSecond: 1000, Requests: 1, Tells: tellsOne})
		require.NoError(t, err)
		away += found.Away
	}
	require.Equal(t, 2, away)
}

func TestAWindowWithAWrongAnswerFails(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{
		`{"errors":[]}`: errNotServed,
		`{"data":{"users":[]},"extensions":{"rateLimit":{"cost":1}}}`: errNotTold,
	} {
		address := windowServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) })
		_, err := send(t, &window{Address: address, Path: "/", PerSecond: 1000, Requests: 2})
		require.ErrorIs(t, err, want)
	}
}

func TestAWindowThatSendsNothingShowsTheTimer(t *testing.T) {
	t.Parallel()
	found, err := send(t, &window{PerSecond: 10_000, Requests: 10})
	require.NoError(t, err)
	require.Empty(t, found.Took)
	require.Len(t, found.Late, 10)
	for _, late := range found.Late {
		require.GreaterOrEqual(t, late, int64(0))
	}
}

// Windows are chosen by the timer of their sender, however long their own answers took.
func TestQuietWindowsAreThoseOfAPunctualSender(t *testing.T) {
	t.Parallel()
	r := &latencyRow{path: "/", late: []float64{0.3, 0.1, 0.9, 0.2, 0.5, 0.6, 0.7, 0.8}}
	for i := range r.late {
		r.windows = append(r.windows, &seen{Took: []int64{int64(100 - i), int64(i)}})
	}
	waits, most := r.quiet()
	require.Equal(t, []float64{1, 3, 97, 99}, waits)
	require.InDelta(t, 0.2, most, 1e-9)
}

func TestAPartThatIsNotThereIsAMistake(t *testing.T) {
	t.Parallel()
	var address string
	_, err := startPart(t.Context(), roleServer, "no address", &address)
	require.Error(t, err)
}
