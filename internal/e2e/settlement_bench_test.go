package e2e_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// BenchmarkRefund says what a whole server with and without refunds takes for an operation that comes to its
// estimate and for one that comes to less, on a memory store with four limits. The two servers take turns;
// the ratio is formed within a turn, and the figures are medians. The time includes that of settling.
func BenchmarkRefund(b *testing.B) {
	policy, err := tiers.Parse([]byte(fourLimits))
	require.NoError(b, err)
	snapshot, err := tiers.Compile(policy)
	require.NoError(b, err)
	serve := func(refund bool) (http.Handler, *ratelimit.Extension) {
		extension := ratelimit.New(ratelimit.Config{
			Store: bucket.NewMemory(bucket.MemoryConfig{}), Policy: snapshot, Subject: byTenantHeader,
			Settlement: ratelimit.SettlementConfig{Refund: refund},
		})
		server := newGraphQLServer(&testserver.Resolver{})
		server.Use(extension)
		return ratelimit.Handler(server), extension
	}
	without, _ := serve(false)
	with, extension := serve(true)
	for _, bench := range []struct{ name, query string }{
		{"as estimated", `{ users(first: 10) { id name } }`},
		{"less than estimated", `{ search(first: 10) { ... on User { id name } ... on Repository { id name } } }`},
	} {
		body, err := json.Marshal(request{Query: bench.query}.body())
		require.NoError(b, err)
		turn := func(handler http.Handler) float64 {
			start := time.Now()
			for range 200 {
				r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("X-Tenant", "bench")
				handler.ServeHTTP(httptest.NewRecorder(), r)
			}
			require.NoError(b, extension.AwaitSettled(b.Context()))
			return float64(time.Since(start).Nanoseconds()) / 200
		}
		b.Run(bench.name, func(b *testing.B) {
			var ratios, plain, refunding []float64
			turn(with)
			turn(without)
			for b.Loop() {
				x, y := turn(without), turn(with)
				plain, refunding, ratios = append(plain, x), append(refunding, y), append(ratios, y/x)
			}
			middle := func(values []float64) float64 {
				slices.Sort(values)
				return values[len(values)/2]
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(middle(plain)/1000, "µs-without")
			b.ReportMetric(middle(refunding)/1000, "µs-with")
			b.ReportMetric(middle(ratios), "ratio")
		})
	}
}
