package e2e_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

func TestAnOperationThatBreaksARuleOfShapeHasItsPriceAllTheSame(t *testing.T) {
	t.Parallel()
	f := newFixture(t, showShadow)
	signal := f.post(request{Query: `{ page(first: 10, last: 20) { name } }`, Tenant: "shadow"}).rateLimit(t)
	require.EqualValues(t, 22, signal["cost"])
	require.EqualValues(t, 22, signal["charged"])
	require.Equal(t, ratelimitclient.CodeQueryLimitExceeded, signal["wouldRefuse"])
}

func TestAPriceIsNeitherNegativeNorBeyondWhatABudgetHolds(t *testing.T) {
	t.Parallel()
	price := int64(-5)
	f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Pricing.Points = func(cost.Cost) int64 { return price } })
	require.EqualValues(t, 0, f.post(request{Query: cheapQuery}).rateLimit(t)["cost"])
	price = math.MaxInt64
	require.EqualValues(t, cost.MaxPoints, f.post(request{Query: cheapQuery, Tenant: "unlimited"}).rateLimit(t)["cost"])
}

func TestABodyThatIsNotJSONIsNotCharged(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	httpRequest, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url, strings.NewReader("not json"))
	require.NoError(t, err)
	httpRequest.Header.Set("Content-Type", "application/json")
	httpRequest.Header.Set("X-Tenant", "free")
	response, err := f.client.Do(httpRequest)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusBadRequest, response.StatusCode)
	require.Empty(t, f.store.Takes())
}

func TestWhatAnExtensionBeforeTheLimiterRefusesIsNotCharged(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	before := newGraphQLServer(f.resolver)
	before.Use(refusingExtension{})
	before.Use(ratelimit.New(ratelimit.Config{
		Store: f.store, Policy: compiledPolicy(t), Subject: byTenantHeader,
	}))
	server := httptest.NewServer(ratelimit.Handler(before))
	defer server.Close()
	f.url = server.URL
	require.Contains(t, f.post(request{Query: listQuery}).Body, "refused by another")
	require.Empty(t, f.store.Takes())
}

func TestAVariableThatCannotBeCoercedMakesADocumentInvalid(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	reply := f.post(request{Query: `query($n: Int) { users(first: $n) { name } }`, Variables: map[string]any{"n": "many"}})
	require.Equal(t, http.StatusUnprocessableEntity, reply.Status)
	require.EqualValues(t, 1, reply.rateLimit(t)["charged"])
}

func TestAnInvalidDocumentOnAWebSocketIsChargedOnceTheClientIsKnown(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	s := f.dial("free", nil)
	const invalid = `{ nothingLikeThis }`
	first := strings.Join(s.run("1", request{Query: invalid}), "\n")
	require.Contains(t, first, "Cannot query field", "the client is told what is wrong with its document")
	require.Empty(t, f.store.Takes())
	s.run("2", request{Query: cheapQuery})
	s.run("3", request{Query: invalid})
	takes := f.store.Takes()
	require.Len(t, takes, 2)
	require.EqualValues(t, 1, takes[1].Amounts.Of(bucket.Points))
}

func TestASubjectFunctionThatPanicsEndsNoConnection(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Subject = func(_ context.Context, r *ratelimit.Request) (ratelimit.Subject, error) {
			return ratelimit.Subject{Tenant: "free " + r.Operation.Name}, nil
		}
	})
	s := f.dial("free", nil)
	s.run("1", request{Query: `{ nothingLikeThis }`})
	require.Contains(t, s.run("2", request{Query: cheapQuery})[0], `"Ada"`)
}

func TestADecisionObserverThatPanicsEndsNoOperation(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Observe.Admissions = 1
		cfg.Observe.Observer = event.Func(func(context.Context, event.Event) { panic("full disk") })
	})
	require.Equal(t, http.StatusOK, f.post(request{Query: cheapQuery}).Status)
}

// TestOnlyAWebSocketPassesTheHandler sends an Upgrade header that gqlgen's SSE transport ignores.
func TestOnlyAWebSocketPassesTheHandler(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	bare := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: f.resolver}))
	bare.AddTransport(transport.SSE{})
	bare.Use(ratelimit.New(ratelimit.Config{
		Store: f.store, Policy: compiledPolicy(t), Subject: byTenantHeader,
	}))
	server := httptest.NewServer(ratelimit.Handler(bare))
	defer server.Close()
	f.url = server.URL
	for _, upgrade := range []string{"x", "websocket"} {
		refused := f.sse(request{Query: cheapQuery, Tenant: "blocked", Header: http.Header{"Upgrade": {upgrade}}})
		require.Equal(t, http.StatusForbidden, refused.Status)
	}
}

