package main

// statesRow is empty where no desk keeps states or archives, and there are no shards, so each of its queries is quiet.
func statesRow() row {
	const none, noArchive, noCache = "no states", "DOCKET_ARCHIVE_AFTER is not set", "DOCKET_CACHE_DIR is not set"
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
		{
			title: "Days to archive", kind: "timeseries", w: 8, h: 7, unit: "short", none: noArchive,
			about: "Of the desk with DOCKET_ARCHIVE_AFTER. due: days in the table that are old enough; failed: those whose last try failed; others: tries an hour. Normal: due 0 or 1, failed 0. docket archive list says why it waits.",
			queries: []query{
				{expr: "max(docket_archive_due_days" + selected + ")", legend: "due"},
				{expr: "max(docket_archive_failed" + selected + ")", legend: "failed"},
				{expr: "3600 * sum by (result) (" + rate("docket_archive_days_total") + ")", legend: "{{result}}"},
			},
		},
		{
			title: "Archive behind", kind: "timeseries", w: 8, h: 7, unit: "s", none: noArchive,
			about:   "How long ago the oldest day in the table became old enough for the archive. Normal: below a day. It grows while the archive waits or fails.",
			queries: []query{{expr: "max(docket_archive_behind_seconds" + selected + ")", legend: "behind"}},
		},
		{
			title: "Archived by the desk", kind: "timeseries", w: 8, h: 7, unit: "short", none: noArchive,
			about: "Rows and bytes of archives, an hour. Normal: those of one day, each night.",
			queries: []query{
				{expr: "3600 * sum(" + rate("docket_archive_rows_total") + ")", legend: "rows"},
				{expr: "3600 * sum(" + rate("docket_archive_bytes_total") + ")", legend: "bytes"},
			},
		},
		{
			title: "Cache of archived days", kind: "timeseries", w: 8, h: 7, unit: "short", none: noCache,
			about: "Reads of archived files a minute that DOCKET_CACHE_DIR had (hit) or not (miss), and claims on readings. Normal: late and alone 0. late: a question waited for another process for half of its time.",
			queries: []query{
				{expr: "60 * sum by (result) (" + rate("docket_cache_reads_total") + ")", legend: "{{result}}"},
				{expr: "60 * sum by (result) (" + rate("docket_claims_total") + ")", legend: "{{result}}"},
				{expr: "60 * sum(" + rate("docket_claims_waited_seconds_total") + ")", legend: "seconds waited"},
			},
		},
		{
			title: "Bytes of the cache", kind: "timeseries", w: 8, h: 7, unit: "bytes", none: noCache,
			about: "Size of DOCKET_CACHE_DIR, and bytes a minute that came from there in place of the object storage. Normal: the size is at most DOCKET_CACHE_BYTES.",
			queries: []query{
				{expr: "max(docket_cache_bytes" + selected + ")", legend: "size"},
				{expr: "60 * sum(" + rate("docket_cache_read_bytes_total") + ")", legend: "given"},
			},
		},
	}
	for i := range panels {
		quietly(panels[i].queries)
	}
	return row{"States, shards and archive", panels}
}
