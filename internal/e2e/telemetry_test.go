package e2e_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
)

// discard is a log that is written, and that nobody reads.
var discard = slog.New(slog.NewTextHandler(io.Discard, nil))

// instruments collects what an extension reports.
type instruments struct {
	t      *testing.T
	spans  *tracetest.SpanRecorder
	reader *metric.ManualReader
}

func (i *instruments) configure(cfg *ratelimit.Config) {
	cfg.Observe.Logger = discard
	i.spans, i.reader = tracetest.NewSpanRecorder(), metric.NewManualReader()
	cfg.Observe.TracerProvider = trace.NewTracerProvider(trace.WithSpanProcessor(i.spans))
	cfg.Observe.MeterProvider = metric.NewMeterProvider(metric.WithReader(i.reader))
}

// sums returns the points of a counter by the value of one attribute.
func (i *instruments) sums(name string, by attribute.Key) map[string]float64 {
	i.t.Helper()
	sums := make(map[string]float64)
	for _, m := range i.collect() {
		if m.Name != name {
			continue
		}
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				sums[valueOf(p.Attributes, by)] += float64(p.Value)
			}
		case metricdata.Sum[float64]:
			for _, p := range data.DataPoints {
				sums[valueOf(p.Attributes, by)] += p.Value
			}
		case metricdata.Histogram[int64]:
			for _, p := range data.DataPoints {
				sums[valueOf(p.Attributes, by)] += float64(p.Sum)
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				sums[valueOf(p.Attributes, by)] += float64(p.Count)
			}
		}
	}
	return sums
}

func (i *instruments) collect() []metricdata.Metrics {
	i.t.Helper()
	var collected metricdata.ResourceMetrics
	require.NoError(i.t, i.reader.Collect(context.Background(), &collected))
	if len(collected.ScopeMetrics) == 0 {
		// Nothing was measured yet.
		return nil
	}
	require.Len(i.t, collected.ScopeMetrics, 1)
	return collected.ScopeMetrics[0].Metrics
}

func valueOf(set attribute.Set, key attribute.Key) string {
	value, _ := set.Value(key)
	return value.String()
}

func TestADecisionIsASpanWithWhatWasDecided(t *testing.T) {
	t.Parallel()
	i := &instruments{t: t}
	f := newFixture(t, i.configure)
	f.post(request{Query: listQuery})
	ended := i.spans.Ended()
	require.Len(t, ended, 1)
	require.Equal(t, "ratelimit.decide", ended[0].Name())
	attributes := attribute.NewSet(ended[0].Attributes()...)
	for key, want := range map[attribute.Key]string{
		"ratelimit.outcome": "admitted", "ratelimit.tenant": "free", "ratelimit.tier": "free",
		"ratelimit.mode": "enforce", "ratelimit.cost": "62", "ratelimit.charged": "62", "ratelimit.remaining": "38",
	} {
		require.Equal(t, want, valueOf(attributes, key), key)
	}
	require.True(t, attributes.HasValue("ratelimit.store.duration"))
}

func TestMetricsCountDecisionsCostsAndStoreCalls(t *testing.T) {
	t.Parallel()
	i := &instruments{t: t}
	f := newFixture(t, i.configure)
	f.post(request{Query: listQuery})
	f.post(request{Query: listQuery})
	f.store.Fail(bucket.ErrAmbiguous)
	f.post(request{Query: cheapQuery})
	f.store.Fail(redisclient.ErrBreakerOpen)
	f.post(request{Query: cheapQuery})

	require.Equal(t, map[string]float64{"admitted": 1, "limited": 1, "admitted_locally": 2},
		i.sums("ratelimit.decisions", "ratelimit.outcome"))
	require.Equal(t, map[string]float64{"free": 62 + 62 + 3 + 3}, i.sums("ratelimit.operation.cost", "ratelimit.tier"))
	require.Equal(t, map[string]float64{"ok": 2, "ambiguous": 1, "breaker_open": 1}, i.sums("ratelimit.store.duration", "ratelimit.store.result"))
	require.Equal(t, map[string]float64{"ambiguous": 1, "breaker_open": 1}, i.sums("ratelimit.store.errors", "ratelimit.store.result"))
	for _, m := range i.collect() {
		require.NotEmpty(t, m.Description, m.Name)
		require.NotEmpty(t, m.Unit, m.Name)
	}
}

