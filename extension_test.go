package ratelimit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// extensionPolicy has a budget of 100 points a minute for everybody, and of ten rows an hour for exports.
const extensionPolicy = `
version: 1
default: free
tiers:
  free:
    limits:
      minute: {capacity: 100, per: minute}
    operations:
      Query.export:
        limits:
          exports: {unit: exports, capacity: 10, per: hour}
  blocked: {blocked: true}
tenants:
  blocked: {tier: blocked}
`

// listQuery costs 1 for the call, 1 for the root type and 60 for the users.
const listQuery = `{ users(first: 60) { name } }`

// limitedServer is the server of gqlgen.yml with the extension, and without sockets.
type limitedServer struct {
	http.Handler

	t        *testing.T
	clock    *ratelimittest.Clock
	store    *ratelimittest.Store
	server   *handler.Server
	resolver *testserver.Resolver
}

func newLimitedServer(t *testing.T) *limitedServer {
	t.Helper()
	policy, err := tiers.Parse([]byte(extensionPolicy))
	require.NoError(t, err)
	snapshot, err := tiers.Compile(policy)
	require.NoError(t, err)
	l := &limitedServer{t: t, clock: &ratelimittest.Clock{}, resolver: &testserver.Resolver{}}
	l.store = ratelimittest.NewStore(l.clock)
	l.server = handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: l.resolver}))
	l.server.AddTransport(transport.POST{})
	l.server.Use(ratelimit.New(ratelimit.Config{
		Store: l.store, Policy: snapshot, Observe: ratelimit.ObserveConfig{Logger: slog.New(slog.DiscardHandler)},
		Subject: ratelimit.ByHeader("X-Tenant", func(_ context.Context, tenant string) (ratelimit.Subject, bool) {
			return ratelimit.Subject{Tenant: tenant}, true
		}),
	}))
	l.Handler = ratelimit.Handler(l.server)
	return l
}

// answer is what a client got, as far as these tests look at it.
type answer struct {
	status int
	header http.Header
	body   string
	Errors []struct{ Extensions struct{ Code string } }
	// Extensions.RateLimit has what the budget came to.
	Extensions struct{ RateLimit map[string]any }
}

func (a *answer) code() string {
	if len(a.Errors) == 0 {
		return ""
	}
	return a.Errors[0].Extensions.Code
}

