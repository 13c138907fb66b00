package prometheus_test

import "fmt"

func decided(outcome string, rate float64) string {
	return counter(fmt.Sprintf("ratelimit_decisions_total{ratelimit_tier=%q,ratelimit_outcome=%q}", "free", outcome), rate)
}

func ofTenant(tenant, outcome string, rate float64) string {
	return counter(fmt.Sprintf("ratelimit_tenant_decisions_total{ratelimit_tenant=%q,ratelimit_outcome=%q}", tenant, outcome), rate)
}

func early(rate float64) string {
	return counter(`ratelimit_retried_early_total{ratelimit_tier="free"}`, rate)
}

// priced is what operations came to whose estimate is a hundred points a second.
func priced(difference, count float64) []string {
	const field = `{ratelimit_root_field="Query.users"}`
	return []string{
		counter("ratelimit_operation_actual_cost_sum"+field, 100-difference),
		counter("ratelimit_operation_estimated_cost_sum"+field, 100),
		counter("ratelimit_operation_estimated_cost_count"+field, count),
	}
}

// trafficVerdicts are those of alerts about what is decided.
func trafficVerdicts() map[string][]run {
	return map[string][]run{
		"RatelimitTenantRefused": {
			{"31 %", true, []string{ofTenant("acme", "admitted", 6.9), ofTenant("acme", "limited", 3.1)}},
			{"29 %", false, []string{ofTenant("acme", "admitted", 7.1), ofTenant("acme", "limited", 2.9)}},
			{"all of too few", false, []string{ofTenant("acme", "limited", 0.9)}},
			{"all of just enough", true, []string{ofTenant("acme", "limited", 1.1)}},
			{"all of those that have no name", false, []string{ofTenant("other", "limited", 100)}},
			{"who is blocked", false, []string{ofTenant("acme", "blocked", 100)}},
		},
		"RatelimitClientsRetryEarly": {
			{"most", true, []string{decided("limited", 2), early(1.1)}},
			{"fewer than half", false, []string{decided("limited", 4), early(1.9)}},
			{"all of too few", false, []string{decided("limited", 0.9), early(0.9)}},
		},
		"RatelimitUnjudged": {
			{"0.2 %", true, []string{decided("admitted", 998), decided("unjudged", 1), decided("admitted_locally", 1)}},
			{"0.05 %", false, []string{decided("admitted", 999.5), decided("unjudged", 0.5)}},
			{"all of too few", false, []string{decided("unjudged", 0.9)}},
		},
		"RatelimitShedding": {
			{"6 % in one instance", true, []string{gauge(`ratelimit_throttle_shed_share{instance="a"}`, 0.06), gauge(`ratelimit_throttle_shed_share{instance="b"}`, 0)}},
			{"4 %", false, []string{gauge("ratelimit_throttle_shed_share", 0.04)}},
			{"nothing", false, []string{gauge("ratelimit_throttle_shed_share", 0)}},
		},
		"RatelimitBackstop": {
			{"2 %", true, []string{decided("admitted", 98), decided("backstop", 2)}},
			{"0.5 %", false, []string{decided("admitted", 99.5), decided("backstop", 0.5)}},
			{"all of too few", false, []string{decided("backstop", 0.9)}},
			{"what limits refuse", false, []string{decided("limited", 100)}},
		},
		"RatelimitRefusedByOutage": {
			{"some", true, []string{decided("unavailable", 0.06), decided("overloaded", 0.06)}},
			{"hardly any", false, []string{decided("unavailable", 0.09)}},
			{"what limits refuse", false, []string{decided("limited", 9)}},
		},
		"RatelimitPriceTooHigh": {
			{"51 %", true, priced(51, 1)},
			{"49 %", false, priced(49, 1)},
			{"of hardly any", false, priced(51, 0.09)},
		},
		"RatelimitPriceTooLow": {
			{"-11 %", true, priced(-11, 1)},
			{"-9 %", false, priced(-9, 1)},
			{"of hardly any", false, priced(-50, 0.09)},
		},
	}
}

