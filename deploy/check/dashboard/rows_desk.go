package main

func deskRow() row {
	desk := func(vector string) string { return of("docket", vector) }
	return row{"The desk", []panel{
		{
			title: "Dead letters, by state", kind: "timeseries", w: 6, h: 8, unit: "short", stacked: true, none: "no desk",
			about:   "In the ledger; every desk counts the same. Normal: PENDING does not grow. Somebody has to decide about those: docket dlq groups.",
			queries: []query{{expr: "max by (state) (docket_desk_letters" + selected + ")", legend: "{{state}}"}},
		},
		{
			title: "Loss horizon", kind: "stat", w: 6, h: 8, unit: "s", text: "value_and_name", none: "not known",
			about:   "Time until retention deletes a record that is nowhere but in its topic: parked, a dead letter that the desk has not read, or one that a lane has not committed. Normal: nothing to lose, or days. 0 or less: records are, or were, deleted unread; raise retention.ms at once.",
			queries: []query{{expr: "clamp_max(min by (topic) (docket_desk_loss_horizon_seconds" + selected + "), 3153600000)", legend: "{{topic}}", quiet: true}},
			steps:   []step{{0.001, red}, {86400, yellow}, {259200, green}},
			mapped:  []mapping{{from: 3153600000, open: true, text: "nothing to lose", color: green}, {from: -3153600000, to: 0, text: "losing records", color: red}},
		},
		{
			title: "Partitions that stand still", kind: "timeseries", w: 6, h: 8, unit: "short", none: "no desk",
			about:   "Of the dead-letter topics, by the reason. Normal: 0. The letters stay in their topics meanwhile.",
			queries: []query{{expr: "sum by (reason) (docket_desk_hold" + selected + ")", legend: "{{reason}}"}},
		},
		{
			title: "Days left off", kind: "stat", w: 3, h: 8, unit: "short", none: "no desk",
			about:   "Days that an archive took out of decision_logs and did not drop. Normal: 0, or 1 while one is under way. Nobody who searches finds their rows: docket archive list says which, docket archive --day DAY finishes it.",
			queries: []query{{expr: "max(docket_desk_archives_left_off" + selected + ")", legend: "days"}}, steps: []step{{0, green}, {1, yellow}},
		},
		{
			title: "Closed, in no archive", kind: "stat", w: 3, h: 8, unit: "short", none: "no desk",
			about:   "Dead letters that were closed and would have been removed, had an archive them: each can be the only copy of a decision. Normal: 0. docket archive --dead-letters exports them.",
			queries: []query{{expr: "max(docket_desk_letters_unarchived" + selected + ")", legend: "dead letters"}}, steps: []step{{0, green}, {1, yellow}},
		},
		{
			title: "Edits not marked", kind: "stat", w: 3, h: 8, unit: "short", none: "no desk",
			about:   "Stored retries of edited dead letters whose rows do not say that they were edited. Normal: 0, but for seconds. The desk's log says why: edited row not marked.",
			queries: []query{{expr: "max(docket_desk_edits_unmarked" + selected + ")", legend: "retries"}}, steps: []step{{0, green}, {1, yellow}},
		},
		{
			title: "Entered a minute", kind: "timeseries", w: 6, h: 7, unit: "short", none: "no desk",
			about:   "Dead letters that came into the ledger. new: never seen; known: delivered again; dead_again: a retry that failed; left: not entered, as a client brought too many. Normal: few.",
			queries: []query{{expr: "60 * sum by (result) (" + rate("docket_desk_entered_total") + ")", legend: "{{result}}"}},
		},
		{
			title: "Dead letters in Kafka alone", kind: "timeseries", w: 6, h: 7, unit: "short", none: "no desk",
			about: "Beyond DOCKET_DESK_MAX_ENTERED. open: in Kafka alone; entered later; archived; lost; entered beyond the cap, as Kafka was about to delete them. Normal: 0. docket dlq surplus says whose they are.",
			queries: []query{
				{expr: "max by (state) (docket_desk_surplus_letters" + selected + ")", legend: "{{state}}"},
				{expr: "60 * sum(" + rate("docket_desk_surplus_forced_total") + ")", legend: "beyond the cap, a minute"},
			},
		},
		{
			title: "Oldest in Kafka alone", kind: "stat", w: 6, h: 7, unit: "s", none: "no desk",
			about:   "Age of the oldest dead letters that are in Kafka alone. Normal: 0. They are archived or enter before the retention ends.",
			queries: []query{{expr: "max(docket_desk_surplus_oldest_seconds" + selected + ")", legend: "age"}}, steps: []step{{0, green}, {86400, yellow}},
		},
		{
			title: "Published retries a minute", kind: "timeseries", w: 6, h: 7, unit: "short", none: "no desk",
			about:   "Normal: ok, and only while somebody retries. failed: Kafka did not take it and it is tried again. refused: given up, the letter says why.",
			queries: []query{{expr: "60 * sum by (result) (" + rate("docket_desk_published_total") + ")", legend: "{{result}}"}},
		},
		{
			title: "Rules and snoozed dead letters", kind: "timeseries", w: 6, h: 7, unit: "short", none: "no desk",
			about: "Normal: no rule stops itself. Snoozed ones are open and hidden from lists. Rules: those that hold or wait for a second person; the letters that they moved in a minute.",
			queries: []query{
				{expr: "max(docket_desk_letters_snoozed" + selected + ")", legend: "snoozed"},
				{expr: "max by (state) (docket_desk_rules" + selected + ")", legend: "rules {{state}}"},
				{expr: "60 * sum by (act) (" + rate("docket_desk_rule_letters_total") + ")", legend: "letters {{act}}, a minute"},
				{expr: "60 * sum(" + rate("docket_desk_rules_stopped_total") + ") or vector(0)", legend: "rules stopped, a minute"},
			},
		},
		{
			title: "Lag of the desk", kind: "timeseries", w: 6, h: 7, unit: "short", none: "no desk",
			about:   "Dead letters that are not in the ledger yet. Normal: 0.",
			queries: []query{{expr: "sum by (topic) (max by (topic, partition) (" + desk("docket_consumer_lag"+selected) + "))", legend: "{{topic}}"}},
		},
		{
			title: "API and messages a minute", kind: "timeseries", w: 6, h: 7, unit: "short", none: "no desk",
			about: "Normal: failed logins, panics and failed messages at 0. Failed logins: somebody tries tokens. Payload looks: who saw one is in the audit.",
			queries: []query{
				{expr: "60 * sum(" + rate("docket_desk_api_requests_total") + ") or vector(0)", legend: "requests"},
				{expr: "60 * sum(" + rate("docket_desk_api_failed_logins_total") + ") or vector(0)", legend: "failed logins"},
				{expr: "60 * sum(" + rate("docket_desk_api_panics_total") + ") or vector(0)", legend: "panics"},
				{expr: "60 * sum(" + rate("docket_desk_api_payload_looks_total") + ") or vector(0)", legend: "payload looks"},
				{expr: "60 * sum by (result) (" + rate("docket_desk_notifications_total") + ")", legend: "messages {{result}}", quiet: true},
			},
		},
	}}
}

