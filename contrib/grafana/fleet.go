package grafana

import "github.com/grafana/grafana-foundation-sdk/go/units"

// fleet is the board that is open all day: what is decided, what it costs, who comes too often, what is done without the store.
func fleet() board {
	return board{
		uid: "ratelimit-fleet", title: "Rate limiter: fleet", about: "What the limiters of all instances decide, and what it costs.",
		rows: []row{
			{"Decisions", fleetDecisions()},
			{"Limits", fleetLimits()},
			{"Prices", fleetPrices()},
			{"Front door", fleetDoor()},
			{"Throttle", fleetThrottle()},
			{"Without the store, and events", fleetOutage()},
		},
	}
}

func fleetDecisions() []panel {
	return []panel{
		{
			"Decisions", "What became of operations. admitted, and what refuses: limited, too_expensive, query_limited, busy.", units.RequestsPerSecond,
			[]query{{`sum by (ratelimit_outcome) (rate(ratelimit_decisions_total{SCOPE}[$__rate_interval]))`, "{{ratelimit_outcome}}"}},
		},
		{
			"Refused, by tier", "Share of operations that a limit refused. A step after a deploy says that a price or a policy has changed.", units.PercentUnit,
			[]query{{
				`sum by (ratelimit_tier) (rate(ratelimit_decisions_total{SCOPE, ratelimit_outcome=~"limited|limited_locally|too_expensive|query_limited|busy"}[$__rate_interval]))
/ sum by (ratelimit_tier) (rate(ratelimit_decisions_total{SCOPE}[$__rate_interval]))`, "{{ratelimit_tier}}",
			}},
		},
		{
			"Decisions, by operation", "Of the operations that Config.Observe.Operations names; the rest is other.", units.RequestsPerSecond,
			[]query{{`sum by (graphql_operation_name, ratelimit_outcome) (rate(ratelimit_operation_decisions_total{SCOPE}[$__rate_interval]))`, "{{graphql_operation_name}} {{ratelimit_outcome}}"}},
		},
		{
			"Clients that do not wait", "Refusals of clients that were told to come back later and have not waited, by tier.", units.RequestsPerSecond,
			[]query{{`sum by (ratelimit_tier) (rate(ratelimit_retried_early_total{SCOPE}[$__rate_interval]))`, "{{ratelimit_tier}}"}},
		},
	}
}

func fleetLimits() []panel {
	return []panel{
		{
			"Limits that refuse", "The ten that refuse most, or in shadow and warn would.", units.RequestsPerSecond,
			[]query{{
				`topk(10, sum by (ratelimit_tier, ratelimit_limit, ratelimit_level, ratelimit_mode) (rate(ratelimit_limit_exceeded_total{SCOPE}[$__rate_interval])))`,
				"{{ratelimit_tier}} {{ratelimit_level}} {{ratelimit_limit}} ({{ratelimit_mode}})",
			}},
		},
		{
			"How full the tightest limit is", "Share that is used after a decision, of nineteen in twenty decisions at most.", units.PercentUnit,
			[]query{{
				`histogram_quantile(0.95, sum by (le, ratelimit_tier, ratelimit_limit) (rate(ratelimit_limit_used_bucket{SCOPE}[$__rate_interval])))`,
				"{{ratelimit_tier}} {{ratelimit_limit}}",
			}},
		},
		{
			"Thresholds that limits rise over", "How often the used share of a limit has risen over a threshold.", units.EventsPerSecond,
			[]query{{
				`sum by (ratelimit_tier, ratelimit_limit, ratelimit_threshold) (rate(ratelimit_limit_crossings_total{SCOPE}[$__rate_interval]))`,
				"{{ratelimit_tier}} {{ratelimit_limit}} {{ratelimit_threshold}}",
			}},
		},
	}
}

func fleetPrices() []panel {
	return []panel{
		{
			"Price of operations", "In points, before they ran.", units.Short,
			[]query{
				{`histogram_quantile(0.5, sum by (le) (rate(ratelimit_operation_cost_bucket{SCOPE}[$__rate_interval])))`, "median"},
				{`histogram_quantile(0.99, sum by (le) (rate(ratelimit_operation_cost_bucket{SCOPE}[$__rate_interval])))`, "99 in 100"},
			},
		},
		{
			"Price above what it comes to", "Points an operation, of the ten root fields where it is most: candidates for a smaller weight, or for refunds.", units.Short,
			[]query{{
				`topk(10, (sum by (ratelimit_root_field) (rate(ratelimit_operation_estimated_cost_sum{SCOPE}[$__rate_interval]))
- sum by (ratelimit_root_field) (rate(ratelimit_operation_actual_cost_sum{SCOPE}[$__rate_interval])))
/ sum by (ratelimit_root_field) (rate(ratelimit_operation_actual_cost_count{SCOPE}[$__rate_interval])))`, "{{ratelimit_root_field}}",
			}},
		},
		{
			"Operations by root field", "The ten that run most often.", units.RequestsPerSecond,
			[]query{{`topk(10, sum by (ratelimit_root_field) (rate(ratelimit_operation_actual_cost_count{SCOPE}[$__rate_interval])))`, "{{ratelimit_root_field}}"}},
		},
	}
}

