//go:build unix

package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// constantly is an extension that answers with a constant: the floor under everything that a limiter tells.
type constantly struct{ told any }

func (constantly) ExtensionName() string                   { return "Constantly" }
func (constantly) Validate(graphql.ExecutableSchema) error { return nil }

func (constantly) InterceptOperation(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
	return next(ctx)
}

func (c constantly) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	response := next(ctx)
	response.Extensions = map[string]any{"rateLimit": c.told}
	return response
}

// shortConstant has the size of a short answer, and fullConstant that of a full one about four limits.
type shortConstant struct {
	Cost       int64   `json:"cost"`
	Charged    int64   `json:"charged"`
	Limit      string  `json:"limit"`
	Unit       string  `json:"unit"`
	Capacity   int64   `json:"capacity"`
	Remaining  int64   `json:"remaining"`
	ResetAfter float64 `json:"resetAfter"`
}

func fullConstant() ratelimitclient.RateLimit {
	actual := int64(12)
	limit := ratelimitclient.Limit{
		Name: "minute", Level: "tenant", Unit: "points", Capacity: 1_000_000_000, Remaining: 999_999_988, ResetAfter: 0.001,
	}
	return ratelimitclient.RateLimit{
		Cost: 12, Charged: 12, Actual: &actual, Limit: "minute", Unit: "points", Capacity: 1_000_000_000, Remaining: 999_999_988,
		ResetAfter: 0.001, Limits: []ratelimitclient.Limit{limit, limit, limit, limit}, Tier: "bench", Mode: "enforce",
	}
}

// contenders are servers with trivial resolvers: without a limiter, with constants in its place, and with one.
func contenders(b *testing.B) map[string]http.Handler {
	b.Helper()
	with := func(extension graphql.HandlerExtension) http.Handler {
		server := newGraphQLServer(&testserver.Resolver{})
		server.Use(extension)
		return server
	}
	limiter := func(response ratelimit.ResponseConfig, mostBytes int64) http.Handler {
		return ratelimit.Handler(with(ratelimit.New(ratelimit.Config{
			Store: bucket.NewMemory(bucket.MemoryConfig{}), Policy: benchPolicy(b), Subject: byTenantHeader,
			Response: response, Answer: ratelimit.AnswerConfig{MaxBytes: mostBytes},
		})))
	}
	return map[string]http.Handler{
		"bare":  newGraphQLServer(&testserver.Resolver{}),
		"again": newGraphQLServer(&testserver.Resolver{}),
		"floor-short": with(constantly{shortConstant{
			Cost: 12, Charged: 12, Limit: "minute", Unit: "points", Capacity: 1_000_000_000, Remaining: 999_999_988, ResetAfter: 0.001,
		}}),
		"floor-full":     with(constantly{fullConstant()}),
		"short":          limiter(ratelimit.ResponseConfig{}, 0),
		"full":           limiter(ratelimit.ResponseConfig{Full: true}, 0),
		"short-any-size": limiter(ratelimit.ResponseConfig{}, ratelimit.None),
	}
}

// BenchmarkServerShare reports which share of its throughput a server keeps, by processor time and with garbage collection:
// the contenders take long turns in random order, ratios are formed inside a round, and the medians of all rounds are
// reported. Run it with -benchtime 15x.
func BenchmarkServerShare(b *testing.B) {
	const turn = 150 * time.Millisecond
	servers := contenders(b)
	body, err := json.Marshal(request{Query: `{ users(first: 10) { id name } }`}.body())
	if err != nil {
		b.Fatal(err)
	}
	took := func(handler http.Handler) float64 {
		n, began := 0, processorTime()
		for {
			for range 100 {
				serveOnce(b, handler, body)
			}
			n += 100
			if spent := processorTime() - began; spent >= turn {
				return float64(spent) / float64(n)
			}
		}
	}
	names := make([]string, 0, len(servers))
	for name := range servers {
		names = append(names, name)
		took(servers[name])
	}
	kept := map[string][]float64{}
	for b.Loop() {
		round := map[string]float64{}
		rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for _, name := range names {
			round[name] = took(servers[name])
		}
		for name, each := range round {
			kept[name] = append(kept[name], round["bare"]/each)
		}
	}
	for name, shares := range kept {
		slices.Sort(shares)
		b.ReportMetric(shares[len(shares)/2], name)
	}
}

func serveOnce(b *testing.B, handler http.Handler, body []byte) {
	b.Helper()
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Tenant", "bench")
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, r)
	if recorder.Code != http.StatusOK {
		b.Fatal(recorder.Body.String())
	}
}

// processorTime is what this process has used of processors.
func processorTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
