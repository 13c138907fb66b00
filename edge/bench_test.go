package edge_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/edge"
)

// BenchmarkDoor is what a request of one address and key costs beside a handler that reads it and does nothing.
func BenchmarkDoor(b *testing.B) {
	nothing := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	behind := func(capacity int64) http.Handler {
		limits := []bucket.Limit{
			{Name: "requests", Unit: bucket.Requests, Capacity: capacity, Period: time.Minute},
			{Name: "bytes", Unit: edge.Bytes, Capacity: 1_000_000_000_000, Period: time.Second},
		}
		door, err := edge.New(edge.Config{
			Address: edge.AddressConfig{Limits: limits, SiteLimits: none}, Key: edge.KeyConfig{Header: "X-Api-Key", Limits: limits},
			Observe: edge.ObserveConfig{Logger: slog.New(slog.DiscardHandler)},
		})
		require.NoError(b, err)
		return door.Handler(nothing)
	}
	for _, c := range []struct {
		name    string
		handler http.Handler
	}{{"none", nothing}, {"passes", behind(10_000_000_000)}, {"refuses", behind(1)}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			body := `{"query":"{ me { id } }` + strings.Repeat(" ", 1000) + `"}`
			for b.Loop() {
				r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/query", strings.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("X-Api-Key", "a-key")
				c.handler.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
}
