package grafana

import "github.com/grafana/grafana-foundation-sdk/go/units"

// rollout is the board that is open while a policy changes.
func rollout() board {
	return board{
		uid: "ratelimit-rollout", title: "Rate limiter: policy", about: "Which policy instances serve, and what a candidate would have decided.",
		rows: []row{
			{"Candidate", candidate()},
			{"Policy of the instances", policies()},
			{"Tenants, mode switches", records()},
		},
	}
}

func candidate() []panel {
	return []panel{
		{
			"The candidate beside the live policy", "Decisions beside which a candidate was judged: first what was decided, then what it would have.", units.RequestsPerSecond,
			[]query{{
				`sum by (ratelimit_outcome, ratelimit_candidate_outcome) (rate(ratelimit_candidate_decisions_total{SCOPE}[$__rate_interval]))`,
				"{{ratelimit_outcome}} / {{ratelimit_candidate_outcome}}",
			}},
		},
	}
}

func policies() []panel {
	return []panel{
		{
			"Instances, by revision", "How many serve which revision. Two lines for minutes: some are behind.", units.Short,
			[]query{{`count_values by (ratelimit_policy_name) ("revision", ratelimit_policy_revision{SCOPE})`, "{{ratelimit_policy_name}} {{revision}}"}},
		},
		{
			"Instances, by state", "stale and never: the feed does not say whether their policy is the newest.", units.Short,
			[]query{{`sum by (ratelimit_policy_state) (ratelimit_policy_state{SCOPE})`, "{{ratelimit_policy_state}}"}},
		},
		{
			"Age", "For how long the feed has not said that an instance is in step with it, of the instance that waits longest.", units.Seconds,
			[]query{{`max by (ratelimit_policy_name) (ratelimit_policy_age_seconds{SCOPE})`, "{{ratelimit_policy_name}}"}},
		},
		{
			"Revisions", "How many were applied, or refused by reason.", units.EventsPerSecond,
			[]query{{`sum by (ratelimit_policy_result) (rate(ratelimit_policy_changes_total{SCOPE}[$__rate_interval]))`, "{{ratelimit_policy_result}}"}},
		},
		{
			"Refused revision", "Number of the newest revision while an instance refuses it, else 0.", units.NoUnit,
			[]query{{`max by (ratelimit_policy_name) (ratelimit_policy_rejected{SCOPE})`, "{{ratelimit_policy_name}}"}},
		},
	}
}

func records() []panel {
	return []panel{
		{
			"Records of tenants asked for", "Questions about tenants that are not in the cache, and requests that did not wait for the answer.", units.OpsPerSecond,
			[]query{{`sum by (ratelimit_directory_result) (rate(ratelimit_directory_misses_total{SCOPE}[$__rate_interval]))`, "{{ratelimit_directory_result}}"}},
		},
		{
			"Tenants in the cache", "Of the instance that has most.", units.Short,
			[]query{{`max by (ratelimit_directory_state) (ratelimit_directory_tenants{SCOPE})`, "{{ratelimit_directory_state}}"}},
		},
		{
			"Mode switches", "How many an instance applies, by the strictest mode that they leave.", units.Short,
			[]query{{`max by (ratelimit_mode) (ratelimit_mode_switches{SCOPE})`, "{{ratelimit_mode}}"}},
		},
		{
			"Not told for", "For how long an instance was not told what has changed, of the instance that waits longest.", units.Seconds,
			[]query{{`max(ratelimit_directory_age_seconds{SCOPE})`, "tenants"}, {`max(ratelimit_mode_switches_age_seconds{SCOPE})`, "mode switches"}},
		},
	}
}
