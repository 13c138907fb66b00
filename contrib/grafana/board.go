// Package grafana has the dashboards of the limiter for Grafana as code: the fleet, its tenants, their store, how policies come to them, and their control plane.
// The folder boards has them as JSON, to be imported as they are; docs/guide/monitoring.md says how.
//
// It is a module of its own, because the limiter does not need Grafana.
package grafana

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

//go:generate go run ./write

// Boards returns the dashboards in the order in which somebody opens them. Their uids are also the names of their files.
func Boards() ([]dashboard.Dashboard, error) {
	var all []dashboard.Dashboard
	for _, b := range []board{fleet(), tenants(), stores(), rollout(), daemon()} {
		built, err := b.build()
		if err != nil {
			return nil, err
		}
		all = append(all, built)
	}
	return all, nil
}

// board is a dashboard as it is written down.
type board struct {
	uid, title, about string
	// variables are chosen by whoever looks, beside the data source and the namespace.
	variables []variable
	rows      []row
}

// variable is a label whose values are chosen from those that a metric has.
type variable struct{ name, label, metric string }

// row has panels under a title.
type row struct {
	title  string
	panels []panel
}

// panel is a graph over time.
type panel struct {
	title, about, unit string
	queries            []query
}

// query is PromQL with SCOPE where labels are to be chosen: the namespace, and what else the board has variables for.
type query struct{ expr, legend string }

// sourceName is the variable for the data source.
const sourceName = "datasource"

// scopes are what stands in the place of SCOPE and its like. A target without the label ratelimit_namespace is in every namespace that has all.
var scopes = strings.NewReplacer(
	"SCOPE", `ratelimit_namespace=~"$namespace"`,
	"TENANTS", `ratelimit_namespace=~"$namespace", ratelimit_tenant=~"$tenant"`,
	"STORES", `ratelimit_namespace=~"$namespace", ratelimit_store_name=~"$store"`,
)

// build returns the dashboard.
func (b *board) build() (dashboard.Dashboard, error) {
	builder := dashboard.NewDashboardBuilder(b.title).Uid(b.uid).Description(b.about).Tags([]string{"ratelimit"}).
		Time("now-1h", "now").Refresh("30s").Timezone("browser").Tooltip(dashboard.DashboardCursorSyncCrosshair).
		WithVariable(dashboard.NewDatasourceVariableBuilder(sourceName).Label("Data source").Type("prometheus"))
	for _, v := range append([]variable{{"namespace", "ratelimit_namespace", ""}}, b.variables...) {
		builder = builder.WithVariable(v.builder())
	}
	id := uint32(0)
	for _, r := range b.rows {
		id++
		builder = builder.WithRow(dashboard.NewRowBuilder(r.title).Id(id))
		for i := range r.panels {
			id++
			builder = builder.WithPanel(r.panels[i].builder().Id(id))
		}
	}
	return builder.Build()
}

// source is the data source that is chosen.
func source() common.DataSourceRef {
	return common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${" + sourceName + "}")}
}

// builder returns the variable. All of its values are also those of series without the label.
func (v *variable) builder() *dashboard.QueryVariableBuilder {
	asked := "label_values(" + v.label + ")"
	if v.metric != "" {
		asked = "label_values(" + scopes.Replace(v.metric) + ", " + v.label + ")"
	}
	return dashboard.NewQueryVariableBuilder(v.name).Label(strings.ToUpper(v.name[:1]) + v.name[1:]).Datasource(source()).
		Query(dashboard.StringOrMap{String: cog.ToPtr(asked)}).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortAlphabeticalAsc).
		Multi(true).IncludeAll(true).AllValue(".*").
		Current(dashboard.VariableOption{
			Selected: cog.ToPtr(true),
			Text:     dashboard.StringOrArrayOfString{String: cog.ToPtr("All")}, Value: dashboard.StringOrArrayOfString{String: cog.ToPtr("$__all")},
		})
}

// Places of a panel: three stand side by side.
const (
	panelWidth  = 8
	panelHeight = 8
)

// builder returns the panel.
func (p *panel) builder() *timeseries.PanelBuilder {
	builder := timeseries.NewPanelBuilder().Title(p.title).Description(p.about).Unit(p.unit).AxisSoftMin(0).Datasource(source()).
		Span(panelWidth).Height(panelHeight).FillOpacity(10).ShowPoints(common.VisibilityModeNever).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	for i, q := range p.queries {
		builder = builder.WithTarget(prometheus.NewDataqueryBuilder().
			Expr(scopes.Replace(q.expr)).LegendFormat(q.legend).RefId(string(rune('A' + i))).Range().Datasource(source()))
	}
	return builder
}
