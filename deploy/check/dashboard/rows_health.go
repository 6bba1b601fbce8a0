package main

func health() row {
	held := "max by (reason) (max_over_time(docket_hold" + selected + "[$__range])) > 0"
	return row{"Is it healthy?", []panel{
		{
			title: "Holds", kind: "state-timeline", w: 24, h: 6, steps: []step{{1, red}},
			about: "Holds over time, by the reason; reasons that did not occur in the time shown are left out. Normal: none, green. A hold ends by itself once its reason is gone.",
			queries: []query{{
				expr: "max by (reason) (docket_hold" + selected + ") and on (reason) (" + held + `) or (label_replace(vector(0), "reason", "none", "", "") unless on () (` + held + "))", legend: "{{reason}}",
			}},
			mapped: []mapping{{from: 0, to: 0, text: "works", color: green}, {from: 1, open: true, text: "holds", color: red}},
		},
		{
			title: "Store time", kind: "timeseries", w: 8, h: 8, unit: "s",
			about:   "One write transaction that succeeded. Normal: milliseconds to tens of them, with a p99 well below DOCKET_STORE_TIMEOUT. Rising: look at the database (locks, checkpoints, disk), then at the pool below.",
			queries: quantiles("docket_store_duration_seconds", `,result="stored"`),
		},
		{
			title: "Batch time", kind: "timeseries", w: 8, h: 8, unit: "s",
			about:   "From a batch in hand to the last of its homes, waits included. Normal: little more than the store time. Much more: retries, searches for bad records, or batches wait for their turn.",
			queries: quantiles("docket_batch_duration_seconds", ""),
		},
		{
			title: "Writes a second", kind: "timeseries", w: 8, h: 8, unit: "cps",
			about:   "Write transactions by how they ended. Normal: failed at 0.",
			queries: []query{{expr: "sum by (result) (" + rate("docket_store_duration_seconds_count") + ")", legend: "{{result}}"}},
		},
		{
			title: "Failed writes a minute, by class and code", kind: "timeseries", w: 12, h: 8, unit: "short",
			about: "Normal: none. transient: the moment is to blame; data: a record; systemic: the set-up, and Docket holds. consumer classify CODE says what a code means.",
			queries: []query{{
				expr: "60 * sum by (class, code) (" + rate("docket_store_failures_total") + `) or label_replace(label_replace(vector(0), "class", "none", "", ""), "code", "", "", "") unless on () docket_store_failures_total` + selected, legend: "{{class}} {{code}}",
			}},
		},
		{
			title: "Retries, searches, refused publishes a minute", kind: "timeseries", w: 12, h: 8, unit: "short",
			about: "Normal: 0. Retries: writes tried again after a pause. Searches: writes made to find bad records. Not published: Kafka did not take a forwarded record, which goes to the spool; look at the brokers, the topic and its ACLs.",
			queries: []query{
				{expr: "60 * sum(" + rate("docket_store_retries_total") + ")", legend: "retries"},
				{expr: "60 * sum(" + rate("docket_bisect_probes_total") + ")", legend: "search writes"},
				{expr: "60 * sum by (topic) (" + rate("docket_publish_failures_total") + ")", legend: "not published to {{topic}}"},
			},
		},
	}}
}

