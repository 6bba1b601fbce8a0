package migrations

// ReadIndex is an index that searches go by.
type ReadIndex struct {
	Name string // behind the name of the table or of the day
	Of   string
}

// ReadIndexes are those of all days. Each row that is stored pays for them, and a B-tree would cost the writer more than a tenth: what BRIN
// says of a stretch of rows is what the day that is written has. It is told to summarize by itself, as what is not summarized is
// read by every search, and that is what is newest.
var ReadIndexes = []ReadIndex{
	{"times_brin", `USING brin (ts, stored_at, rtrim(requested_by, '0123456789') COLLATE "C" text_bloom_ops (n_distinct_per_range = 200, false_positive_rate = 0.01), ` +
		`path COLLATE "C" text_bloom_ops (n_distinct_per_range = 64, false_positive_rate = 0.01)) WITH (pages_per_range = 32, autosummarize = on)`},
}

// DayIndexes are those of days that are over. No part of a key may be long, as a row that an index cannot take is refused: so they have
// hashes, which also are half the size. The last says in a page or two that nothing was stored of a day lately. The index of all days
// takes a thousand times the steps for that: it has four times as many stretches, and of each much more than the time.
var DayIndexes = []ReadIndex{
	{"path_ts", `(hashtext(service COLLATE "C"), ((hashtext(path COLLATE "C") & -4) | CASE WHEN allowed THEN 1 WHEN NOT allowed THEN 2 ELSE 0 END), ts)`},
	{"host_ts", `(hashtext(rtrim(requested_by, '0123456789') COLLATE "C"), ts)`},
	{"host_path_ts", `(hashtext(rtrim(requested_by, '0123456789') COLLATE "C"), ((hashtext(path COLLATE "C") & -4) | CASE WHEN allowed THEN 1 WHEN NOT allowed THEN 2 ELSE 0 END), ts)`},
	{"stored_brin", `USING brin (stored_at) WITH (pages_per_range = 128, autosummarize = on)`},
}