func (l *limitedServer) post(tenant, query string) *answer {
	l.t.Helper()
	body, err := json.Marshal(map[string]string{"query": query})
	require.NoError(l.t, err)
	r := httptest.NewRequestWithContext(l.t.Context(), http.MethodPost, "/query", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Tenant", tenant)
	recorder := httptest.NewRecorder()
	l.ServeHTTP(recorder, r)
	a := &answer{status: recorder.Code, header: recorder.Header(), body: recorder.Body.String()}
	require.NoError(l.t, json.Unmarshal(recorder.Body.Bytes(), a))
	return a
}

func TestAnAdmittedOperationIsChargedItsPriceAndReported(t *testing.T) {
	t.Parallel()
	f := newLimitedServer(t)
	reply := f.post("free", listQuery)
	require.Equal(t, http.StatusOK, reply.status)
	signal := reply.Extensions.RateLimit
	require.EqualValues(t, 62, signal["cost"])
	require.EqualValues(t, 62, signal["charged"])
	require.EqualValues(t, 38, signal["remaining"])
	require.Equal(t, "minute", signal["limit"])
}

func TestARefusalRunsNoResolverAndChargesNothing(t *testing.T) {
	t.Parallel()
	f := newLimitedServer(t)
	f.post("free", listQuery)
	asked := f.resolver.Asked.Load()

	refused := f.post("free", listQuery)
	require.Equal(t, http.StatusTooManyRequests, refused.status)
	require.Equal(t, ratelimitclient.CodeRateLimited, refused.code())
	require.EqualValues(t, 0, refused.Extensions.RateLimit["charged"])
	require.EqualValues(t, 38, refused.Extensions.RateLimit["remaining"])
	require.Equal(t, asked, f.resolver.Asked.Load())

	// 62 − 38 points come back at 100 a minute.
	require.Equal(t, "15", refused.header.Get("Retry-After"))
	f.clock.Advance(14_399 * time.Millisecond)
	require.Equal(t, http.StatusTooManyRequests, f.post("free", listQuery).status)
	f.clock.Advance(1 * time.Millisecond)
	require.Equal(t, http.StatusOK, f.post("free", listQuery).status)
}

func TestBudgetsOfTenantsAreSeparate(t *testing.T) {
	t.Parallel()
	f := newLimitedServer(t)
	f.post("a", listQuery)
	require.Equal(t, http.StatusTooManyRequests, f.post("a", listQuery).status)
	require.Equal(t, http.StatusOK, f.post("b", listQuery).status)
}

func TestResolversSeeTheDecision(t *testing.T) {
	t.Parallel()
	f := newLimitedServer(t)
	var decision ratelimit.Decision
	f.resolver.OnExport = func(ctx context.Context, _ int) error {
		decision, _ = ratelimit.FromContext(ctx)
		return nil
	}
	f.post("free", `{ export(rows: 1) }`)
	require.Equal(t, ratelimit.OutcomeAdmitted, decision.Outcome)
	require.Equal(t, "free", decision.Subject.Tenant)
	require.EqualValues(t, 6, decision.Points)
	_, ok := ratelimit.FromContext(context.Background())
	require.False(t, ok)
}

func TestChargeTakesWhatOnlyAResolverKnows(t *testing.T) {
	t.Parallel()
	f := newLimitedServer(t)
	f.resolver.OnExport = func(ctx context.Context, rows int) error {
		return ratelimit.Charge(ctx, "exports", int64(rows))
	}
	require.Empty(t, f.post("free", `{ export(rows: 7) }`).code())
	refused := f.post("free", `{ export(rows: 4) }`)
	require.Equal(t, http.StatusOK, refused.status, "the operation itself was admitted")
	require.Equal(t, ratelimitclient.CodeRateLimited, refused.code())
	require.Contains(t, refused.body, `"path":["export"]`)
	require.Empty(t, f.post("free", `{ export(rows: 3) }`).code(), "nothing was taken from the rest")
}

func TestChargeOutsideAnOperationIsAnError(t *testing.T) {
	t.Parallel()
	require.ErrorIs(t, ratelimit.Charge(context.Background(), "exports", 1), ratelimit.ErrNoDecision)
}

func TestTheErrorPresenterSeesRefusals(t *testing.T) {
	t.Parallel()
	f := newLimitedServer(t)
	var mu sync.Mutex
	var seen []string
	f.server.SetErrorPresenter(func(ctx context.Context, err error) *gqlerror.Error {
		var refused *ratelimit.RefusedError
		if errors.As(err, &refused) {
			mu.Lock()
			seen = append(seen, refused.Code)
			mu.Unlock()
		}
		return graphql.DefaultErrorPresenter(ctx, err)
	})
	f.post("blocked", listQuery)
	require.Equal(t, []string{ratelimitclient.CodeTenantBlocked}, seen)
}

func TestNoneIsNoMistakeWhereAFieldSaysSo(t *testing.T) {
	t.Parallel()
	err := ratelimit.New(ratelimit.Config{
		Pricing: ratelimit.PricingConfig{InvalidDocument: ratelimit.None},
		Idempotency: ratelimit.IdempotencyConfig{
			MaxAnswers: ratelimit.None, MaxAnswer: ratelimit.None,
		},
		Outage: ratelimit.OutageConfig{
			MaxConcurrent: ratelimit.None,
		},
		Answer: ratelimit.AnswerConfig{MaxBytes: ratelimit.None},
	}).Validate(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
	require.ErrorContains(t, err, "Config.Store is nil", "it is checked at all")
	for _, field := range []string{"InvalidDocument", "MaxAnswers", "MaxAnswer", "MaxConcurrent", "MaxBytes"} {
		require.NotContains(t, err.Error(), field)
	}
}

func TestEveryMistakeInTheConfigurationIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	schema := testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}})
	err := ratelimit.New(ratelimit.Config{
		Response: ratelimit.ResponseConfig{
			HelpURL: "/limits", Headers: 64, Status: map[string]int{"NO_CODE": 429, ratelimitclient.CodeRateLimited: 302},
		},
		Idempotency: ratelimit.IdempotencyConfig{
			Lease: 1, QueryTTL: -1, Headers: []string{"a b"}, MaxAnswers: -3, MaxAnswer: -2, Keys: 9,
		},
		Observe: ratelimit.ObserveConfig{
			TopTenants: -1, Thresholds: []float64{.1, .2, .3, .4, .5, .6, .7, 1.5, math.NaN()},
		},
		Pricing: ratelimit.PricingConfig{Cost: cost.Config{Weights: map[string]float64{"Query.nothing": 1}}, InvalidDocument: -2},
		Outage:  ratelimit.OutageConfig{Instances: 1001, Percent: 101, MaxConcurrent: -2},
		Answer:  ratelimit.AnswerConfig{MaxBytes: -2},
	}).Validate(schema)
	for _, part := range []string{
		"Store", "Policy", "Subject", "Response.Headers", `HelpURL is "/limits"`, `"NO_CODE"`, `"RATE_LIMITED" is 302`, "Lease", "QueryTTL",
		"Headers has", "MaxAnswers is -3", "MaxAnswer is -2", "Keys is 9", "TopTenants", "Query.nothing",
		"Thresholds is 9", "Thresholds has 1.5", "Thresholds has NaN",
		"InvalidDocument is -2", "Instances is 1001", "Percent is 101", "MaxConcurrent is -2",
		"MaxBytes is -2",
	} {
		require.ErrorContains(t, err, part)
	}
}
