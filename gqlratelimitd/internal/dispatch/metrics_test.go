package dispatch_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook"
)

func TestThePageOfMetricsHasThoseOfWebhooks(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo())
	require.NoError(t, err)
	s.provider = sdk.NewMeterProvider(sdk.WithReader(reader))
	t.Cleanup(func() { _ = s.provider.Shutdown(context.Background()) })
	s.result = webhook.Result{Outcome: webhook.Gone, Status: 410}
	s.register(s.run())
	s.publish("dies")
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.gone) > 0
	}, patient, soon)
	s.mu.Lock()
	s.result = webhook.Result{Outcome: webhook.Failed, Reason: webhook.ReasonTimeout}
	s.mu.Unlock()
	var ids []string
	for n := range store.MaxWaiting + 50 {
		ids = append(ids, fmt.Sprint(n))
	}
	s.publish(ids...)
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "metrics.md"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		families, err := registry.Gather()
		require.NoError(t, err)
		named := 0
		for _, family := range families {
			if strings.HasPrefix(family.GetName(), "ratelimit_webhook_") {
				named++
				kind := strings.ToLower(family.GetType().String())
				require.Regexp(t, "(?m)^\\| `"+family.GetName()+"` \\| "+kind+" \\|", string(page))
			}
		}
		return named == strings.Count(string(page), "\n| `ratelimit_webhook_")
	}, patient, soon, "all that the page has")
}
