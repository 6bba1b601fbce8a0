package main

// Names of colours.
const (
	green  = "green"
	yellow = "yellow"
	orange = "orange"
	red    = "red"
	blue   = "blue"
)

// willNot says what a time until caught up means that is as long as it can be.
var willNot = []mapping{{from: 604800, open: true, text: "will not catch up", color: red}}

// board is the whole dashboard.
func board() []row {
	return []row{glance(), keepingUp(), homes(), health(), spoolAndParking(), latency(), lanesRow(), collectorRow(), deskRow(), statesRow(), resources()}
}

// state has the reasons of all holds, or that there is no consumer, or else that all is well.
func state() string {
	holding := "docket_hold" + selected + " == 1"
	return "max by (reason) (" + holding + ") or max by (reason) (docket_desk_hold" + selected + " > 0)" +
		` or label_replace(absent(docket_build_info{program="consumer"}), "reason", "no consumer", "", "")` +
		` or (label_replace(vector(0), "reason", "ok", "", "") unless on () (` + holding + " or docket_desk_hold" + selected + ` > 0 or absent(docket_build_info{program="consumer"})))`
}

func glance() row {
	return row{"At a glance", []panel{
		{
			title: "State", kind: "stat", w: 6, h: 5, text: "name", none: "no data",
			about:   "Normal: ok. Otherwise the reasons why programs hold, or no consumer. While Docket holds nothing is lost and nothing is committed; it resumes by itself once the reason is gone. /readyz and the log line say what to do; see docs/runbook.md.",
			queries: []query{{expr: state(), legend: "{{reason}}"}}, steps: []step{{1, red}},
		},
		{
			title: "Unaccounted", kind: "stat", w: 3, h: 5, unit: "short",
			about:   "Decisions read less homes less in flight. Normal: 0, always. Anything else is a bug of Docket: run consumer verify and report it.",
			queries: []query{{expr: "max(abs(docket_unaccounted_records" + selected + "))"}}, steps: []step{{1, red}},
		},
		{
			title: "Lag", kind: "stat", w: 3, h: 5, unit: "short",
			about:   "Records of the source topic that are not committed yet, of all partitions. Normal: about what arrives within a second or two. It grows in an outage and falls afterwards; the time beside it says whether it does.",
			queries: []query{{expr: "sum(" + lag + ")"}}, steps: []step{{100000, yellow}},
		},
		{
			title: "Caught up in", kind: "stat", w: 3, h: 5, unit: "s", mapped: append([]mapping{{from: 0, to: 0, text: "caught up", color: green}}, willNot...), none: "not known yet",
			about:   "Of the slowest partition, from the trend of its lag over ten minutes, or three where that falls already. Normal: caught up, which is fewer than " + fewRecords + " records behind. \"will not catch up\": the lag does not fall, or not within a week; more instances, up to one for each partition, or a faster database.",
			queries: []query{{expr: "max(" + catchUp() + ")"}}, steps: []step{{900, yellow}, {7200, red}},
		},
		{
			title: "Decisions into homes", kind: "stat", w: 3, h: 5, unit: "cps", text: "value",
			about:   "Decisions a second that got a home, whichever. Normal: what your OPAs decide. 0 with a lag means that something holds.",
			queries: []query{{expr: "sum(" + rate("docket_records_total") + ")"}}, steps: []step{{0, blue}},
		},
		{
			title: "Oldest uncommitted", kind: "stat", w: 3, h: 5, unit: "s",
			about:   "Age of the oldest record that a consumer has fetched and not committed. Normal: a few seconds. It grows while a partition holds or the database is too slow.",
			queries: []query{{expr: "max(" + of("consumer", "docket_oldest_uncommitted_seconds"+selected) + ")"}}, steps: []step{{60, yellow}, {600, red}},
		},
		{
			title: "Dropped: data loss", kind: "stat", w: 3, h: 5, unit: "short",
			about:   "Spooled records that were evicted in the time that is shown. Normal: 0, and it stays 0 unless DOCKET_SPOOL_ON_FULL=evict. They are lost in Docket: find them in the source topic while it still holds them.",
			queries: []query{{expr: "sum(increase(docket_spool_dropped_records_total" + selected + "[$__range]))"}}, steps: []step{{0.5, red}},
		},
	}}
}

