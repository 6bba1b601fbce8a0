package main

import "strings"

// where narrows the selection down by one more matcher.
func where(matcher string) string { return strings.TrimSuffix(selected, "}") + "," + matcher + "}" }

// laned keeps series with a lane. Without DOCKET_LANES there are none.
var laned = where(`lane!=""`)

// slow are the p95 and p99 of a histogram by one of its labels.
func slow(metric, within, by string) []query {
	var all []query
	for _, q := range []struct{ quantile, legend string }{{"0.95", "p95"}, {"0.99", "p99"}} {
		all = append(all, query{
			expr:   "histogram_quantile(" + q.quantile + ", sum by (" + by + ", le) (rate(" + metric + "_bucket" + within + "[$__rate_interval])))",
			legend: "{{" + by + "}} " + q.legend,
		})
	}
	return all
}

// lanesRow is empty where neither lanes nor limits are set, so each of its queries is quiet.
func lanesRow() row {
	panels := append(lanePanels(), limitPanels()...)
	for i := range panels {
		quietly(panels[i].queries)
	}
	return row{"Lanes and limits", panels}
}

func lanePanels() []panel {
	const none = "no lanes"
	return []panel{
		{
			title: "Lag by lane", kind: "timeseries", w: 6, h: 8, unit: "short", none: none,
			about:   "Records that are not committed yet. Normal: urgent near 0 whatever the others have; bulk may be large, and falls while nothing else comes.",
			queries: []query{{expr: "sum by (lane) (max by (topic, partition, lane) (" + of("consumer", "docket_consumer_lag"+laned) + "))", legend: "{{lane}}"}},
		},
		{
			title: "Rows a second by lane", kind: "timeseries", w: 6, h: 8, unit: "cps", stacked: true, none: none,
			about:   "Rows stored now. Normal: urgent is a small part. Mostly urgent: the rules are too wide, and the lane passes nobody.",
			queries: []query{{expr: "sum by (lane) (" + rate("docket_lane_latency_seconds_count") + ")", legend: "{{lane}}"}},
		},
		{
			title: "From Kafka to the row, by lane", kind: "timeseries", w: 6, h: 8, unit: "s", steps: []step{{3, red}}, none: none,
			about:   "By the record's Kafka timestamp. Normal: urgent below 0.3 s, with a backlog in the other lanes too. Above 3 s there is an alert.",
			queries: slow("docket_lane_latency_seconds", selected, "lane"),
		},
		{
			title: "From OPA's timestamp to the row, by lane", kind: "timeseries", w: 6, h: 8, unit: "s", none: none,
			about:   "Normal: OPA's own upload delay and the time beside. The clocks of OPA and of this host differ in it too.",
			queries: slow("docket_end_to_end_seconds", laned, "lane"),
		},
		{
			title: "Yielding", kind: "state-timeline", w: 6, h: 7, steps: []step{{1, orange}}, none: none,
			about:   "While the urgent lane is behind, default and bulk write one batch at a time. Normal: no, but for a while after an outage.",
			queries: []query{{expr: "docket_lane_yielding" + selected, legend: "{{instance}}"}},
			mapped:  []mapping{{from: 0, to: 0, text: "no", color: green}, {from: 1, open: true, text: "yields", color: orange}},
		},
		{
			title: "Turns", kind: "timeseries", w: 6, h: 7, unit: "short", none: none,
			about:   "Batches that are written (held) or wait for a turn. Normal: at most four held for each consumer, three of them low; urgent waits for nothing.",
			queries: []query{{expr: "sum by (lane, state) (docket_lane_turns" + selected + ")", legend: "{{lane}} {{state}}"}},
		},
		{
			title: "Assigned partitions, by lane", kind: "timeseries", w: 6, h: 7, unit: "short", none: none,
			about:   "Of all consumers. Normal: as many as the topic of the lane has. 0: nobody reads the lane.",
			queries: []query{{expr: "sum by (lane) (docket_lane_assigned_partitions" + selected + ")", legend: "{{lane}}"}},
		},
		{
			title: "Oldest uncommitted, by lane", kind: "timeseries", w: 6, h: 7, unit: "s", none: none,
			about:   "Normal: urgent below a second. It grows for default and bulk while they yield or wait for a limit.",
			queries: []query{{expr: "max by (lane) (docket_oldest_uncommitted_seconds" + laned + ")", legend: "{{lane}}"}},
		},
		{
			title: "Collector: decisions a second, by lane", kind: "timeseries", w: 6, h: 7, unit: "cps", stacked: true, none: none,
			about:   "Where the collector sent decisions. Normal: urgent is a small part and not 0; at 0 no rule matches, and /readyz says which.",
			queries: []query{{expr: "sum by (lane) (" + rate("docket_collector_routed_total") + ")", legend: "{{lane}}"}},
		},
		{
			title: "Collector: beyond a share, a minute", kind: "timeseries", w: 6, h: 7, unit: "short", none: none,
			about:   "Decisions that a share sent to a lower lane, by its rule. Normal: 0, or what one noisy sender has too much; /readyz names the sender.",
			queries: []query{{expr: "60 * sum by (rule) (" + rate("docket_collector_shaped_total") + ")", legend: "{{rule}}"}},
		},
	}
}

func limitPanels() []panel {
	const none = "no limit"
	// With Redis each program tells the whole limit, without it each its share.
	inForce := "max by (limit) (docket_limit_rows" + selected + " and on (job, instance) docket_limit_breaker) or sum by (limit) (docket_limit_rows" + selected + ")"
	return []panel{
		{
			title: "Limit: rows granted a second", kind: "timeseries", w: 6, h: 7, unit: "cps", none: none,
			about: "By class, and the limits in force. Normal: below the limits. At the low limit for long: it is too low, or somebody sends too much.",
			queries: []query{
				{expr: "sum by (class) (" + rate("docket_limit_rows_total") + ")", legend: "{{class}}"},
				{expr: "sum(" + rate("docket_limit_local_rows_total") + ")", legend: "urgent without Redis"},
				{expr: inForce, legend: "limit {{limit}}"},
			},
		},
		{
			title: "Limit: wait of a write", kind: "timeseries", w: 6, h: 7, unit: "s", none: none,
			about:   "Normal: urgent 0. Low waits while it catches up.",
			queries: slow("docket_limit_wait_seconds", selected, "class"),
		},
		{
			title: "Limit: partitions that wait", kind: "timeseries", w: 6, h: 7, unit: "short", none: none,
			about:   "Normal: urgent 0; low above 0 only while there is a backlog.",
			queries: []query{{expr: "sum by (class) (docket_limit_waiting" + selected + ")", legend: "{{class}}"}},
		},
		{
			title: "Redis: breaker", kind: "state-timeline", w: 6, h: 7, steps: []step{{1, red}}, none: "no Redis",
			about: "Normal: neither open nor half open. Open: Redis is away, low lanes wait, urgent continues with a local share.",
			queries: []query{
				{expr: "max(docket_limit_breaker" + where(`state="open"`) + ")", legend: "open"},
				{expr: "max(docket_limit_breaker" + where(`state="half_open"`) + ")", legend: "half open"},
			},
			mapped: []mapping{{from: 0, to: 0, text: "no", color: green}, {from: 1, open: true, text: "yes", color: red}},
		},
		{
			title: "Redis: time of a call", kind: "timeseries", w: 6, h: 7, unit: "s", none: "no Redis",
			about:   "Normal: below a millisecond; calls that failed at none.",
			queries: slow("docket_limit_call_seconds", selected, "result"),
		},
	}
}
