package grafana

import "github.com/grafana/grafana-foundation-sdk/go/units"

// stores is the board for the night on which Redis is slow.
func stores() board {
	return board{
		uid: "ratelimit-store", title: "Rate limiter: store", about: "How the stores of budgets answer, and what is done while they do not.",
		variables: []variable{{"store", "ratelimit_store_name", `ratelimit_store_duration_seconds_count{SCOPE}`}},
		rows:      []row{{"Calls", storeCalls()}, {"Leases", storeLeases()}, {"Away", storeAway()}, {"Corrections", storeCorrections()}},
	}
}

func storeCalls() []panel {
	return []panel{
		{
			"Calls", "By what was called, and how it ended.", units.OpsPerSecond,
			[]query{{`sum by (ratelimit_store_call, ratelimit_store_result) (rate(ratelimit_store_duration_seconds_count{STORES}[$__rate_interval]))`, "{{ratelimit_store_call}} {{ratelimit_store_result}}"}},
		},
		{
			"Duration", "Of all calls. The deadline is 0.01 s unless it is configured: the slowest hundredth belongs below half of it.", units.Seconds,
			[]query{
				{`histogram_quantile(0.5, sum by (le) (rate(ratelimit_store_duration_seconds_bucket{STORES}[$__rate_interval])))`, "median"},
				{`histogram_quantile(0.99, sum by (le) (rate(ratelimit_store_duration_seconds_bucket{STORES}[$__rate_interval])))`, "99 in 100"},
			},
		},
		{
			"Errors", "Calls that failed. Those of breaker_open did not reach the store.", units.OpsPerSecond,
			[]query{{`sum by (ratelimit_store_name, ratelimit_store_result) (rate(ratelimit_store_errors_total{STORES}[$__rate_interval]))`, "{{ratelimit_store_name}} {{ratelimit_store_result}}"}},
		},
	}
}

func storeLeases() []panel {
	return []panel{
		{
			"Held", "What instances have of the limits that they lease parts of, what they have left of it, and what the store had left for all, by unit.", units.Short,
			[]query{
				{`sum by (ratelimit_unit) (ratelimit_lease_capacity{STORES})`, "{{ratelimit_unit}} held"},
				{`sum by (ratelimit_unit) (ratelimit_lease_level{STORES})`, "{{ratelimit_unit}} left of it"},
				{`max by (ratelimit_unit) (ratelimit_lease_free{STORES})`, "{{ratelimit_unit}} free in the store"},
			},
		},
		{
			"Decided by", "What was asked of leased limits: decided by the instance, by both, or by the store. As much store as instance says that parts are too small.", units.OpsPerSecond,
			[]query{{`sum by (ratelimit_lease_decided_by) (rate(ratelimit_lease_takes_total{STORES}[$__rate_interval]))`, "{{ratelimit_lease_decided_by}}"}},
		},
		{
			"Exchanges", "Calls that gave parts back and fetched more, by cause, and those that got no answer.", units.OpsPerSecond,
			[]query{
				{`sum by (ratelimit_lease_cause) (rate(ratelimit_lease_exchanges_total{STORES}[$__rate_interval]))`, "{{ratelimit_lease_cause}}"},
				{`sum(rate(ratelimit_lease_failures_total{STORES}[$__rate_interval]))`, "no answer"},
			},
		},
		{
			"Misses and false refusals", "Operations that found too little at first, those that were refused here, and exchanges that found that the store had what was refused.", units.OpsPerSecond,
			[]query{
				{`sum(rate(ratelimit_lease_misses_total{STORES}[$__rate_interval]))`, "misses"},
				{`sum(rate(ratelimit_lease_refusals_total{STORES}[$__rate_interval]))`, "refused here"},
				{`sum(rate(ratelimit_lease_false_refusals_total{STORES}[$__rate_interval]))`, "false refusals"},
			},
		},
		{
			"Lost", "Leases that ended unheard, and usage and charges that are not known. Above 0 for the last two: look at the logs.", units.OpsPerSecond,
			[]query{
				{`sum(rate(ratelimit_lease_lost_total{STORES}[$__rate_interval]))`, "leases"},
				{`sum(rate(ratelimit_lease_uncounted_total{STORES}[$__rate_interval]))`, "uncounted"},
				{`sum(rate(ratelimit_lease_unsettled_total{STORES}[$__rate_interval]))`, "unsettled"},
			},
		},
	}
}

func storeAway() []panel {
	return []panel{
		{
			"Away", "Share of the time in which a store did not answer, for the instance that missed it most.", units.PercentUnit,
			[]query{{`max by (ratelimit_store_name) (rate(ratelimit_store_away_seconds_total{STORES}[$__rate_interval]))`, "{{ratelimit_store_name}}"}},
		},
		{
			"Decided without it", "Points of operations that were decided without the store, by outcome.", units.CountsPerSecond,
			[]query{{`sum by (ratelimit_outcome) (rate(ratelimit_store_away_points_total{STORES}[$__rate_interval]))`, "{{ratelimit_outcome}}"}},
		},
		{
			"Charged afterwards", "What the store was charged for what was admitted without it, in the unit of the limit.", units.CountsPerSecond,
			[]query{{
				`sum by (ratelimit_limit, ratelimit_unit) (rate(ratelimit_local_settled_total{STORES}[$__rate_interval]))`,
				"{{ratelimit_limit}} ({{ratelimit_unit}})",
			}},
		},
		{
			"Spared", "Refusals that did not ask the store: by a refusal that still holds, a cap, or because it is busy.", units.OpsPerSecond,
			[]query{{`sum by (ratelimit_store_spared_by) (rate(ratelimit_store_spared_total{STORES}[$__rate_interval]))`, "{{ratelimit_store_spared_by}}"}},
		},
		{
			"Forgotten", "Budgets that a store in memory forgot for want of room: each is full again.", units.OpsPerSecond,
			[]query{{`sum by (ratelimit_store_name) (rate(ratelimit_store_evicted_total{STORES}[$__rate_interval]))`, "{{ratelimit_store_name}}"}},
		},
	}
}

func storeCorrections() []panel {
	return []panel{
		{
			"Settlements", "Charges that were to be corrected, and what became of it. Above 0 for dropped and failed: customers stay charged too much.", units.OpsPerSecond,
			[]query{{
				`sum by (ratelimit_settlement_reason, ratelimit_settlement_result) (rate(ratelimit_settlements_total{SCOPE}[$__rate_interval]))`,
				"{{ratelimit_settlement_reason}} {{ratelimit_settlement_result}}",
			}},
		},
		{
			"Given back", "Points that were given back, by reason.", units.CountsPerSecond,
			[]query{{`sum by (ratelimit_settlement_reason) (rate(ratelimit_refunded_total{SCOPE}[$__rate_interval]))`, "{{ratelimit_settlement_reason}}"}},
		},
	}
}
