package e2e_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

func TestAStoreThatForgetsBudgetsSaysSoInAMetricAndOnceInTheLog(t *testing.T) {
	t.Parallel()
	told := &instruments{t: t}
	var log bytes.Buffer
	f := newFixture(t, func(cfg *ratelimit.Config) {
		told.configure(cfg)
		cfg.Observe.Logger = slog.New(slog.NewTextHandler(&log, nil))
		cfg.Store = bucket.NewMemory(bucket.MemoryConfig{MaxEntries: 20, Clock: func() time.Time { return time.Unix(1_700_000_000, 0) }})
		cfg.Stores = map[string]bucket.Store{"vault": bucket.NewMemory(bucket.MemoryConfig{})}
	})
	const room, warning, metric = 15, "the store has no room for all budgets", "ratelimit.store.evicted"
	for i := range room {
		f.post(request{Tenant: fmt.Sprint("tenant-", i), Query: cheapQuery})
	}
	require.NotContains(t, log.String(), warning)
	require.Equal(t, map[string]float64{"": 0, "vault": 0}, told.sums(metric, "ratelimit.store.name"))

	for i := range 3 {
		f.post(request{Tenant: fmt.Sprint("another-", i), Query: cheapQuery})
	}
	require.Equal(t, 1, strings.Count(log.String(), warning), log.String())
	require.Equal(t, map[string]float64{"": 3, "vault": 0}, told.sums(metric, "ratelimit.store.name"))
}
