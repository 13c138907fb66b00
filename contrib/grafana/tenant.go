package grafana

import "github.com/grafana/grafana-foundation-sdk/go/units"

// tenants is the board for the question of one customer.
func tenants() board {
	return board{
		uid: "ratelimit-tenant", title: "Rate limiter: tenants", about: "What tenants ask for, and what of it is refused. Metrics name few tenants; the rest is other.",
		variables: []variable{{"tenant", "ratelimit_tenant", `ratelimit_tenant_decisions_total{SCOPE}`}},
		rows: []row{
			{"Tenants that metrics name", namedTenants()},
			{"All tenants", allTenants()},
		},
	}
}

func namedTenants() []panel {
	return []panel{
		{
			"Decisions", "What became of the operations of the tenants that are chosen.", units.RequestsPerSecond,
			[]query{{`sum by (ratelimit_tenant, ratelimit_outcome) (rate(ratelimit_tenant_decisions_total{TENANTS}[$__rate_interval]))`, "{{ratelimit_tenant}} {{ratelimit_outcome}}"}},
		},
		{
			"Refused", "Share of what each asked for that limits refused.", units.PercentUnit,
			[]query{{
				`sum by (ratelimit_tenant) (rate(ratelimit_tenant_decisions_total{TENANTS, ratelimit_outcome=~"limited|limited_locally|too_expensive|query_limited|busy"}[$__rate_interval]))
/ sum by (ratelimit_tenant) (rate(ratelimit_tenant_decisions_total{TENANTS}[$__rate_interval]))`, "{{ratelimit_tenant}}",
			}},
		},
		{
			"Points", "What their operations were charged before they ran. Nobody bills from it: what is given back is not in it.", units.CountsPerSecond,
			[]query{{`sum by (ratelimit_tenant) (rate(ratelimit_tenant_points_total{TENANTS}[$__rate_interval]))`, "{{ratelimit_tenant}}"}},
		},
		{
			"Busiest", "The ten that spend most points, of all that have a name.", units.CountsPerSecond,
			[]query{{`topk(10, sum by (ratelimit_tenant) (rate(ratelimit_tenant_points_total{SCOPE}[$__rate_interval])))`, "{{ratelimit_tenant}}"}},
		},
		{
			"Refused most", "The ten with most refusals, of all that have a name.", units.RequestsPerSecond,
			[]query{{
				`topk(10, sum by (ratelimit_tenant) (rate(ratelimit_tenant_decisions_total{SCOPE, ratelimit_outcome=~"limited|limited_locally|too_expensive|query_limited|busy"}[$__rate_interval])))`,
				"{{ratelimit_tenant}}",
			}},
		},
	}
}

func allTenants() []panel {
	return []panel{
		{
			"Refused most, of all instances", "Share of what the tenants that the control plane names have asked for within a minute. They need no name in the metrics of instances.", units.PercentUnit,
			[]query{{`topk(10, max by (ratelimit_tenant) (ratelimit_fleet_tenant_refused_share{SCOPE}))`, "{{ratelimit_tenant}}"}},
		},
		{
			"Refused much", "Tenants of whose operations within a minute, at least sixty, more than three in ten were refused, and how many of them nobody names.", units.Short,
			[]query{{`max(ratelimit_fleet_tenants_refused{SCOPE})`, "tenants"}, {`max(ratelimit_fleet_tenants_unnamed{SCOPE})`, "without a name"}},
		},
		{
			"Refused again and again", "Tenants that kept being refused, by tier.", units.EventsPerSecond,
			[]query{{`sum by (ratelimit_tier) (rate(ratelimit_tenant_refused_repeatedly_total{SCOPE}[$__rate_interval]))`, "{{ratelimit_tier}}"}},
		},
	}
}