func spoolAndParking() row {
	parked := of("parking-replayer", "docket_oldest_uncommitted_seconds"+selected)
	return row{"Spool and parking", []panel{
		{
			title: "Spool: files", kind: "timeseries", w: 5, h: 7, unit: "short",
			about:   "Files that wait for Kafka. Normal: 0. Growing: Kafka takes nothing that is forwarded; the records are durable, on this disk alone.",
			queries: []query{{expr: named("docket_spool_files" + selected), legend: "{{program}} {{instance}}"}},
		},
		{
			title: "Spool: bytes", kind: "timeseries", w: 5, h: 7, unit: "bytes",
			about:   "Normal: 0. At DOCKET_SPOOL_MAX_BYTES Docket holds (or, with evict, drops).",
			queries: []query{{expr: named("docket_spool_bytes" + selected), legend: "{{program}} {{instance}}"}},
		},
		{
			title: "Spool: how full", kind: "timeseries", w: 4, h: 7, unit: "percentunit", max: 1,
			about:   "Of what it may have, DOCKET_SPOOL_MAX_BYTES. Normal: 0, and nothing where there is no spool.",
			queries: []query{{expr: named("(docket_spool_bytes" + selected + " / docket_spool_max_bytes" + selected + ")"), legend: "{{program}} {{instance}}"}},
		},
		{
			title: "Spool: oldest file", kind: "timeseries", w: 5, h: 7, unit: "s",
			about:   "Normal: 0; below a few minutes after Kafka is back. Old files with a Kafka that is well: see the records that are too large, or a broken file in corrupt/.",
			queries: []query{{expr: named("docket_spool_oldest_seconds" + selected), legend: "{{program}} {{instance}}"}},
		},
		{
			title: "Spool: drained a second, too large, broken", kind: "timeseries", w: 5, h: 7, unit: "short",
			about: "Drained: spooled records that went on to their topic. Too large: those that the broker refuses even with the least headers; raise max.message.bytes of the topic. Broken: files that were moved to corrupt/ in the time shown. Normal: all 0.",
			queries: []query{
				{expr: "sum(" + rate("docket_spool_recovered_records_total") + ")", legend: "drained"},
				{expr: "sum(docket_spool_oversize_records" + selected + ")", legend: "too large, waiting"},
				{expr: "sum(increase(docket_spool_corrupt_files_total" + selected + "[$__range]))", legend: "broken files"},
			},
		},
		{
			title: "Parked: not due yet", kind: "timeseries", w: 6, h: 8, unit: "short",
			about: "Waiting: parked records that were read and are not due. Lag: all that are in the parking topic, due or not. Normal: 0; after an outage it falls with the back-off.",
			queries: []query{
				{expr: "sum(" + of("parking-replayer", "docket_parking_waiting"+selected) + ")", legend: "waiting"},
				{expr: "sum(max by (topic, partition) (" + of("parking-replayer", "docket_consumer_lag"+selected) + "))", legend: "lag"},
			},
		},
		{
			title: "Parked: age of the oldest", kind: "timeseries", w: 6, h: 8, unit: "s",
			about:   "Since it was parked last. Normal: 0, or below DOCKET_PARKING_MAX_BACKOFF and a little. Older: the replayer is away, holds, or the database still refuses.",
			queries: []query{{expr: "max by (topic) (" + parked + ")", legend: "{{topic}}"}},
		},
		{
			title: "Parked: share of the retention", kind: "stat", w: 6, h: 8, unit: "percentunit", steps: []step{{0.5, yellow}, {0.8, red}}, none: "retention not known",
			about:   "Age of the oldest parked record against the retention of its topic. Normal: near 0. At 100 % Kafka deletes records that are nowhere else: raise retention.ms now, then find out why they are not replayed.",
			queries: []query{{expr: "max(max by (topic) (" + parked + ") / on (topic) max by (topic) (docket_topic_retention_seconds" + selected + "))"}},
		},
		{
			title: "Replayed a second, by home", kind: "timeseries", w: 6, h: 8, unit: "cps", stacked: true,
			about:   "Normal: 0, or row after an outage. parked again and again: what alone fails still fails. exhausted: given up.",
			queries: []query{{expr: "sum by (home) (" + of("parking-replayer", rate("docket_records_total")) + ")", legend: "{{home}}"}},
		},
		{
			title: "Retention", kind: "stat", w: 24, h: 4, unit: "s", text: "value_and_name", none: "not known: the programs may not describe the topics",
			about:   "How long the topics keep their records, as the brokers told. Normal: the parking and dead-letter topics keep theirs for longer than your longest outage with holidays on top.",
			queries: []query{{expr: "clamp_max(min by (topic) (docket_topic_retention_seconds" + selected + "), 3153600000)", legend: "{{topic}}", quiet: true}},
			mapped:  []mapping{{from: 3153600000, open: true, text: "for ever", color: green}},
		},
	}}
}
