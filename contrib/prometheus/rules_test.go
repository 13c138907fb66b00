package prometheus_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const rulesFile = "rules/ratelimit.rules.yml"

// rule is one of the file.
type rule struct {
	Record, Alert, Expr, For string
	Labels, Annotations      map[string]string
}

// rules returns those of the file.
func rules(t *testing.T) (all []rule) {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	require.NoError(t, err)
	var file struct{ Groups []struct{ Rules []rule } }
	require.NoError(t, yaml.Unmarshal(text, &file))
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	require.NotEmpty(t, all)
	return all
}

// run is what Prometheus scrapes once a minute, and whether the alert fires at its end.
type run struct {
	name  string
	fires bool
	// series have a value each, "rate/s" is by how much a counter grows in a second.
	series []string
}

// verdicts are the runs of each alert.
func verdicts() map[string][]run {
	all := map[string][]run{}
	for _, more := range []map[string][]run{trafficVerdicts(), stateVerdicts(), daemonVerdicts()} {
		for alert, runs := range more {
			all[alert] = runs
		}
	}
	return all
}

// counter is a series that grows by so much in a second.
func counter(series string, rate float64) string { return fmt.Sprintf("%s rate %g", series, rate) }

// gauge is a series that stays.
func gauge(series string, value float64) string { return fmt.Sprintf("%s value %g", series, value) }

// late is a series that begins five minutes before the end, and stays.
func late(series string, value float64) string { return fmt.Sprintf("%s late %g", series, value) }

// every is how often a run is scraped, in seconds.
const every = 60

// minutesOf is for how long a run of a rule goes on: all alerts but those that look at hours fire within.
func minutesOf(r *rule) int {
	if r.For == "1h" {
		return 150
	}
	return 25
}

// values writes a series as promtool reads it.
func values(series string, minutes int) (name, text string) {
	parts := strings.Split(series, " ")
	var number float64
	_, _ = fmt.Sscan(parts[2], &number)
	switch parts[1] {
	case "rate":
		return parts[0], fmt.Sprintf("0+%gx%d", number*every, minutes)
	case "late":
		return parts[0], fmt.Sprintf("_x%d %g+0x5", minutes-5, number)
	}
	return parts[0], fmt.Sprintf("%g+0x%d", number, minutes)
}

func TestEachAlertFiresAboveItsThresholdAndIsSilentOnTheOtherSide(t *testing.T) {
	t.Parallel()
	tested := verdicts()
	var file strings.Builder
	rulesPath, err := filepath.Abs(rulesFile)
	require.NoError(t, err)
	fmt.Fprintf(&file, "rule_files: [%q]\nevaluation_interval: 1m\ntests:\n", rulesPath)
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		runs, minutes := tested[r.Alert], minutesOf(&r)
		delete(tested, r.Alert)
		fires, silent := 0, 0
		for _, one := range runs {
			samples := "[]"
			if one.fires {
				fires++
				samples = fmt.Sprintf("[{labels: '{alertname=%q}', value: 1}]", r.Alert)
			} else {
				silent++
			}
			fmt.Fprintf(&file, "  - name: '%s: %s'\n    interval: 1m\n    input_series:\n", r.Alert, one.name)
			for _, series := range one.series {
				name, text := values(series, minutes)
				fmt.Fprintf(&file, "      - {series: '%s', values: '%s'}\n", name, text)
			}
			fmt.Fprintf(&file, "    promql_expr_test:\n      - expr: count by (alertname) (ALERTS{alertname=%q, alertstate=\"firing\"})\n"+
				"        eval_time: %dm\n        exp_samples: %s\n", r.Alert, minutes, samples)
		}
		require.Positive(t, fires, "%s has no test in which it fires", r.Alert)
		require.Positive(t, silent, "%s has no test in which it is silent", r.Alert)
		if strings.Contains(r.Expr, ">= ") {
			require.GreaterOrEqual(t, silent, 2, "%s has no test below its floor", r.Alert)
		}
	}
	require.Empty(t, tested, "tests of alerts that are not there")
	path := filepath.Join(t.TempDir(), "test.yml")
	require.NoError(t, os.WriteFile(path, []byte(file.String()), 0o600))
	promtool(t, "test", "rules", path)
}

func promtool(t *testing.T, args ...string) {
	t.Helper()
	_, err := exec.LookPath("promtool")
	require.NoError(t, err, "run scripts/install-prometheus")
	out, err := exec.CommandContext(t.Context(), "promtool", args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func TestPromtoolFindsNothingWrongWithTheRules(t *testing.T) {
	t.Parallel()
	promtool(t, "check", "rules", "--lint-fatal", rulesFile)
}

func TestRulesAskForMetricsThatAreThere(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "metrics.md"))
	require.NoError(t, err)
	there := map[string]bool{}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		there[m[1]] = true
	}
	all := rules(t)
	for _, r := range all {
		there[r.Record] = true
	}
	promql := parser.NewParser(parser.Options{})
	for _, r := range all {
		expr, err := promql.ParseExpr(r.Expr)
		require.NoError(t, err)
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			if selector, ok := node.(*parser.VectorSelector); ok {
				name := selector.Name
				if !there[name] {
					name = regexp.MustCompile(`_(sum|count|bucket)$`).ReplaceAllString(name, "")
				}
				require.True(t, there[name], "%s%s asks for %s", r.Alert, r.Record, selector.Name)
			}
			return nil
		})
	}
}

func TestEachAlertHasASeverityAndLeadsToWhatToDo(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "guide", "monitoring.md"))
	require.NoError(t, err)
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		require.Contains(t, []string{"critical", "warning", "info"}, r.Labels["severity"], r.Alert)
		require.NotEmpty(t, r.Annotations["summary"], r.Alert)
		require.Equal(t, "https://github.com/gqlgen-ratelimit/ratelimit/blob/main/docs/guide/monitoring.md#"+strings.ToLower(r.Alert), r.Annotations["runbook_url"])
		require.Contains(t, string(text), "\n### "+r.Alert+"\n")
	}
}
