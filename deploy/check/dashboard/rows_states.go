package main

// statesRow is empty where no desk keeps states and there are no shards, so each of its queries is quiet.
func statesRow() row {
	const none = "no states"
	panels := []panel{
		{
			title: "Lag of the states", kind: "timeseries", w: 8, h: 7, unit: "s", none: none,
			about:   "Age of the newest decisions that the states have for certain. Normal: 10 to 40 s. It grows while a transaction is open, such as a dump, and while the desk cannot work: see its log.",
			queries: []query{{expr: "max(docket_state_lag_seconds" + selected + ")", legend: "lag"}},
		},
		{
			title: "States", kind: "timeseries", w: 8, h: 7, unit: "short", none: none,
			about:   "Rows of decision_states. Normal: below DOCKET_STATES_MAX; at the limit, further subjects have no state.",
			queries: []query{{expr: "max(docket_state_rows" + selected + ")", legend: "states"}},
		},
		{
			title: "Decisions and flips of states", kind: "timeseries", w: 8, h: 7, unit: "short", none: none,
			about: "A minute. applied: the newest of their subject and path; obsolete: older than their state; flips: another verdict. Normal: mostly applied. full: a subject had no room.",
			queries: []query{
				{expr: "60 * sum(" + rate("docket_state_applied_total") + ")", legend: "applied"},
				{expr: "60 * sum(" + rate("docket_state_obsolete_total") + ")", legend: "obsolete"},
				{expr: "60 * sum(" + rate("docket_state_flips_total") + ")", legend: "flips"},
				{expr: "60 * sum by (reason) (" + rate("docket_state_skipped_total") + ")", legend: "{{reason}}"},
			},
		},
		{
			title: "Partitions without a shard", kind: "timeseries", w: 8, h: 7, unit: "short", none: "no shards",
			about:   "Partitions of the source topics that DOCKET_SHARDS gives to no shard. Nobody reads them. Normal: 0.",
			queries: []query{{expr: "max(docket_shard_unowned_partitions" + selected + ")", legend: "partitions"}},
		},
	}
	for i := range panels {
		quietly(panels[i].queries)
	}
	return row{"States and shards", panels}
}