// stateVerdicts are those of alerts about what a server has and does.
func stateVerdicts() map[string][]run {
	state := func(name string, value float64) []string {
		return []string{gauge(fmt.Sprintf("ratelimit_policy_state{ratelimit_policy_state=%q}", name), value)}
	}
	away := func(share float64) []string { return []string{counter("ratelimit_store_away_seconds_total", share)} }
	settled := func(result string) []string {
		return []string{counter(fmt.Sprintf("ratelimit_settlements_total{ratelimit_settlement_result=%q}", result), 1)}
	}
	wrote := func(result string) string {
		return counter(fmt.Sprintf("ratelimit_report_duration_seconds_count{job=%q,instance=%q,ratelimit_report_result=%q}", "j", "a", result), 1)
	}
	grows := func(series string) []run {
		return []run{{"it grows", true, []string{counter(series, 0.01)}}, {"it stays", false, []string{gauge(series, 7)}}}
	}
	return map[string][]run{
		"RatelimitStoreAway":     {{"6 %", true, away(.06)}, {"4 %", false, away(.04)}},
		"RatelimitStoreAwayLong": {{"91 %", true, away(.91)}, {"89 %", false, away(.89)}},
		"RatelimitPolicyStale": {
			{"stale", true, state("stale", 1)},
			{"never", true, state("never", 1)},
			{"not stale", false, state("stale", 0)},
			{"current", false, state("current", 1)},
		},
		"RatelimitPolicyRejected": {
			{"a revision", true, []string{gauge("ratelimit_policy_rejected", 7)}}, {"none", false, []string{gauge("ratelimit_policy_rejected", 0)}},
		},
		"RatelimitPolicyDiffers": {
			{"one is behind", true, []string{gauge(`ratelimit_policy_revision{instance="a"}`, 7), gauge(`ratelimit_policy_revision{instance="b"}`, 6)}},
			{"all have one", false, []string{gauge(`ratelimit_policy_revision{instance="a"}`, 7), gauge(`ratelimit_policy_revision{instance="b"}`, 7)}},
			{"one has no feed", false, []string{gauge(`ratelimit_policy_revision{instance="a"}`, 7), gauge(`ratelimit_policy_revision{instance="b"}`, 0)}},
		},
		"RatelimitDirectoryStale": {
			{"61 s", true, []string{gauge("ratelimit_directory_age_seconds", 61)}}, {"59 s", false, []string{gauge("ratelimit_directory_age_seconds", 59)}},
		},
		"RatelimitModeSwitchesStale": {
			{"61 s", true, []string{gauge("ratelimit_mode_switches_age_seconds", 61)}}, {"59 s", false, []string{gauge("ratelimit_mode_switches_age_seconds", 59)}},
		},
		"RatelimitUsageUncounted":   grows(`ratelimit_lease_uncounted_total{ratelimit_store_name=""}`),
		"RatelimitChargesUnsettled": grows(`ratelimit_lease_unsettled_total{ratelimit_store_name=""}`),
		"RatelimitBudgetsEvicted":   grows("ratelimit_store_evicted_total"),
		"RatelimitDoorEvicted":      grows("ratelimit_edge_evicted_total"),
		"RatelimitEventsDropped":    grows("ratelimit_events_dropped_total"),
		"RatelimitSettlementsDropped": {
			{"dropped", true, settled("dropped_full")},
			{"failed", true, settled("failed")},
			{"settled", false, settled("settled")},
			{"some at once, and none since", true, []string{late(`ratelimit_settlements_total{ratelimit_settlement_result="dropped_full"}`, 7)}},
			{"long ago", false, []string{gauge(`ratelimit_settlements_total{ratelimit_settlement_result="dropped_full"}`, 7)}},
			{"settled for the first time", false, []string{late(`ratelimit_settlements_total{ratelimit_settlement_result="settled"}`, 7)}},
		},
		"RatelimitStreamLag": {
			{"61 s", true, []string{gauge("ratelimit_stream_lag_seconds", 61)}}, {"59 s", false, []string{gauge("ratelimit_stream_lag_seconds", 59)}},
		},
		"RatelimitNoReport": {
			{"all fail", true, []string{wrote("failed")}}, {"some fail", false, []string{wrote("failed"), wrote("written")}},
		},
	}
}