func fleetDoor() []panel {
	return []panel{
		{
			"Refused before a price", "Requests that the front door refused, by the layer and the code of the answer.", units.RequestsPerSecond,
			[]query{{`sum by (ratelimit_layer, ratelimit_code) (rate(ratelimit_edge_refusals_total{SCOPE}[$__rate_interval]))`, "{{ratelimit_layer}} {{ratelimit_code}}"}},
		},
		{
			"Inside at once", "Requests under way, streams included, and open WebSockets, of all instances.", units.Short,
			[]query{{`sum(ratelimit_edge_under_way{SCOPE})`, "under way"}, {`sum(ratelimit_edge_connections{SCOPE})`, "WebSockets"}},
		},
		{
			"Documents", "Those that are parsed and validated now, and those that wait for their turn: above 0 for minutes is too many.", units.Short,
			[]query{{`sum(ratelimit_edge_parsing{SCOPE})`, "parsed"}, {`sum(ratelimit_edge_waiting{SCOPE})`, "waiting"}},
		},
	}
}

func fleetThrottle() []panel {
	return []panel{
		{
			"Shed", "Share of what is asked for that the adaptive throttle sheds, and by place in the order how much of what the floors leave is shed.", units.PercentUnit,
			[]query{
				{`max(ratelimit_throttle_shed_share{SCOPE})`, "of the fleet"},
				{`max by (ratelimit_throttle_order) (ratelimit_throttle_depth{SCOPE})`, "place {{ratelimit_throttle_order}}"},
			},
		},
		{
			"Why", "How far the fleet, and signals of the instance where each is worst, are from their targets. Above 1 the shed share grows.", units.Short,
			[]query{
				{`max(ratelimit_throttle_fleet_pressure{SCOPE})`, "fleet"},
				{`max by (ratelimit_throttle_signal) (ratelimit_throttle_pressure{SCOPE})`, "{{ratelimit_throttle_signal}}"},
			},
		},
		{
			"Asked for and not shed", "Points a second, by place in the order: the base, and what was left of it.", units.CountsPerSecond,
			[]query{
				{`sum by (ratelimit_throttle_order) (rate(ratelimit_throttle_offered_total{SCOPE}[$__rate_interval]))`, "asked for, place {{ratelimit_throttle_order}}"},
				{`sum by (ratelimit_throttle_order) (rate(ratelimit_throttle_admitted_total{SCOPE}[$__rate_interval]))`, "not shed, place {{ratelimit_throttle_order}}"},
			},
		},
	}
}

func fleetOutage() []panel {
	return []panel{
		{
			"Decided without the store", "Share of decisions by a share of the limits, or unjudged.", units.PercentUnit,
			[]query{{
				`sum(rate(ratelimit_decisions_total{SCOPE, ratelimit_outcome=~"admitted_locally|unjudged"}[$__rate_interval]))
/ sum(rate(ratelimit_decisions_total{SCOPE}[$__rate_interval]))`, "share",
			}},
		},
		{
			"Refused for want of the store", "Operations whose fail mode is closed, and those that a busy process refused.", units.RequestsPerSecond,
			[]query{{`sum by (ratelimit_outcome) (rate(ratelimit_decisions_total{SCOPE, ratelimit_outcome=~"unavailable|overloaded"}[$__rate_interval]))`, "{{ratelimit_outcome}}"}},
		},
		{
			"Events that are lost or late", "Events that observers had no room for, and those that wait for a broker.", units.Short,
			[]query{
				{`sum(increase(ratelimit_events_dropped_total{SCOPE}[$__rate_interval]))`, "dropped"},
				{`sum(ratelimit_stream_waiting{SCOPE})`, "waiting"},
			},
		},
		{
			"Lag of the stream", "Age of the oldest event that waits for the broker.", units.Seconds,
			[]query{{`max by (instance) (ratelimit_stream_lag_seconds{SCOPE})`, "{{instance}}"}},
		},
	}
}