func resources() row {
	each := func(vector string) []query { return []query{{expr: named(vector), legend: "{{program}} {{instance}}"}} }
	pools := func(vector string) []query { // the desk has two
		return []query{{expr: named(vector), legend: "{{program}} {{instance}} {{pool}}"}}
	}
	return row{"Resources", []panel{
		{
			title: "Connections in use", kind: "timeseries", w: 6, h: 7, unit: "percentunit", max: 1,
			about:   "Share of the pool. Normal: below 80 %. Full all the time: writes wait for a connection; see docs/scaling.md.",
			queries: pools("(docket_postgres_pool_acquired_connections" + selected + " / docket_postgres_pool_max_connections" + selected + ")"),
		},
		{
			title: "Connections", kind: "timeseries", w: 6, h: 7, unit: "short",
			about: "Of all pools together. Normal: idle above 0 at rest. Dialled again all the time: the server or something between closes them.",
			queries: []query{
				{expr: "sum(docket_postgres_pool_acquired_connections" + selected + ")", legend: "in use"},
				{expr: "sum(docket_postgres_pool_idle_connections" + selected + ")", legend: "idle"},
				{expr: "60 * sum(" + rate("docket_postgres_pool_new_connections_total") + ")", legend: "dialled a minute"},
			},
		},
		{
			title: "Wait for a connection", kind: "timeseries", w: 6, h: 7, unit: "s",
			about:   "Seconds of waiting or dialling in a second. Normal: near 0; above 1 several writes wait at any moment: pool_max_conns, or the server's max_connections.",
			queries: pools(rate("docket_postgres_pool_empty_acquire_wait_seconds_total")),
		},
		{
			title: "Memory", kind: "timeseries", w: 6, h: 7, unit: "bytes",
			about:   "Resident. Normal: level under load, bounded by the settings. Growing without end: a bug.",
			queries: each("process_resident_memory_bytes" + selected),
		},
		{
			title: "CPU", kind: "timeseries", w: 6, h: 7, unit: "short",
			about:   "Cores in use. Normal: well below one for a few thousand decisions a second; see docs/performance.md.",
			queries: each(rate("process_cpu_seconds_total")),
		},
		{
			title: "Goroutines", kind: "timeseries", w: 6, h: 7, unit: "short",
			about:   "Normal: level; some for each partition and broker. Growing without end: a bug.",
			queries: each("go_goroutines" + selected),
		},
		{
			title: "Open files", kind: "timeseries", w: 6, h: 7, unit: "percentunit", max: 1,
			about:   "Share of the limit (ulimit -n). Normal: a few in a hundred.",
			queries: each("(process_open_fds" + selected + " / process_max_fds" + selected + ")"),
		},
		{
			title: "Versions", kind: "bargauge", w: 6, h: 7, unit: "short",
			about:   "Instances by program and version. Normal: one version, and as many instances as you run; two during an upgrade.",
			queries: []query{{expr: "count by (program, version) (docket_build_info" + selected + ")", legend: "{{program}} {{version}}"}}, steps: []step{{0, blue}},
		},
	}}
}