// daemonVerdicts are those of alerts about the control plane.
func daemonVerdicts() map[string][]run {
	relay := func(name string, value float64) []string { return []string{gauge("ratelimit_relay_"+name, value)} }
	refused := func(share, decisions float64) []string {
		const of = `{ratelimit_tenant="acme"}`
		return []string{gauge("ratelimit_fleet_tenant_refused_share"+of, share), gauge("ratelimit_fleet_tenant_decisions"+of, decisions)}
	}
	unnamed := func(n float64) []string { return []string{gauge("ratelimit_fleet_tenants_unnamed", n)} }
	return map[string][]run{
		"RatelimitUnnamedTenantRefused": {
			{"31 %", true, refused(.31, 60)},
			{"30 %", false, refused(.3, 60)},
			{"all of too few", false, refused(1, 59)},
			{"who has a name", false, append(refused(1, 100), ofTenant("acme", "limited", 100))},
			{"beside one that has a name", true, append(refused(1, 100), ofTenant("globex", "limited", 100))},
		},
		"RatelimitMoreTenantsRefused": {{"one", true, unnamed(1)}, {"none", false, unnamed(0)}},
		"RatelimitRelayLag":           {{"11 s", true, relay("lag_seconds", 11)}, {"9 s", false, relay("lag_seconds", 9)}},
		"RatelimitRelayRefused":       {{"one", true, relay("refused", 1)}, {"none", false, relay("refused", 0)}},
		"RatelimitAnnounceLag": {
			{"61 s", true, []string{gauge("ratelimit_announce_lag_seconds", 61)}}, {"59 s", false, []string{gauge("ratelimit_announce_lag_seconds", 59)}},
		},
		"RatelimitAnnounceDropped": {
			{"one", true, []string{counter("ratelimit_announce_dropped_total", 0.01)}}, {"none since", false, []string{gauge("ratelimit_announce_dropped_total", 7)}},
		},
		"RatelimitUsageLag": {
			{"301 s", true, []string{gauge("ratelimit_collector_lag_seconds", 301), gauge("ratelimit_collector_leads", 1)}},
			{"299 s", false, []string{gauge("ratelimit_collector_lag_seconds", 299), gauge("ratelimit_collector_leads", 1)}},
			{"nobody collects", true, []string{gauge("ratelimit_collector_leads", 0)}},
			{"another one does", false, []string{gauge(`ratelimit_collector_leads{instance="a"}`, 0), gauge(`ratelimit_collector_leads{instance="b"}`, 1)}},
		},
		"RatelimitUsageMissed": {
			{"some", true, []string{counter("ratelimit_collector_missed_total", 0.01)}}, {"none since", false, []string{gauge("ratelimit_collector_missed_total", 7)}},
		},
		"RatelimitWebhooksBehind": {
			{"61 s", true, []string{gauge("ratelimit_webhook_behind_seconds", 61)}}, {"59 s", false, []string{gauge("ratelimit_webhook_behind_seconds", 59)}},
		},
		"RatelimitWebhooksDropped": {
			{"full", true, []string{counter(`ratelimit_webhook_dropped_total{ratelimit_webhook_reason="full"}`, 0.1)}},
			{"unreadable", false, []string{counter(`ratelimit_webhook_dropped_total{ratelimit_webhook_reason="unreadable"}`, 0.1)}},
		},
		"RatelimitRelayLeaders": {
			{"nobody", true, relay("leads", 0)},
			{"one", false, relay("leads", 1)},
			{"two", true, []string{gauge(`ratelimit_relay_leads{instance="a"}`, 1), gauge(`ratelimit_relay_leads{instance="b"}`, 1)}},
		},
	}
}
