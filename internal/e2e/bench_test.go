package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
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

func benchPolicy(tb testing.TB) *tiers.Snapshot {
	tb.Helper()
	policy, err := tiers.Parse([]byte(fourLimits))
	require.NoError(tb, err)
	snapshot, err := tiers.Compile(policy)
	require.NoError(tb, err)
	return snapshot
}

// BenchmarkServer serves one query over and over: bare, and with the extension and the Handler on a
// memory store with four limits. The difference of the two is what the limiter adds to a request.
func BenchmarkServer(b *testing.B) {
	bare := newGraphQLServer(&testserver.Resolver{})
	limited := newGraphQLServer(&testserver.Resolver{})
	limited.Use(ratelimit.New(ratelimit.Config{
		Store: bucket.NewMemory(bucket.MemoryConfig{}), Policy: benchPolicy(b), Subject: byTenantHeader,
	}))
	body, err := json.Marshal(request{Query: `{ users(first: 10) { id name } }`}.body())
	if err != nil {
		b.Fatal(err)
	}
	for name, handler := range map[string]http.Handler{"bare": bare, "limited": ratelimit.Handler(limited)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				serveOnce(b, handler, body)
			}
		})
	}
}

// hooks are the hooks of an extension and the Handler around a server that does nothing, with and without them: what a whole
// server shows the difference of, without its noise.
func hooks(tb testing.TB, configure func(*ratelimit.Config)) (with, without http.Handler) {
	tb.Helper()
	cfg := ratelimit.Config{Store: bucket.NewMemory(bucket.MemoryConfig{}), Policy: benchPolicy(tb), Subject: byTenantHeader}
	configure(&cfg)
	extension := ratelimit.New(cfg)
	schema := testserver.NewExecutableSchema(testserver.Config{})
	require.NoError(tb, extension.Validate(schema))
	const query = `{ users(first: 10) { id name } }`
	doc, errs := gqlparser.LoadQueryWithRules(schema.Schema(), query, nil)
	require.Empty(tb, errs)
	user := `{"id":"U-1","name":"Ann"}`
	data := []byte(`{"users":[` + strings.Repeat(user+",", 9) + user + `]}`)
	serve := func(hooked bool) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx := graphql.StartOperationTrace(r.Context())
			opCtx := &graphql.OperationContext{
				RawQuery: query, Doc: doc, Operation: doc.Operations[0], Headers: r.Header, Variables: map[string]any{},
			}
			execute := func(context.Context) *graphql.Response { return &graphql.Response{Data: data} }
			response := execute
			ctx = graphql.WithOperationContext(ctx, opCtx)
			if hooked {
				_ = extension.MutateOperationContext(ctx, opCtx)
				response = func(ctx context.Context) *graphql.Response {
					var decided context.Context
					inner := extension.InterceptOperation(ctx, func(ctx context.Context) graphql.ResponseHandler {
						decided = ctx //nolint:fatcontext // gqlgen hands it on the same way, once
						return execute
					})
					return extension.InterceptResponse(decided, inner)
				}
			}
			text, err := json.Marshal(response(ctx))
			if err != nil {
				tb.Error(err)
			}
			_, _ = w.Write(text)
		})
	}
	return ratelimit.Handler(serve(true)), serve(false)
}

// What is measured: short and full answers, an observer that is told of one in a hundred operations that ran, and refunds, which add
// up what an operation comes to.
func tellingOne(*ratelimit.Config) {}

func tellingAll(cfg *ratelimit.Config) { cfg.Response.Full = true }

func observedNowAndThen(cfg *ratelimit.Config) {
	cfg.Observe = ratelimit.ObserveConfig{Observer: event.NewChannel(1), Admissions: 0.01}
}

func refunding(cfg *ratelimit.Config) { cfg.Settlement.Refund = true }

// hookRequest is a request to [hooks].
func hookRequest() *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header.Set("X-Tenant", "bench")
	// The server makes one for each response: that is no work of the extension.
	return r.WithContext(graphql.WithResponseContext(r.Context(), graphql.DefaultErrorPresenter, graphql.DefaultRecover))
}

// BenchmarkExtension runs the hooks of the extension, and without them what is around them.
func BenchmarkExtension(b *testing.B) {
	short, without := hooks(b, tellingOne)
	full, _ := hooks(b, tellingAll)
	observed, _ := hooks(b, observedNowAndThen)
	refunds, _ := hooks(b, refunding)
	for _, bench := range []struct {
		name    string
		handler http.Handler
	}{{"without", without}, {"short", short}, {"full", full}, {"observed", observed}, {"refunding", refunds}} {
		b.Run(bench.name, func(b *testing.B) {
			r, w := hookRequest(), discarding{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				bench.handler.ServeHTTP(w, r)
			}
		})
	}
}

// discarding is a ResponseWriter that keeps nothing but the headers.
type discarding struct{ header http.Header }

func (w discarding) Header() http.Header          { return w.header }
func (discarding) Write(text []byte) (int, error) { return len(text), nil }
func (discarding) WriteHeader(int)                {}

// BenchmarkAnswer serves an answer of 201 fields with and without a bound on its bytes.
func BenchmarkAnswer(b *testing.B) {
	body, err := json.Marshal(request{Query: `{ users(first: 100) { id name } }`}.body())
	require.NoError(b, err)
	for _, bench := range []struct {
		name string
		most int64
	}{{"unbounded", ratelimit.None}, {"bounded", 0}} {
		server := newGraphQLServer(&testserver.Resolver{})
		server.Use(ratelimit.New(ratelimit.Config{
			Store: bucket.NewMemory(bucket.MemoryConfig{}), Policy: benchPolicy(b), Subject: byTenantHeader,
			Answer: ratelimit.AnswerConfig{MaxBytes: bench.most},
		}))
		handler := ratelimit.Handler(server)
		b.Run(bench.name, func(b *testing.B) {
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("X-Tenant", "bench")
			w := discarding{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				r.Body = io.NopCloser(bytes.NewReader(body))
				clear(w.header)
				handler.ServeHTTP(w, r)
			}
		})
	}
}
