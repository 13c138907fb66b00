package ratelimit_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// fourLimits never refuses what a benchmark asks for, and shows four limits in each answer.
const fourLimits = `
version: 1
default: bench
tiers:
  bench:
    limits:
      second: {capacity: 1000000000, per: second}
      minute: {capacity: 1000000000, per: minute}
      hour: {capacity: 1000000000, per: hour}
      requests: {unit: requests, capacity: 1000000000, per: second}
`

// BenchmarkServer serves one query over and over: bare, and with the extension and the Handler on a
// memory store with four limits. The difference of the two is what the limiter adds to a request.
func BenchmarkServer(b *testing.B) {
	policy, err := tiers.Parse([]byte(fourLimits))
	if err != nil {
		b.Fatal(err)
	}
	snapshot, err := tiers.Compile(policy)
	if err != nil {
		b.Fatal(err)
	}
	bare := newGraphQLServer(&testserver.Resolver{})
	limited := newGraphQLServer(&testserver.Resolver{})
	limited.Use(ratelimit.New(ratelimit.Config{
		Store: bucket.NewMemory(bucket.MemoryConfig{}), Policy: snapshot, Subject: byTenantHeader,
	}))
	body, err := json.Marshal(request{Query: `{ users(first: 10) { id name } }`}.body())
	if err != nil {
		b.Fatal(err)
	}
	for name, handler := range map[string]http.Handler{"bare": bare, "limited": ratelimit.Handler(limited)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("X-Tenant", "bench")
				recorder := httptest.NewRecorder()
				handler.ServeHTTP(recorder, r)
				if recorder.Code != http.StatusOK {
					b.Fatal(recorder.Body.String())
				}
			}
		})
	}
}
