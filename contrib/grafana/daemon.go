package grafana

import "github.com/grafana/grafana-foundation-sdk/go/units"

// daemon is the board of gqlratelimitd: what it brings where, what it collects, and how it answers.
func daemon() board {
	return board{
		uid: "ratelimit-daemon", title: "Rate limiter: control plane", about: "What gqlratelimitd brings to Redis, to streams and to webhooks, what it collects, and how it answers.",
		rows: []row{
			{"Relay", daemonRelay()},
			{"Announcements", daemonAnnouncements()},
			{"Usage", daemonUsage()},
			{"Webhooks", daemonWebhooks()},
			{"Requests", daemonRequests()},
		},
	}
}

func daemonRelay() []panel {
	return []panel{
		{
			"Lag of the relay", "For how long the oldest change waits that Redis has not been given.", units.Seconds,
			[]query{{`max(ratelimit_relay_lag_seconds{SCOPE})`, "lag"}},
		},
		{
			"Not in Redis as it should be", "Changes that wait, those that Redis will not have before somebody changes them, and overrides that were set elsewhere.", units.Short,
			[]query{
				{`max(ratelimit_relay_waiting{SCOPE})`, "waiting"},
				{`max(ratelimit_relay_refused{SCOPE})`, "refused"},
				{`max(ratelimit_relay_unmanaged{SCOPE})`, "unmanaged"},
			},
		},
		{
			"Daemons that relay", "It should be one.", units.Short,
			[]query{{`sum(ratelimit_relay_leads{SCOPE})`, "daemons"}},
		},
		{
			"Writes of the relay", "By what has changed, and how often it could not go on.", units.OpsPerSecond,
			[]query{
				{`sum by (ratelimit_relay_kind) (rate(ratelimit_relay_writes_total{SCOPE}[$__rate_interval]))`, "{{ratelimit_relay_kind}}"},
				{`sum(rate(ratelimit_relay_failures_total{SCOPE}[$__rate_interval]))`, "failures"},
			},
		},
	}
}

func daemonAnnouncements() []panel {
	return []panel{
		{
			"Lag of what is announced", "Age of the oldest entry of the audit log that the stream has not acknowledged.", units.Seconds,
			[]query{{`max(ratelimit_announce_lag_seconds{SCOPE})`, "lag"}},
		},
		{
			"Entries that wait to be announced", "Entries of the audit log that the stream has not acknowledged.", units.Short,
			[]query{{`max(ratelimit_announce_waiting{SCOPE})`, "waiting"}},
		},
		{
			"Announced", "Entries that the stream has acknowledged, and those of them that were sent again, under the same id.", units.EventsPerSecond,
			[]query{
				{`sum(rate(ratelimit_announce_sent_total{SCOPE}[$__rate_interval]))`, "published"},
				{`sum(rate(ratelimit_announce_repeated_total{SCOPE}[$__rate_interval]))`, "repeated"},
			},
		},
		{
			"Not announced", "How often it failed and waits to be tried again, and entries that the stream never takes.", units.Short,
			[]query{
				{`sum(increase(ratelimit_announce_failures_total{SCOPE}[$__rate_interval]))`, "failed"},
				{`sum(increase(ratelimit_announce_dropped_total{SCOPE}[$__rate_interval]))`, "never taken"},
			},
		},
	}
}

func daemonUsage() []panel {
	return []panel{
		{
			"Lag of the collection", "How long ago the newest minute ended that was collected, a minute or two while all is well.", units.Seconds,
			[]query{{`max(ratelimit_collector_lag_seconds{SCOPE})`, "lag"}},
		},
		{
			"Gaps", "Minutes that nobody has collected in time, and rows that have no place in the database.", units.Short,
			[]query{
				{`sum(increase(ratelimit_collector_missed_total{SCOPE}[$__rate_interval]))`, "minutes"},
				{`sum by (ratelimit_collector_kind) (increase(ratelimit_collector_left_out_total{SCOPE}[$__rate_interval]))`, "rows of {{ratelimit_collector_kind}}"},
			},
		},
		{
			"Rows", "What is brought to the database, by what it is of.", units.CountsPerSecond,
			[]query{{`sum by (ratelimit_collector_kind) (rate(ratelimit_collector_rows_total{SCOPE}[$__rate_interval]))`, "{{ratelimit_collector_kind}}"}},
		},
		{
			"Daemons that collect", "It should be one, and how often that one could not go on.", units.Short,
			[]query{
				{`sum(ratelimit_collector_leads{SCOPE})`, "daemons"},
				{`sum(increase(ratelimit_collector_failures_total{SCOPE}[$__rate_interval]))`, "failures"},
			},
		},
	}
}

func daemonWebhooks() []panel {
	return []panel{
		{
			"Attempts", "By what they came to. What has failed, and what asked for later, is tried again.", units.OpsPerSecond,
			[]query{{`sum by (ratelimit_webhook_outcome) (rate(ratelimit_webhook_attempts_total{SCOPE}[$__rate_interval]))`, "{{ratelimit_webhook_outcome}}"}},
		},
		{
			"Messages", "Those that were put before endpoints, those that found no room or are no events, and those that are tried no more.", units.CountsPerSecond,
			[]query{
				{`sum(rate(ratelimit_webhook_messages_total{SCOPE}[$__rate_interval]))`, "put"},
				{`sum by (ratelimit_webhook_reason) (rate(ratelimit_webhook_dropped_total{SCOPE}[$__rate_interval]))`, "dropped ({{ratelimit_webhook_reason}})"},
				{`sum(rate(ratelimit_webhook_died_total{SCOPE}[$__rate_interval]))`, "died"},
			},
		},
		{
			"Waiting and dead", "Messages that wait for their next attempt, and those that are tried no more and can be replayed.", units.Short,
			[]query{{`max(ratelimit_webhook_waiting{SCOPE})`, "waiting"}, {`max(ratelimit_webhook_dead{SCOPE})`, "dead"}},
		},
		{
			"How late", "How long ago the streams were read to their end, for how long a message waits for an attempt that is due, and for how long the oldest waits: three days at most.", units.Seconds,
			[]query{
				{`max(ratelimit_webhook_behind_seconds{SCOPE})`, "not read"},
				{`max(ratelimit_webhook_late_seconds{SCOPE})`, "due"},
				{`max(ratelimit_webhook_oldest_seconds{SCOPE})`, "oldest"},
			},
		},
		{
			"Endpoints", "By whether they get events. One that has answered 410 is disabled.", units.Short,
			[]query{{`max by (ratelimit_webhook_state) (ratelimit_webhook_endpoints{SCOPE})`, "{{ratelimit_webhook_state}}"}},
		},
	}
}

func daemonRequests() []panel {
	return []panel{
		{
			"Requests", "Of plain HTTP, by status.", units.RequestsPerSecond,
			[]query{{`sum by (http_response_status_code) (rate(http_server_request_duration_seconds_count{SCOPE}[$__rate_interval]))`, "{{http_response_status_code}}"}},
		},
		{
			"Duration of requests", "The slowest of twenty, by route. Those that wait for a change take as long as they wait.", units.Seconds,
			[]query{{`histogram_quantile(0.95, sum by (le, http_route) (rate(http_server_request_duration_seconds_bucket{SCOPE}[$__rate_interval])))`, "{{http_route}}"}},
		},
	}
}
