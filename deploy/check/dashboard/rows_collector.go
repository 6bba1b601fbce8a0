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
			title: "OPAs that report", kind: "timeseries", w: 6, h: 7, unit: "short", none: "none reports its status",
			about: "By their status updates, of the last hour. Normal: none fails. Behind a load balancer one may report to several collectors.",
			queries: []query{
				{expr: "docket_collector_opas" + selected, legend: "{{instance}}"},
				{expr: "docket_collector_opa_failing" + selected + " > 0", legend: "{{instance}}: the newest upload failed", quiet: true},
				{expr: "60 * sum(" + rate("docket_collector_status_updates_total") + ")", legend: "status updates a minute", quiet: true},
			},
		},
		{
			title: "Decisions that OPAs dropped, a minute", kind: "timeseries", w: 6, h: 7, unit: "short", none: "none",
			about:   "Before they could upload them: data loss. Normal: none. Their buffers are too small for an outage, or a limit of their own is reached.",
			queries: []query{{expr: "60 * max(" + rate("docket_collector_opa_dropped_decisions_total") + ") > 0", legend: "at least", quiet: true}},
		},
		{
			title: "Decisions that OPAs hold", kind: "timeseries", w: 6, h: 7, unit: "short", none: "none reports its status",
			about: "Not uploaded yet: decisions of OPAs whose buffer counts events, bytes of the others. Normal: as many as come between two uploads.",
			queries: []query{
				{expr: "docket_collector_opa_waiting_decisions" + selected, legend: "{{instance}}, decisions"},
				{expr: "docket_collector_opa_waiting_bytes" + selected, legend: "{{instance}}, bytes"},
			},
		},
		{
			title: "Oldest status of an OPA", kind: "timeseries", w: 6, h: 7, unit: "s", none: "none reports its status",
			about:   "Normal: below the max_delay_seconds of their decision logs. More: one has ended, or reports to another collector.",
			queries: []query{{expr: "docket_collector_opa_silent_seconds" + selected, legend: "{{instance}}"}},
		},
		{
			title: "Decisions in an upload", kind: "timeseries", w: 6, h: 7, unit: "short", none: "no collector",
			about:   "On average. Normal: tens, as OPA fills an upload up to its upload_size_limit_bytes; larger ones cost less.",
			queries: []query{{expr: "sum(" + rate("docket_collector_decisions_total") + ") / sum(rate(docket_collector_uploads_total{job=~\"$job\",instance=~\"$instance\",code=\"200\"}[$__rate_interval]))", legend: "decisions", quiet: true}},
		},
	}}
}
