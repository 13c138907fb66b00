package e2e_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/gqlgen-ratelimit/ratelimit"
)

func TestNoHistogramNamesATenantAndATenantHasASeriesForEachOutcomeAndOneOfPoints(t *testing.T) {
	t.Parallel()
	i := &instruments{t: t}
	f := newFixture(t, func(cfg *ratelimit.Config) {
		i.configure(cfg)
		cfg.Observe.Tenants = []string{"listed"}
	})
	for range 40 {
		f.post(request{Query: cheapQuery, Tenant: "listed"})
	}
	series := 0
	for _, m := range i.collect() {
		switch data := m.Data.(type) {
		case metricdata.Histogram[int64]:
			for _, p := range data.DataPoints {
				require.False(t, p.Attributes.HasValue("ratelimit.tenant"), m.Name)
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				require.False(t, p.Attributes.HasValue("ratelimit.tenant"), m.Name)
			}
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				if p.Attributes.HasValue("ratelimit.tenant") {
					series++
				}
			}
		default:
		}
	}
	require.Equal(t, 3, series, "admitted, limited and points")
	require.Equal(t, map[string]float64{"admitted": 20, "limited": 20}, i.sums("ratelimit.tenant.decisions", "ratelimit.outcome"))
	require.Equal(t, map[string]float64{"listed": 60}, i.sums("ratelimit.tenant.points", "ratelimit.tenant"))
}

func TestDecisionsAreCountedByTheOperationsThatAreNamedAndByNoOther(t *testing.T) {
	t.Parallel()
	i := &instruments{t: t}
	f := newFixture(t, func(cfg *ratelimit.Config) {
		i.configure(cfg)
		cfg.Observe.Operations = []string{"Named"}
	})
	f.post(request{Query: "query Named " + cheapQuery})
	f.post(request{Query: "query Other " + cheapQuery})
	f.post(request{Query: cheapQuery})
	require.Equal(t, map[string]float64{"Named": 1, "other": 2}, i.sums("ratelimit.operation.decisions", "graphql.operation.name"))
}

func TestTheSpanOfTheRequestHasTheOutcomeWhereThatIsAskedFor(t *testing.T) {
	t.Parallel()
	for _, asked := range []bool{true, false} {
		f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Observe.RootSpan = asked })
		recorder := tracetest.NewSpanRecorder()
		tracer := trace.NewTracerProvider(trace.WithSpanProcessor(recorder)).Tracer("test")
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, root := tracer.Start(r.Context(), "POST /query")
			defer root.End()
			ratelimit.Handler(f.server).ServeHTTP(w, r.WithContext(ctx))
		})
		asking := httptest.NewRequest(http.MethodPost, "/query", strings.NewReader(`{"query": "{ me { name } }"}`))
		asking.Header.Set("Content-Type", "application/json")
		asking.Header.Set("X-Tenant", "free")
		handler.ServeHTTP(httptest.NewRecorder(), asking)
		require.Len(t, recorder.Ended(), 1)
		attributes := attribute.NewSet(recorder.Ended()[0].Attributes()...)
		require.Equal(t, asked, attributes.HasValue("ratelimit.outcome"))
		if asked {
			require.Equal(t, "admitted", valueOf(attributes, "ratelimit.outcome"))
			require.Equal(t, "free", valueOf(attributes, "ratelimit.tier"))
		}
	}
}