func keepingUp() row {
	carried := "sum(" + of("consumer", rate("docket_batch_records_sum")) + ")"
	return row{"Is it keeping up?", []panel{
		{
			title: "Lag by partition", kind: "timeseries", w: 12, h: 8, unit: "short",
			about:   "Normal: flat and small, the partitions alike. One that grows alone is held or gets most of the records (a key that is too popular); all that grow: too few instances or a slow database.",
			queries: []query{{expr: lag, legend: "{{topic}}/{{partition}}"}},
		},
		{
			title: "Caught up in, by partition", kind: "timeseries", w: 12, h: 8, unit: "s", mapped: willNot,
			about:   "From the trend of ten minutes, or three where that falls already; a week at most, which means never. Normal: 0. The slowest partition counts.",
			queries: []query{{expr: catchUp(), legend: "{{topic}}/{{partition}}"}},
		},
		{
			title: "Records in and out", kind: "timeseries", w: 8, h: 8, unit: "cps",
			about: "Kafka records of the source topic: carried by the consumers, and arriving (carried, and what the lag grows by). Normal: the same. Arriving above carried for long: it does not keep up.",
			queries: []query{
				{expr: carried, legend: "carried"},
				{expr: "clamp_min(" + carried + " + sum(deriv(" + lag + "[2m:15s])), 0)", legend: "arriving"},
			},
		},
		{
			title: "Assigned partitions", kind: "timeseries", w: 8, h: 8, unit: "short", stacked: true,
			about:   "Normal: spread evenly, the sum that of the topics' partitions. An instance with none waits. Often changing: the group rebalances; look for instances that start again.",
			queries: []query{{expr: named("docket_assigned_partitions" + selected), legend: "{{program}} {{instance}}"}},
		},
		{
			title: "Oldest uncommitted, by partition", kind: "timeseries", w: 8, h: 8, unit: "s",
			about:   "Age by the Kafka timestamp of the oldest record that was fetched and is not committed. Normal: seconds. A straight line upwards is a partition that holds.",
			queries: []query{{expr: "max by (topic, partition) (" + of("consumer", "docket_oldest_uncommitted_seconds"+selected) + ")", legend: "{{topic}}/{{partition}}"}},
		},
		{
			title: "Since the last commit", kind: "timeseries", w: 12, h: 6, unit: "s",
			about: "Normal: seconds while records arrive; it grows on a quiet topic. Growing with a lag: commits do not go through, see the log for commit failed.",
			queries: []query{{
				expr: "time() - " + named("(docket_last_commit_timestamp_seconds"+selected+" > 0)") + " or on () vector(0)", legend: "{{program}} {{instance}}",
			}},
		},
		{
			title: "Records in a batch", kind: "timeseries", w: 12, h: 6, unit: "short",
			about: "The mean. Normal: small with few records, DOCKET_BATCH_MAX_RECORDS under load.",
			queries: []query{{
				expr: "sum(" + rate("docket_batch_records_sum") + ") / (sum(" + rate("docket_batch_records_count") + ") > 0) or vector(0)", legend: "records",
			}},
		},
	}}
}

func homes() row {
	return row{"Where do records go?", []panel{
		{
			title: "Decisions a second, by home", kind: "timeseries", w: 12, h: 9, unit: "cps", stacked: true,
			about:   "Normal: row, and little else. duplicate: delivered again, a restart or a producer that repeats. parked: the database could not take it just now. dead_letter: the record itself is to blame. exhausted: the replayer gave up. spooled: Kafka did not take it.",
			queries: []query{{expr: "sum by (home) (" + rate("docket_records_total") + ")", legend: "{{home}}"}},
		},
		{
			title: "Decisions by home, in the time shown", kind: "bargauge", w: 6, h: 9, unit: "short",
			about:   "The account of the time that is shown. Normal: row above all; exhausted 0. Look at dead letters with docket dlq groups.",
			queries: []query{{expr: "sum by (home) (increase(docket_records_total" + selected + "[$__range]))", legend: "{{home}}"}}, steps: []step{{0, blue}},
		},
		{
			title: "Unaccounted", kind: "timeseries", w: 6, h: 9, unit: "short", steps: []step{{1, red}},
			about:   "Of each instance. Normal: 0, always. Anything else is a bug of Docket; consumer verify says what is true.",
			queries: []query{{expr: named("abs(docket_unaccounted_records" + selected + ")"), legend: "{{program}} {{instance}}"}},
		},
		{
			title: "Dead letters and exhausted, a minute", kind: "timeseries", w: 12, h: 7, unit: "short",
			about:   "Normal: 0 or a few. Many at once: a producer changed its format, or the table did; docket dlq groups shows what they have in common.",
			queries: []query{{expr: `60 * sum by (home) (rate(docket_records_total{job=~"$job",instance=~"$instance",home=~"dead_letter|exhausted"}[$__rate_interval]))`, legend: "{{home}}"}},
		},
		{
			title: "Refused by the decoder, a minute", kind: "timeseries", w: 12, h: 7, unit: "short",
			about:   "By the reason, which is also in the dead letter's header x-failure-code. Normal: 0. docs/errors.md explains them.",
			queries: []query{{expr: "60 * sum by (code) (" + rate("docket_decode_failures_total") + ")", legend: "{{code}}"}},
		},
	}}
}

func latency() row {
	return row{"End to end", []panel{
		{
			title: "From OPA's timestamp to the row", kind: "timeseries", w: 16, h: 8, unit: "s",
			about:   "Of rows stored now. Normal: OPA's own upload delay (minutes, by default) and a second or two. The clocks of OPA and of this host differ in it too. An outage shows as a hump.",
			queries: quantiles("docket_end_to_end_seconds", ""),
		},
		{
			title: "p99 now", kind: "stat", w: 8, h: 8, unit: "s", steps: []step{{900, yellow}}, none: "no rows",
			about:   "99 of 100 rows were stored within this time of the decision. Normal: steady.",
			queries: []query{quantiles("docket_end_to_end_seconds", "")[2]},
		},
	}}
}
