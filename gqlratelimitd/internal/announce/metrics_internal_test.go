package announce

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/metric"
)

func TestThePageOfMetricsHasThoseOfAnAnnouncer(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo())
	require.NoError(t, err)
	meter := sdk.NewMeterProvider(sdk.WithReader(reader))
	t.Cleanup(func() { _ = meter.Shutdown(context.Background()) })
	told, err := newInstruments(meter)
	require.NoError(t, err)
	t.Cleanup(told.observe(&Announcer{cfg: Config{Now: time.Now}, status: Status{Leads: true}}))
	families, err := registry.Gather()
	require.NoError(t, err)
	var made []string
	for _, family := range families {
		if family.GetName() != "target_info" {
			require.Len(t, family.GetMetric(), 1, "it is there before anything is counted")
			made = append(made, family.GetName()+" "+strings.ToLower(family.GetType().String()))
		}
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "metrics.md"))
	require.NoError(t, err)
	var written []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(ratelimit_announce_\\w+)` \\| (\\w+) \\| `[\\w.]+` \\| .+ \\|  \\|$").FindAllStringSubmatch(string(page), -1) {
		written = append(written, row[1]+" "+row[2])
	}
	slices.Sort(written)
	require.Equal(t, made, written)
}
