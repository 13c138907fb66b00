package edge_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/gqlgen-ratelimit/ratelimit/edge"
	"github.com/gqlgen-ratelimit/ratelimit/event"
)

func prefixes(all ...string) []netip.Prefix {
	parsed := make([]netip.Prefix, len(all))
	for i, one := range all {
		parsed[i] = netip.MustParsePrefix(one)
	}
	return parsed
}

// observer keeps what it is told.
type observer struct {
	mu   sync.Mutex
	told []event.RefusedAtDoor
}

func (o *observer) Observe(_ context.Context, e event.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.told = append(o.told, e.(event.RefusedAtDoor))
}

func (o *observer) all() []event.RefusedAtDoor {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.told
}

func TestAFloodOfRefusalsIsOneLineAndCountedWhole(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	reader := metric.NewManualReader()
	door := newDoor(t, edge.Config{
		Address: edge.AddressConfig{Limits: requests(1)}, Key: edge.KeyConfig{Header: "X-Api-Key"},
		Observe: edge.ObserveConfig{
			Logger: slog.New(slog.NewTextHandler(&log, nil)), MeterProvider: metric.NewMeterProvider(metric.WithReader(reader)),
		},
	})
	h := door.Handler(&passed{})
	log.Reset()
	for range 1001 {
		ask(t, h, "192.0.2.1", header("X-Api-Key", "this-is-secret"))
	}
	require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("refused_at_door")), log.String())
	require.Contains(t, log.String(), "client=192.0.2.1")
	require.NotContains(t, log.String(), "this-is-secret")

	var collected metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &collected))
	points := map[string]int64{}
	for _, m := range collected.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			if layer, labelled := data.DataPoints[0].Attributes.Value("ratelimit.layer"); labelled {
				require.Equal(t, "address", layer.AsString())
			}
			points[m.Name] = data.DataPoints[0].Value
		case metricdata.Gauge[int64]:
			points[m.Name] = data.DataPoints[0].Value
		}
	}
	require.Equal(t, int64(1000), points["ratelimit.edge.refusals"])
	require.Contains(t, points, "ratelimit.edge.under_way")
	require.Contains(t, points, "ratelimit.edge.connections")
}

func TestABudgetThatGivesWayIsCountedAndLoggedOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	reader := metric.NewManualReader()
	h := newDoor(t, edge.Config{
		MaxBudgets: 8, Address: edge.AddressConfig{Limits: requests(3)},
		Observe: edge.ObserveConfig{
			Logger: slog.New(slog.NewTextHandler(&log, nil)), MeterProvider: metric.NewMeterProvider(metric.WithReader(reader)),
		},
	}).Handler(&passed{})
	for i := range 100 {
		ask(t, h, netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}).String())
	}
	require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("raise Config.MaxBudgets")))

	var collected metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &collected))
	evicted := int64(0)
	for _, m := range collected.ScopeMetrics[0].Metrics {
		if m.Name == "ratelimit.edge.evicted" {
			evicted = m.Data.(metricdata.Sum[int64]).DataPoints[0].Value
		}
	}
	require.GreaterOrEqual(t, evicted, int64(80))
}
