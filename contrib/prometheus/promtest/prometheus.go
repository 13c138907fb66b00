// Package promtest starts Prometheus servers for tests, and servers with a limiter for them to scrape, whose store, feed and broker break
// when a test says so. The tests of the alert rules and of the dashboards have it.
package promtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/gqlgen-ratelimit/ratelimit/internal/freeport"
)

// Target is what a Prometheus scrapes each second.
type Target struct {
	// Job is a name, and Address host:port, or an URL that begins with http://.
	Job, Address string
	// Token is a bearer token, empty for none.
	Token string
	// Namespace is the label ratelimit_namespace, empty for none.
	Namespace string
}

// Config is what a Prometheus is started with.
type Config struct {
	Targets []Target
	// Rules is the text of a file with rules, empty for none.
	Rules string
	// Data is a folder with blocks of samples. Empty means that there are none yet.
	Data string
}

// Prometheus is a process of its own. Its methods are for the goroutine of the test.
type Prometheus struct {
	testing.TB
	url    string
	client *http.Client
}

// Start starts a Prometheus on a free port of the loopback, and ends it with the test. A machine without one fails the test.
func Start(t testing.TB, cfg Config) *Prometheus {
	t.Helper()
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "rules.yml"), []byte(cfg.Rules), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "prometheus.yml"), []byte(cfg.text(t)), 0o600))
	if cfg.Data == "" {
		cfg.Data = filepath.Join(folder, "data")
	}
	address := FreeAddress(t)
	log, err := os.Create(filepath.Join(folder, "log"))
	require.NoError(t, err)
	command := exec.Command("prometheus", "--config.file="+filepath.Join(folder, "prometheus.yml"), //nolint:gosec,noctx // it ends with the test
		"--storage.tsdb.path="+cfg.Data, "--web.listen-address="+address)
	command.Stdout, command.Stderr = log, log
	require.NoError(t, command.Start(), "run scripts/install-prometheus")
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		_ = log.Close()
	})
	return &Prometheus{t, "http://" + address, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
}

// text is the configuration file.
func (c *Config) text(t testing.TB) string {
	t.Helper()
	type section = map[string]any
	var jobs []section
	for _, target := range c.Targets {
		labels := map[string]string{}
		if target.Namespace != "" {
			labels["ratelimit_namespace"] = target.Namespace
		}
		job := section{
			"job_name":       target.Job,
			"static_configs": []section{{"targets": []string{regexp.MustCompile(`^https?://`).ReplaceAllString(target.Address, "")}, "labels": labels}},
		}
		if target.Token != "" {
			job["authorization"] = section{"credentials": target.Token}
		}
		jobs = append(jobs, job)
	}
	text, err := yaml.Marshal(section{
		"global": section{"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": []string{"rules.yml"}, "scrape_configs": jobs,
	})
	require.NoError(t, err)
	return string(text)
}

// FreeAddress is one of the loopback that nothing listens on, until this process ends.
func FreeAddress(t testing.TB) string {
	t.Helper()
	address, err := freeport.Address()
	require.NoError(t, err)
	return address
}

// get asks the API of Prometheus. The error is also that of a query that it does not understand.
func (p *Prometheus) get(path string, into any) error {
	ctx, cancel := context.WithTimeout(p.Context(), time.Minute)
	defer cancel()
	asking, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, nil)
	if err != nil {
		return err
	}
	answer, err := p.client.Do(asking)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", answer.Status, text)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// Series is one of the answer to a query: its labels, and its value now.
type Series struct {
	Labels map[string]string `json:"metric"`
	Value  [2]any            `json:"value"`
}

// Query returns what a query answers now. The error is that of a server that does not answer yet, and of a query that is wrong.
func (p *Prometheus) Query(query string) ([]Series, error) {
	var answer struct{ Data struct{ Result []Series } }
	err := p.get("/api/v1/query?query="+url.QueryEscape(query), &answer)
	return answer.Data.Result, err
}

// Values are the values of a label, as a variable of a dashboard has them.
func (p *Prometheus) Values(label, of string) ([]string, error) {
	var answer struct{ Data []string }
	err := p.get("/api/v1/label/"+label+"/values?match[]="+url.QueryEscape(of), &answer)
	return answer.Data, err
}

// Alert is one that fires or waits to.
type Alert struct {
	State               string
	Labels, Annotations map[string]string
}

// Firing are the alerts that fire now, by their name. There are none while the server does not answer.
func (p *Prometheus) Firing() map[string][]Alert {
	var answer struct{ Data struct{ Alerts []Alert } }
	fires := map[string][]Alert{}
	if p.get("/api/v1/alerts", &answer) != nil {
		return fires
	}
	for _, a := range answer.Data.Alerts {
		if a.State == "firing" {
			fires[a.Labels["alertname"]] = append(fires[a.Labels["alertname"]], a)
		}
	}
	return fires
}

// Fired are the names of the alerts that have fired at any time in the last hour.
func (p *Prometheus) Fired() (names []string, _ error) {
	all, err := p.Query(`count by (alertname) (count_over_time(ALERTS{alertstate="firing"}[1h]))`)
	for _, one := range all {
		names = append(names, one.Labels["alertname"])
	}
	return names, err
}

var (
	// windows are the ranges of rules and for how long they have to hold, and ages what metrics of seconds are compared with.
	windows = regexp.MustCompile(`(\[|for: |offset )(\d+)(m|h)`)
	ages    = regexp.MustCompile(`(\w+_seconds)(\)? > )(\d+)`)
	// least are ages that are never shorter. Usage is collected once a minute, up to a fifth later, and what counts as collected ends with a whole
	// minute: 132 seconds and what a reading takes are no lag.
	least = map[string]float64{"ratelimit_collector_lag_seconds": 140}
)

// Shorten returns rules that look at a shorter time: all windows, all durations for which something has to hold, and all ages are divided. That of
// usage, which is collected once a minute, is 140 seconds at least.
func Shorten(rules string, by int) string {
	rules = windows.ReplaceAllStringFunc(rules, func(found string) string {
		m := windows.FindStringSubmatch(found)
		n, _ := strconv.Atoi(m[2])
		unit := map[string]time.Duration{"m": time.Minute, "h": time.Hour}[m[3]]
		return m[1] + strconv.FormatInt(int64((time.Duration(n)*unit/time.Duration(by)).Seconds()), 10) + "s"
	})
	return ages.ReplaceAllStringFunc(rules, func(found string) string {
		m := ages.FindStringSubmatch(found)
		n, _ := strconv.ParseFloat(m[3], 64)
		return m[1] + m[2] + strconv.FormatFloat(max(n/float64(by), least[m[1]]), 'g', 3, 64)
	})
}
