package prometheus_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/prometheus/promtest"
)

// faster is by how much the rules are shortened: five minutes are ten seconds.
const faster = 30

// ruleText is the file of rules.
func ruleText(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	require.NoError(t, err)
	return string(text)
}

// scrapes returns a Prometheus that scrapes shops, with the rules shortened.
func scrapes(t *testing.T, shops ...*promtest.Shop) *promtest.Prometheus {
	t.Helper()
	var targets []promtest.Target
	for i, shop := range shops {
		targets = append(targets, promtest.Target{Job: fmt.Sprint("shop-", i), Address: shop.URL})
	}
	return promtest.Start(t, promtest.Config{Targets: targets, Rules: promtest.Shorten(ruleText(t), faster)})
}

// badDay are the alerts that fire on the day on which everything goes wrong: all that look at ten minutes or less, but those of the control
// plane, which contrib/grafana fires with a gqlratelimitd.
var badDay = []string{
	"RatelimitTenantRefused", "RatelimitClientsRetryEarly", "RatelimitUnjudged", "RatelimitShedding",
	"RatelimitBackstop", "RatelimitRefusedByOutage",
	"RatelimitStoreAway", "RatelimitStoreAwayLong", "RatelimitPolicyStale", "RatelimitPolicyRejected", "RatelimitPolicyDiffers",
	"RatelimitBudgetsEvicted", "RatelimitDoorEvicted", "RatelimitSettlementsDropped", "RatelimitEventsDropped", "RatelimitStreamLag",
	"RatelimitNoReport",
}

func TestAlertsFireInAPrometheusThatScrapesServersOnABadDay(t *testing.T) {
	t.Parallel()
	busy := promtest.NewShop(t, promtest.ShopConfig{Report: promtest.Nowhere})
	small := promtest.NewShop(t, promtest.ShopConfig{Revision: 2, Budgets: 20, Addresses: 20, Events: 10})
	cut := promtest.NewShop(t, promtest.ShopConfig{Revision: 2})
	walled := promtest.NewShop(t, promtest.ShopConfig{Revision: 2, Backstop: true})
	overloaded := promtest.NewShop(t, promtest.ShopConfig{Revision: 2, Overloaded: true})
	p := scrapes(t, busy, small, cut, walled, overloaded)

	require.Eventually(t, func() bool {
		series, err := p.Query(`count(ratelimit_policy_revision)`)
		return err == nil && len(series) == 1 && series[0].Value[1] == "5"
	}, time.Minute, 100*time.Millisecond)
	busy.Publish(7, "this is no policy")
	cut.FeedAway(true)
	cut.BrokerAway(true)
	cut.StoreAway(true)
	small.SettlementsFail(true)
	var fires map[string][]promtest.Alert
	missing := func(name string) bool { return len(fires[name]) == 0 }
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("silent: ", slices.DeleteFunc(slices.Clone(badDay), func(name string) bool { return !missing(name) }))
		}
	})
	require.Eventually(t, func() bool {
		for i := range 30 {
			busy.Ask(t, fmt.Sprint("local-", i), promtest.Users)
			small.Ask(t, fmt.Sprint("local-", i), promtest.Users)
			overloaded.Ask(t, fmt.Sprint("large-", i), promtest.Users)
		}
		for range 3 {
			busy.Ask(t, "local-1", promtest.Users)
			small.Ask(t, "large-1", promtest.Search)
			walled.Ask(t, "large-1", promtest.Users)
			cut.Ask(t, "closed-1", promtest.Users)
			cut.Ask(t, "open-1", promtest.Users)
		}
		fires = p.Firing()
		return !slices.ContainsFunc(badDay, missing)
	}, 3*time.Minute, 200*time.Millisecond)
	for name, alerts := range fires {
		for _, a := range alerts {
			require.NotContains(t, a.Annotations["summary"], "no value", name)
			require.NotContains(t, a.Annotations["summary"], "error", name)
		}
	}
	require.Contains(t, fires["RatelimitTenantRefused"][0].Annotations["summary"], "local-")
}
