package migrations

// ReadIndex is an index for searches.
type ReadIndex struct {
	Name string // behind the name of the table or of the day
	Of   string
}

// ReadIndexes are those of all days. Each stored row pays for them, and a B-tree would cost the writer more than a
// tenth. So the present day has only BRIN. It summarizes by itself, because every search reads the parts without a
// summary, and these are the newest.
var ReadIndexes = []ReadIndex{
	{"times_brin", `USING brin (ts, stored_at, rtrim(requested_by, '0123456789') COLLATE "C" text_bloom_ops (n_distinct_per_range = 200, false_positive_rate = 0.01), ` +
		`path COLLATE "C" text_bloom_ops (n_distinct_per_range = 64, false_positive_rate = 0.01)) WITH (pages_per_range = 32, autosummarize = on)`},
}

// DayIndexes are those of days that are over. A row is refused if a key of it is too long for an index, so long keys
// are hashed, which also halves the size. The one of verdicts leaves out what is allowed, so it is small where a verdict is
// rare enough to need it. The last index shows within a page or two that no row of a day was stored
// lately. The index of all days takes a thousand times the steps for that: it has four times as many ranges with much
// more data each.
var DayIndexes = []ReadIndex{
	{"path_ts", `(hashtext(service COLLATE "C"), ((hashtext(path COLLATE "C") & -4) | CASE WHEN allowed THEN 1 WHEN NOT allowed THEN 2 ELSE 0 END), ts)`},
	{"host_ts", `(hashtext(rtrim(requested_by, '0123456789') COLLATE "C"), ts)`},
	{"host_path_ts", `(hashtext(rtrim(requested_by, '0123456789') COLLATE "C"), ((hashtext(path COLLATE "C") & -4) | CASE WHEN allowed THEN 1 WHEN NOT allowed THEN 2 ELSE 0 END), ts)`},
	{"verdict_ts", `((CASE WHEN NOT allowed THEN 1 WHEN coalesce(raw->'error', 'null') <> 'null' THEN 2 WHEN coalesce(raw->'result', 'null') = 'null' THEN 3 ELSE 4 END), ts) WHERE allowed IS NOT TRUE`},
	{"stored_brin", `USING brin (stored_at) WITH (pages_per_range = 128, autosummarize = on)`},
}
