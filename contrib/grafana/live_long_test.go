//go:build long

package grafana_test

import (
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/prometheus/promtest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/freeze"
)

// faster is by how much the rules are shortened.
const faster = 30

// patient is for how long something is waited for that comes by itself.
const patient = 3 * time.Minute

// until sends traffic until something holds.
func (s *scene) until(holds func() bool, what string) {
	s.Helper()
	require.Eventually(s.T, func() bool {
		s.traffic()
		return holds()
	}, patient, 200*time.Millisecond, what)
}

// awaits sends traffic until all of these alerts have fired.
func (s *scene) awaits(alerts ...string) {
	s.Helper()
	var fired []string
	s.Cleanup(func() {
		if s.Failed() {
			s.Log("of ", alerts, " these have fired: ", fired)
		}
	})
	s.until(func() (holds bool) {
		var err error
		fired, err = s.prometheus.Fired()
		return err == nil && !slices.ContainsFunc(alerts, func(name string) bool { return !slices.Contains(fired, name) })
	}, "alerts")
}

// asked are the queries of a page.
func asked(t *testing.T, page string) (queries []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, block := range regexp.MustCompile("(?s)```promql\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		queries = append(queries, strings.TrimSpace(block[1]))
	}
	return queries
}

func TestEveryQueryIsAnsweredByAPrometheusThatScrapesTheExampleAndTheControlPlane(t *testing.T) {
	t.Parallel()
	s := newWholeScene(t)
	s.until(func() bool {
		series, err := s.prometheus.Query(`count(sum by (job) (ratelimit_policy_revision{ratelimit_namespace=~".+"} >= 1 or ratelimit_relay_leads))`)
		return err == nil && len(series) == 1 && series[0].Value[1] == "4"
	}, "all are scraped, and the example serves the policy of the daemon")

	// The policy changes, and the shop tries another one beside its own.
	changed := strings.ReplaceAll(s.examplePolicy(), "capacity: 20000, per: minute", "capacity: 30000, per: minute")
	s.ask(http.MethodPut, "/v1/ratelimit/policies", changed, "If-Match", `"1"`)
	s.ask(http.MethodPut, "/v1/tenants/demo-pro", `{"tier": "pro"}`, "If-None-Match", "*")
	s.until(func() bool {
		series, err := s.prometheus.Query(`ratelimit_candidate_decisions_total`)
		return err == nil && len(series) > 0
	}, "the candidate is judged")
	eased := `{"mode": "shadow", "until": "` + time.Now().Add(time.Hour).UTC().Format(time.RFC3339) + `"}`
	s.ask(http.MethodPut, "/v1/ratelimit/modes?scope=tenant&name=demo-free", eased, "If-None-Match", "*")
	s.webhooks("acme")
	s.until(func() bool {
		series, err := s.prometheus.Query(`max(ratelimit_webhook_dead) > 0 and sum(ratelimit_webhook_attempts_total{ratelimit_webhook_outcome="delivered"}) > 0`)
		return err == nil && len(series) > 0
	}, "one endpoint has its message, and another one is gone")
	s.flood("acme")
	s.awaits("RatelimitUnnamedTenantRefused", "RatelimitWebhooksDropped")

	// The stores are away, and are back.
	s.shop.StoreAway(true)
	s.redis.Freeze(t)
	s.ask(http.MethodPut, "/v1/tenants/somebody", `{"tier": "pro"}`, "If-None-Match", "*")
	s.awaits("RatelimitRelayLag", "RatelimitAnnounceLag", "RatelimitStoreAway", "RatelimitRefusedByOutage", "RatelimitDirectoryStale", "RatelimitModeSwitchesStale", "RatelimitWebhooksBehind")
	s.redis.Thaw(t)
	s.shop.StoreAway(false)
	s.shop.SettlementsFail(true)
	s.publishElsewhere()
	s.ask(http.MethodPut, "/v1/ratelimit/policies", s.examplePolicy(), "If-Match", `"2"`)
	s.awaits("RatelimitRelayRefused")
	s.shop.SettlementsFail(false)

	// The daemon that relays hangs, and the other one has not taken over yet.
	require.NoError(t, freeze.Process(s.leader))
	s.awaits("RatelimitRelayLeaders")
	require.NoError(t, freeze.Thaw(s.leader))

	for _, counted := range []string{
		"ratelimit_announce_sent_total", "ratelimit_announce_repeated_total", "ratelimit_announce_failures_total",
		"ratelimit_webhook_messages_total", "ratelimit_webhook_died_total", `ratelimit_webhook_attempts_total{ratelimit_webhook_outcome="failed"}`,
	} {
		s.answers("what has happened", counted+" > 0")
	}
	for _, page := range []string{"../../docs/reference/metrics.md", "../../docs/guide/monitoring.md"} {
		for _, query := range asked(t, page) {
			s.answers(page, query)
		}
	}
	require.Len(t, asked(t, "../../docs/reference/metrics.md"), 10)
	panels := 0
	for _, b := range boards(t) {
		values := s.choices(&b)
		for _, p := range b.Panels {
			for _, target := range p.Targets {
				s.answers(b.UID+": "+p.Title, chosen(target.Expr, values))
				panels++
			}
		}
	}
	require.Greater(t, panels, 50)
	_, err := s.prometheus.Query("sum by (")
	require.Error(t, err)
}

// answers waits until a query has an answer that is a number.
func (s *scene) answers(what, query string) {
	s.Helper()
	is := func() bool {
		series, err := s.prometheus.Query(query)
		require.NoError(s.T, err, "%s: %s", what, query)
		return slices.ContainsFunc(series, func(one promtest.Series) bool { return one.Value[1] != "NaN" })
	}
	if !is() {
		s.until(is, what+": "+query)
	}
}

// choices are what the variables of a board are set to, which is all that there is to choose.
func (s *scene) choices(b *board) map[string]string {
	s.Helper()
	all := map[string]string{"__rate_interval": "5m"}
	for _, v := range b.Templating.List {
		all[v.Name] = v.AllValue
		if v.Type != "query" {
			continue
		}
		query := v.Query.(string)
		of, label, found := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(query, "label_values("), ")"), ", ratelimit_")
		if !found {
			of, label = "ratelimit_decisions_total", "namespace"
		}
		values, err := s.prometheus.Values("ratelimit_"+label, chosen(of, all))
		require.NoError(s.T, err)
		require.NotEmpty(s.T, values, query)
	}
	return all
}
