package main

func collectorRow() row {
	return row{"The collector", []panel{
		{
			title: "Uploads a minute", kind: "timeseries", w: 6, h: 8, unit: "short", stacked: true, none: "no collector",
			about:   "By the status of the answer. Normal: 200. 429 and 503: OPA sends them again. Other 4xx: OPA sends them again for ever, until somebody changes something.",
			queries: []query{{expr: "60 * sum by (code) (" + rate("docket_collector_uploads_total") + ") > 0", legend: "{{code}}", quiet: true}},
		},
		{
			title: "Why uploads are turned away, a minute", kind: "timeseries", w: 6, h: 8, unit: "short", none: "none is",
			about:   "Normal: none. uploads, memory: more collectors, or a higher limit. kafka: the brokers. The others: see the log, it names the upload and what to change.",
			queries: []query{{expr: "60 * sum by (reason) (" + rate("docket_collector_refused_total") + ") > 0", legend: "{{reason}}", quiet: true}},
		},
		{
			title: "Decisions a second", kind: "timeseries", w: 6, h: 8, unit: "short", none: "no collector",
			about: "That Kafka acknowledged, by their home. Normal: topic. dead_letter: what cannot be stored or its client may not upload; the desk has it.",
			queries: []query{
				{expr: "sum by (home) (" + rate("docket_collector_decisions_total") + ")", legend: "{{home}}"},
				{expr: "sum(" + rate("docket_collector_not_allowed_total") + ") > 0", legend: "not allowed", quiet: true},
			},
		},
		{
			title: "Time of an upload", kind: "timeseries", w: 6, h: 8, unit: "s", none: "no collector",
			about:   "From its place to the answer, which waits for Kafka. Normal: tens of milliseconds. Near DOCKET_PUBLISH_TIMEOUT: the brokers are slow.",
			queries: quietly(quantiles("docket_collector_upload_duration_seconds", "")),
		},
		{
			title: "Uploads under way", kind: "timeseries", w: 6, h: 7, unit: "short", none: "no collector",
			about:   "Normal: few. At DOCKET_COLLECTOR_UPLOADS further ones are answered 429.",
			queries: []query{{expr: "docket_collector_uploads_in_flight" + selected, legend: "{{instance}}"}},
		},
		{
			title: "Memory of uploads", kind: "timeseries", w: 6, h: 7, unit: "bytes", none: "no collector",
			about:   "Normal: below half of DOCKET_COLLECTOR_MEMORY. At it further uploads are answered 429.",
			queries: []query{{expr: "docket_collector_memory_bytes" + selected, legend: "{{instance}}"}},
		},
		{
			title: "Bytes a second", kind: "timeseries", w: 6, h: 7, unit: "Bps", none: "no collector",
			about: "As they came, and after gunzip. Normal: about ten to one.",
			queries: []query{
				{expr: "sum(" + rate("docket_collector_upload_bytes_total") + ")", legend: "as they came"},
				{expr: "sum(" + rate("docket_collector_inflated_bytes_total") + ")", legend: "after gunzip"},
			},
		},
		{
			title: "Decisions in an upload", kind: "timeseries", w: 6, h: 7, unit: "short", none: "no collector",
			about:   "On average. Normal: tens, as OPA fills an upload up to its upload_size_limit_bytes; larger ones cost less.",
			queries: []query{{expr: "sum(" + rate("docket_collector_decisions_total") + ") / sum(rate(docket_collector_uploads_total{job=~\"$job\",instance=~\"$instance\",code=\"200\"}[$__rate_interval]))", legend: "decisions", quiet: true}},
		},
	}}
}