func TestMetricsNameNoTenantUnlessToldTo(t *testing.T) {
	t.Parallel()
	i := &instruments{t: t}
	f := newFixture(t, i.configure)
	f.post(request{Query: cheapQuery})
	require.Equal(t, map[string]float64{"": 1}, i.sums("ratelimit.decisions", "ratelimit.tenant"))
	require.Empty(t, i.sums("ratelimit.tenant.decisions", "ratelimit.tenant"))
}

func TestMetricsNameListedTenantsAndTheBusiestFew(t *testing.T) {
	t.Parallel()
	i := &instruments{t: t}
	f := newFixture(t, func(cfg *ratelimit.Config) {
		i.configure(cfg)
		cfg.Observe.Tenants = []string{"listed"}
		cfg.Observe.TopTenants = 1
	})
	f.post(request{Query: cheapQuery, Tenant: "listed"})
	for range 5 {
		f.post(request{Query: cheapQuery, Tenant: "busy"})
	}
	for n := range 30 {
		f.post(request{Query: cheapQuery, Tenant: fmt.Sprintf("rare-%d", n)})
	}
	require.Equal(t, map[string]float64{"listed": 1, "busy": 5, "other": 30},
		i.sums("ratelimit.tenant.decisions", "ratelimit.tenant"))
	require.Equal(t, map[string]float64{"listed": 3, "busy": 15, "other": 90}, i.sums("ratelimit.tenant.points", "ratelimit.tenant"))
}

func TestTheLoggerIsToldWhenTheStoreGoesAndWhenItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		store := ratelimittest.NewStore(nil)
		run := newInProcess(t, store, func(cfg *ratelimit.Config) { cfg.Observe.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		for range 3 {
			time.Sleep(time.Second) //nolint:forbidigo // the clock of a synctest bubble
			// Two absences within a second are told as one.
			for range 2 {
				store.Fail(bucket.ErrUnavailable)
				run.post(request{Query: cheapQuery})
				run.post(request{Query: cheapQuery})
				store.Fail(nil)
				run.post(request{Query: cheapQuery})
				run.post(request{Query: cheapQuery})
			}
		}
		require.Equal(t, 3, strings.Count(log.String(), "the store is away"))
		require.Equal(t, 3, strings.Count(log.String(), "the store is back"))
	})
}

func TestTheTimeForWhichTheStoreIsAwayIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &instruments{t: t}
		store := ratelimittest.NewStore(&ratelimittest.Clock{})
		run := newInProcess(t, store, i.configure)
		run.post(request{Query: cheapQuery})
		store.Fail(bucket.ErrUnavailable)
		for range 3 {
			run.post(request{Query: cheapQuery})
			time.Sleep(2 * time.Second) //nolint:forbidigo // the clock of a synctest bubble
		}
		store.Fail(nil)
		run.post(request{Query: cheapQuery})
		time.Sleep(time.Minute) //nolint:forbidigo // the clock of a synctest bubble
		run.post(request{Query: cheapQuery})
		require.Equal(t, map[string]float64{"": 6}, i.sums("ratelimit.store.away", ""))
	})
}

func TestAMetricCountsTheEventsThatTheObserverDropped(t *testing.T) {
	t.Parallel()
	i := &instruments{t: t}
	channel := event.NewChannel(1)
	f := newFixture(t, func(cfg *ratelimit.Config) {
		i.configure(cfg)
		cfg.Observe.Observer = event.All(channel)
	})
	for range 4 {
		f.post(request{Query: cheapQuery, Tenant: "blocked"})
	}
	var dropped []int64
	for _, m := range i.collect() {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "ratelimit.events.dropped" {
			for _, point := range sum.DataPoints {
				dropped = append(dropped, point.Value)
			}
		}
	}
	require.Equal(t, []int64{3}, dropped)
}