func TestAKeyCountsWhateverUpgradeTheRequestAsksFor(t *testing.T) {
	t.Parallel()
	const mutation = `mutation { createUser(input: {name: "Grace"}) { id } }`
	f := newFixture(t, nil)
	bare := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: f.resolver}))
	bare.AddTransport(transport.SSE{})
	bare.AddTransport(transport.MultipartMixed{})
	bare.Use(ratelimit.New(ratelimit.Config{Store: f.store, Policy: compiledPolicy(t), Subject: byTenantHeader}))
	server := httptest.NewServer(ratelimit.Handler(bare))
	defer server.Close()
	f.url = server.URL
	for i, send := range []func(request) reply{f.sse, f.multipartMixed} {
		r := request{Query: mutation, Key: fmt.Sprintf("%s-%d", testKey, i), Header: http.Header{"Upgrade": {"websocket"}}}
		require.Contains(t, send(r).Body, `"charged":14`)
		require.Contains(t, send(r).Body, `"replayed":true`)
		require.EqualValues(t, i+1, f.resolver.Created.Load())
	}
}

func TestEarlyHintsPassTheHandler(t *testing.T) {
	t.Parallel()
	recorder := httptest.NewRecorder()
	ratelimit.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusAccepted)
	})).ServeHTTP(statusRecorder{recorder, t}, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	require.Equal(t, []string{"103", "202"}, recorder.Header().Values("X-Statuses"))
}

// statusRecorder notes every status in a header, which ResponseRecorder does not.
type statusRecorder struct {
	*httptest.ResponseRecorder
	t *testing.T
}

func (r statusRecorder) WriteHeader(status int) {
	r.t.Helper()
	r.Header().Add("X-Statuses", strconv.Itoa(status))
}

func TestAChargeInPointsIsPartOfWhatWasChargedAndOfTheHeaders(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.resolver.OnExport = func(ctx context.Context, rows int) error {
		if err := ratelimit.Charge(ctx, bucket.Points, 5); err != nil {
			return err
		}
		return ratelimit.Charge(ctx, "exports", int64(rows))
	}
	reply := f.post(request{Query: `{ export(rows: 7) }`})
	require.EqualValues(t, 6+5, reply.rateLimit(t)["charged"])
	require.Contains(t, reply.Header.Get("RateLimit"), `"minute";r=89`)
	require.Contains(t, reply.Header.Get("RateLimit"), `"operation:Query.export:exports";r=3`)
}

func TestAChargeFailsAsItsLimitsDoWhenTheStoreIsAway(t *testing.T) {
	t.Parallel()
	for tenant, want := range map[string]string{"free": "", "closed": ratelimitclient.CodeUnavailable} {
		t.Run(tenant, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			f.resolver.OnExport = func(ctx context.Context, _ int) error {
				f.store.Fail(bucket.ErrUnavailable)
				return ratelimit.Charge(ctx, bucket.Points, 1)
			}
			require.Equal(t, want, f.post(request{Query: `{ export(rows: 1) }`, Tenant: tenant}).errorCode(t))
		})
	}
}

func TestAChargeInShadowModeReportsWhatItWouldRefuse(t *testing.T) {
	t.Parallel()
	i := &instruments{t: t}
	f := newFixture(t, func(cfg *ratelimit.Config) {
		i.configure(cfg)
		showShadow(cfg)
	})
	f.resolver.OnExport = func(ctx context.Context, _ int) error { return ratelimit.Charge(ctx, bucket.Points, 29) }
	reply := f.post(request{Query: `{ export(rows: 1) }`, Tenant: "shadow"})
	require.Empty(t, reply.errorCode(t))
	require.Equal(t, ratelimitclient.CodeRateLimited, reply.rateLimit(t)["wouldRefuse"])
	require.Equal(t, map[string]float64{"shadowed": 1}, i.sums("ratelimit.charges", "ratelimit.outcome"))
	require.Equal(t, map[string]float64{"points": 1}, i.sums("ratelimit.charges", "ratelimit.unit"))
}

func TestAnInvalidDocumentIsNoPointOfTheCostHistogram(t *testing.T) {
	t.Parallel()
	i := &instruments{t: t}
	f := newFixture(t, i.configure)
	f.post(request{Query: `{ nothingLikeThis }`})
	require.Equal(t, map[string]float64{"": 1}, i.sums("ratelimit.decisions", "graphql.operation.type"))
	require.Empty(t, i.sums("ratelimit.operation.cost", "ratelimit.tier"))
}

func TestNamesInTelemetryAreShortAndValidUTF8(t *testing.T) {
	t.Parallel()
	i := &instruments{t: t}
	f := newFixture(t, func(cfg *ratelimit.Config) {
		i.configure(cfg)
		cfg.Subject = func(context.Context, *ratelimit.Request) (ratelimit.Subject, error) {
			return ratelimit.Subject{Tenant: strings.Repeat("a", 63) + "é\xff{}"}, nil
		}
	})
	f.post(request{Query: cheapQuery})
	attributes := attribute.NewSet(i.spans.Ended()[0].Attributes()...)
	tenant := valueOf(attributes, "ratelimit.tenant")
	require.True(t, utf8.ValidString(tenant))
	require.LessOrEqual(t, len(tenant), 64)
}
