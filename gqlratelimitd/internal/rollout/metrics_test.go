package rollout_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/rollout"
)

// gauges returns what Prometheus reads of the roll-outs of a store, and the page of metrics has to have.
func gauges(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, _ := registry.Gather()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "metrics.md"))
	require.NoError(t, err)
	all := map[string]float64{}
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "ratelimit_rollout_") {
			continue
		}
		require.Regexp(t, "(?m)^\\| `"+family.GetName()+"` \\| gauge \\|", string(page))
		for _, series := range family.GetMetric() {
			name := family.GetName()
			for _, label := range series.GetLabel() {
				if label.GetName() == "ratelimit_rollout_state" {
					name = label.GetValue()
				}
			}
			all[name] = series.GetGauge().GetValue()
		}
	}
	return all
}

func TestMetricsSayThatARollOutHasHaltedUntilSomebodyHasItGoOn(t *testing.T) {
	t.Parallel()
	s := newScene(t, oldPolicy)
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo())
	require.NoError(t, err)
	meter := sdk.NewMeterProvider(sdk.WithReader(reader))
	t.Cleanup(func() { _ = meter.Shutdown(context.Background()) })
	require.NoError(t, rollout.Observe(meter, s.memory))

	require.Equal(t, map[string]float64{
		"running": 0, "halted": 0, "done": 0, "aborted": 0, "superseded": 0, "ratelimit_rollout_step": 0,
	}, gauges(t, registry), "there was none")

	require.NoError(t, s.start(rollout.Plan{{Percent: 50, For: 10 * time.Hour}}, newPolicy))
	require.Equal(t, 1., gauges(t, registry)["running"])

	s.measure(3)
	s.after(time.Hour)
	there := gauges(t, registry)
	require.Equal(t, 1., there["halted"])
	require.Equal(t, 0., there["running"])
	require.Equal(t, 1., there["ratelimit_rollout_step"])
	require.InDelta(t, .06, there["ratelimit_rollout_newly_refused"], .01)

	_, err = s.resume()
	require.NoError(t, err)
	require.Equal(t, 1., gauges(t, registry)["running"])

	s.fail = errors.New("the database is away")
	require.Empty(t, gauges(t, registry), "what is not known is not told")
}
