//go:build long

package grafana_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/prometheus/promtest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/freeze"
)

// holds waits until a query has an answer, and refuses so many tenants meanwhile.
func (s *scene) holds(query string, tenants int) {
	s.Helper()
	require.Eventually(s.T, func() bool {
		s.refuse(tenants)
		series, err := s.prometheus.Query(query)
		return err == nil && len(series) > 0
	}, 2*patient, 200*time.Millisecond, query)
}

// refuse has each of so many tenants refused, once they have spent what they may.
func (s *scene) refuse(tenants int) {
	for n := range tenants {
		s.shop.Ask(s.T, fmt.Sprint("local-", n), promtest.Users)
	}
}

// fires says that an alert fires now.
func fires(alert string) string { return `ALERTS{alertstate="firing", alertname="` + alert + `"}` }

// named is how many tenants the daemon names.
const named = 20

func TestAlertsOfTheControlPlaneFireWhenUsageIsNotCollectedOrMoreTenantsAreRefusedThanItNames(t *testing.T) {
	t.Parallel()
	s, second := newScene(t)
	s.shop = promtest.NewShop(t, promtest.ShopConfig{Report: s.redis.Addr, Namespace: namespace})
	s.scraped(second)

	// Twenty are refused as much as can be, and usage is collected: for longer than either alert waits.
	s.holds(fmt.Sprintf(`max(ratelimit_fleet_tenants_refused) == %d`, named), named)
	s.holds(`min_over_time(ratelimit_collector_lag_seconds[15s]) > 0 and count_over_time(ratelimit_collector_lag_seconds[15s]) > 13`, named)
	s.holds(fmt.Sprintf(`count_over_time((max(ratelimit_fleet_tenants_refused) == %d)[15s:1s]) > 13`, named), named)
	fired, err := s.prometheus.Fired()
	require.NoError(t, err)
	for _, alert := range []string{"RatelimitMoreTenantsRefused", "RatelimitUsageLag", "RatelimitUsageMissed", "RatelimitAnnounceDropped", "RatelimitWebhooksDropped"} {
		require.NotContains(t, fired, alert)
	}
	s.holds(fires("RatelimitMoreTenantsRefused"), named+5)

	// The Redis of the counts hangs. Somebody collects all the same.
	s.redis.Freeze(t)
	s.holds(fires("RatelimitUsageLag")+` and on () max(ratelimit_collector_lag_seconds) > 140 and on () sum(ratelimit_collector_leads) == 1`, 0)
	s.redis.Thaw(t)
	s.holds(`absent(`+fires("RatelimitUsageLag")+`)`, 0)

	// The daemon that collects hangs, and the other one has not taken over yet.
	require.NoError(t, freeze.Process(s.leader))
	s.holds(fires("RatelimitUsageLag")+` and on () sum(ratelimit_collector_leads) == 0`, 0)
	require.NoError(t, freeze.Thaw(s.leader))
	fired, err = s.prometheus.Fired()
	require.NoError(t, err)
	require.False(t, slices.Contains(fired, "RatelimitUsageMissed"))
}
