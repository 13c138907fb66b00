package grafana_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/grafana"
)

// board is what Grafana reads of the file of a dashboard.
type board struct {
	UID, Title, Description string
	Panels                  []panel
	Templating              struct {
		List []struct {
			Name, Type, AllValue string
			Query                any
		}
	}
}

type panel struct {
	ID                       int
	Type, Title, Description string
	FieldConfig              struct{ Defaults struct{ Unit string } }
	Datasource               struct{ UID string }
	Targets                  []struct {
		Expr, LegendFormat string
		Datasource         struct{ UID string }
	}
}

// boards are the files.
func boards(t *testing.T) (all []board) {
	t.Helper()
	files, err := filepath.Glob("boards/*.json")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var b board
		require.NoError(t, json.Unmarshal(text, &b))
		require.Equal(t, strings.TrimSuffix(filepath.Base(file), ".json"), b.UID)
		all = append(all, b)
	}
	require.Len(t, all, 5)
	return all
}

// documented are the metrics of the page, with their labels.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/reference/metrics.md")
	require.NoError(t, err)
	metrics := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\| `[\\w.]+` \\| .+ \\| (.*) \\|$").FindAllStringSubmatch(string(text), -1) {
		labels := []string{"instance", "job", "ratelimit_namespace"}
		for _, label := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[3], -1) {
			labels = append(labels, label[1])
		}
		if row[2] != "histogram" {
			metrics[row[1]] = labels
			continue
		}
		for _, end := range []string{"_count", "_sum"} {
			metrics[row[1]+end] = labels
		}
		metrics[row[1]+"_bucket"] = append(slices.Clone(labels), "le")
	}
	require.Greater(t, len(metrics), 60)
	return metrics
}

// chosen has a value for each variable of an expression.
func chosen(expr string, values map[string]string) string {
	return regexp.MustCompile(`\$(\w+)`).ReplaceAllStringFunc(expr, func(name string) string { return values[name[1:]] })
}

func TestTheFilesAreWhatTheCodeHas(t *testing.T) {
	t.Parallel()
	built, err := grafana.Boards()
	require.NoError(t, err)
	files, err := filepath.Glob("boards/*.json")
	require.NoError(t, err)
	require.Len(t, files, len(built))
	for i := range built {
		text, err := os.ReadFile(filepath.Join("boards", *built[i].Uid+".json"))
		require.NoError(t, err)
		want, err := json.MarshalIndent(&built[i], "", "  ")
		require.NoError(t, err)
		require.Equal(t, string(want)+"\n", string(text), "run make generate")
	}
}

func TestEachPanelSaysWhatItShowsAndInWhichUnit(t *testing.T) {
	t.Parallel()
	for _, b := range boards(t) {
		require.NotEmpty(t, b.Title)
		require.NotEmpty(t, b.Description)
		ids, titles := map[int]bool{}, map[string]bool{}
		for _, p := range b.Panels {
			require.False(t, ids[p.ID], "%s: two panels have an id", b.UID)
			ids[p.ID] = true
			require.NotEmpty(t, p.Title)
			if p.Type == "row" {
				continue
			}
			require.False(t, titles[p.Title], "%s: two panels are called %s", b.UID, p.Title)
			titles[p.Title] = true
			require.Greater(t, len(strings.Fields(p.Description)), 3, p.Title)
			require.NotEmpty(t, p.FieldConfig.Defaults.Unit, p.Title)
			require.Equal(t, "${datasource}", p.Datasource.UID, p.Title)
			require.NotEmpty(t, p.Targets, p.Title)
			for _, target := range p.Targets {
				require.NotEmpty(t, target.LegendFormat, p.Title)
				require.Equal(t, "${datasource}", target.Datasource.UID, p.Title)
			}
		}
		require.Greater(t, len(titles), 5, b.UID)
	}
}

func TestPanelsAskForMetricsAndLabelsThatAreThere(t *testing.T) {
	t.Parallel()
	metrics, promql := documented(t), parser.NewParser(parser.Options{})
	for _, b := range boards(t) {
		variables := map[string]string{"__rate_interval": "5m"}
		for _, v := range b.Templating.List {
			variables[v.Name] = ".*"
		}
		for _, p := range b.Panels {
			for _, target := range p.Targets {
				require.Contains(t, target.Expr, `ratelimit_namespace=~"$namespace"`, p.Title)
				expr, err := promql.ParseExpr(chosen(target.Expr, variables))
				require.NoError(t, err, "%s: %s", p.Title, target.Expr)
				labels := labelsOf(t, metrics, expr)
				for _, m := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(target.LegendFormat, -1) {
					require.Contains(t, labels, m[1], "%s: %s", p.Title, target.LegendFormat)
				}
			}
		}
	}
	_, err := promql.ParseExpr("sum by ratelimit_tier (x)")
	require.Error(t, err, "a query that is wrong")
}

// labelsOf are those that an expression names. They have to be of its metrics, which have to be there.
func labelsOf(t *testing.T, metrics map[string][]string, expr parser.Expr) (labels []string) {
	t.Helper()
	var of []string
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			require.Contains(t, metrics, n.Name, expr.String())
			of = metrics[n.Name]
			for _, matcher := range n.LabelMatchers {
				if matcher.Name != "__name__" {
					require.Contains(t, of, matcher.Name, expr.String())
				}
			}
		case *parser.AggregateExpr:
			labels = append(labels, n.Grouping...)
			if n.Op == parser.COUNT_VALUES {
				labels = append(labels, strings.Trim(n.Param.String(), `"`))
			}
		}
		return nil
	})
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if n, aggregates := node.(*parser.AggregateExpr); aggregates {
			for _, label := range n.Grouping {
				require.Contains(t, of, label, expr.String())
			}
		}
		return nil
	})
	return labels
}

func TestBoardsAreChosenByNamespaceTenantAndStore(t *testing.T) {
	t.Parallel()
	variables := map[string][]string{}
	for _, b := range boards(t) {
		for _, v := range b.Templating.List {
			variables[b.UID] = append(variables[b.UID], v.Name)
			if v.Type == "query" {
				require.Equal(t, ".*", v.AllValue, "series without the label count too")
			}
		}
	}
	require.Equal(t, map[string][]string{
		"ratelimit-fleet": {"datasource", "namespace"}, "ratelimit-tenant": {"datasource", "namespace", "tenant"},
		"ratelimit-store": {"datasource", "namespace", "store"}, "ratelimit-rollout": {"datasource", "namespace"},
		"ratelimit-daemon": {"datasource", "namespace"},
	}, variables)
}
