package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAFloodComesFromItsAddressesAndNeverAsksTheSameTwice(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	from, texts := map[string]bool{}, map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		host, _, _ := strings.Cut(r.RemoteAddr, ":")
		from[host] = true
		if texts[string(body)] {
			http.Error(w, "again", http.StatusConflict)
			return
		}
		texts[string(body)] = true
		_, _ = w.Write([]byte("{}"))
	}))
	f := flood{URL: server.URL, Seconds: 1, Connections: 4, Addresses: 3, Document: "a refused operation"}
	found := f.run(t.Context())
	// The end of a flood gives requests up that the server still answers.
	server.Close()
	require.Len(t, from, 3)
	require.Positive(t, found.Answers)
	require.Zero(t, found.Refused)
	require.Equal(t, 2*found.Answers, found.Bytes)
}

func TestEachFloodHasADocument(t *testing.T) {
	t.Parallel()
	for _, f := range floodsOf(1) {
		require.Contains(t, formats, f.Document)
		require.Contains(t, formats[f.Document](), "#")
	}
}

func TestAProcessHasSpentTimeAndMemory(t *testing.T) {
	t.Parallel()
	require.Positive(t, peakOf(os.Getpid()))
	require.Zero(t, peakOf(-1))
	require.Zero(t, processorOf(-1))
}
