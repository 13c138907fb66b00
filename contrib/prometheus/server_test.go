package prometheus_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"
)

// faster is by how much the rules are shortened: five minutes are ten seconds.
const faster = 30

var durations = regexp.MustCompile(`(\[|for: )(\d+)(m|h)`)

// shortened are the rules with shorter windows.
func shortened(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	require.NoError(t, err)
	return durations.ReplaceAllStringFunc(string(text), func(found string) string {
		m := durations.FindStringSubmatch(found)
		n, _ := strconv.Atoi(m[2])
		unit := map[string]time.Duration{"m": time.Minute, "h": time.Hour}[m[3]]
		return m[1] + fmt.Sprint(int64((time.Duration(n) * unit / faster).Seconds())) + "s"
	})
}

// server is a Prometheus that scrapes a server with a limiter each second.
type server struct {
	t   *testing.T
	url string
}

func startPrometheus(t *testing.T, target string) *server {
	t.Helper()
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "rules.yml"), []byte(shortened(t)), 0o600))
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [rules.yml]\n"+
		"scrape_configs: [{job_name: api, static_configs: [{targets: [%q]}]}]\n", target)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "prometheus.yml"), []byte(config), 0o600))
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	log, err := os.Create(filepath.Join(folder, "log"))
	require.NoError(t, err)
	command := exec.Command("prometheus", "--config.file="+filepath.Join(folder, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(folder, "data"), "--web.listen-address="+address)
	command.Stdout, command.Stderr = log, log
	require.NoError(t, command.Start(), "run scripts/install-prometheus")
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		_ = log.Close()
	})
	return &server{t, "http://" + address}
}

// get asks the API of Prometheus. It returns false as long as that does not answer.
func (s *server) get(path string, into any) bool {
	s.t.Helper()
	asking, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, nil)
	require.NoError(s.t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(asking)
	if err != nil {
		return false
	}
	defer func() { _ = answer.Body.Close() }()
	return answer.StatusCode == http.StatusOK && json.NewDecoder(answer.Body).Decode(into) == nil
}

// alert is one that fires or waits to.
type alert struct {
	State               string
	Labels, Annotations map[string]string
}

// firing are the alerts that fire, by their name.
func (s *server) firing() map[string]alert {
	s.t.Helper()
	var answer struct{ Data struct{ Alerts []alert } }
	fires := map[string]alert{}
	if s.get("/api/v1/alerts", &answer) {
		for _, a := range answer.Data.Alerts {
			if a.State == "firing" {
				fires[a.Labels["alertname"]] = a
			}
		}
	}
	return fires
}

// answers reports how many series a query has.
func (s *server) answers(query string) int {
	s.t.Helper()
	var answer struct{ Data struct{ Result []any } }
	s.get("/api/v1/query?query="+url.QueryEscape(query), &answer)
	return len(answer.Data.Result)
}

func TestAlertsFireInAPrometheusThatScrapesAServerWhoseTenantIsRefused(t *testing.T) {
	t.Parallel()
	registry, meter := export(t)
	mux := http.NewServeMux()
	mux.Handle("/query", newServerBehind(t, meter, 1_000_000))
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	api := httptest.NewServer(mux)
	t.Cleanup(api.Close)
	s := startPrometheus(t, strings.TrimPrefix(api.URL, "http://"))

	expected := []string{"RatelimitTenantRefused", "RatelimitPolicyStale", "RatelimitNoDigest"}
	var fires map[string]alert
	ask := func() bool {
		for range 3 {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/query", strings.NewReader(`{"query": "{ users(first: 45) { name } }"}`))
			request.Header.Set("Content-Type", "application/json")
			mux.ServeHTTP(httptest.NewRecorder(), request)
		}
		fires = s.firing()
		for _, name := range expected {
			if _, there := fires[name]; !there {
				return false
			}
		}
		return true
	}
	require.Eventually(t, ask, time.Minute, 200*time.Millisecond, "%v", expected)
	require.Positive(t, s.answers("ratelimit:tenant_refused:ratio_rate5m"))
	for name, a := range fires {
		require.NotContains(t, a.Annotations["summary"], "no value", name)
		require.NotContains(t, a.Annotations["summary"], "error", name)
	}
	require.Contains(t, fires["RatelimitTenantRefused"].Annotations["summary"], "192.0.2.1")
	for _, never := range []string{"RatelimitStoreAway", "RatelimitUnjudged", "RatelimitRolloutHalted", "RatelimitRefusedByOutage"} {
		require.NotContains(t, fires, never)
	}
}
