package relay

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/metric"
)

func TestThePageOfMetricsHasThoseOfTheRelay(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo())
	require.NoError(t, err)
	meter := sdk.NewMeterProvider(sdk.WithReader(reader))
	t.Cleanup(func() { _ = meter.Shutdown(context.Background()) })
	told, err := newInstruments(meter)
	require.NoError(t, err)
	t.Cleanup(told.observe(&Relay{status: Status{Leads: true}}))
	told.wrote(t.Context(), "policy")
	told.failed(t.Context())

	families, err := registry.Gather()
	require.NoError(t, err)
	var made []string
	for _, family := range families {
		if family.GetName() == "target_info" {
			continue
		}
		text := family.GetName() + " " + strings.ToLower(family.GetType().String())
		for _, label := range family.GetMetric()[0].GetLabel() {
			text += " " + label.GetName()
		}
		made = append(made, text)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "metrics.md"))
	require.NoError(t, err)
	var written []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(ratelimit_relay_\\w+)` \\| (\\w+) \\| `[\\w.]+` \\| .+ \\| (.*) \\|$").FindAllStringSubmatch(string(page), -1) {
		text := row[1] + " " + row[2]
		for _, label := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[3], -1) {
			text += " " + label[1]
		}
		written = append(written, text)
	}
	slices.Sort(written)
	require.Equal(t, made, written)
}
