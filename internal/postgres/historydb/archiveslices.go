package historydb

import (
	"context"
	"slices"
	"time"

	"docket/internal/history/archive"
)

const (
	// sortingSQL gives a sort this much memory, if the server gives less.
	sortingSQL = `SELECT set_config('jit', 'off', true), CASE WHEN pg_size_bytes(current_setting('work_mem')) < pg_size_bytes($1) THEN set_config('work_mem', $1, true) END`
	// aloneSQL has one process read. Several of them take a tenth more of the processor to read sorted rows.
	aloneSQL = `SELECT set_config('max_parallel_workers_per_gather', '0', true)`
	// slicedSQL tells whether an index finds the rows between two times.
	slicedSQL = `
SELECT EXISTS (SELECT FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
 WHERE i.indrelid = $1 AND i.indisvalid AND i.indpred IS NULL AND a.attname = 'ts' AND m.amname IN ('brin', 'btree'))`
)

// A day is read in slices of time. The server sorts each, in memory where it can. If rows are not stored in the order of their time,
// the server may read the whole table for each slice. So slices are few.
const (
	sliceBytes  = 40 << 20 // of the table
	sliceMemory = "64MB"
	mostSlices  = 24
	// sortedAtOnce is what is sorted at once where no index finds rows by their time. Then a larger day is read an hour at a time.
	sortedAtOnce = 256 << 20
)

// dayRows is what a look at all rows of a day says.
type dayRows struct {
	bytes               int64
	first, last         *time.Time
	firstText, lastText string
	plain               bool // no payload needs a twin
	found               bool // an index finds rows by their time
}

// measure looks at all rows of the day, and prepares the transaction for reading them in slices.
func (d *archiveDay) measure(ctx context.Context, columns []archiveColumn) (r dayRows, err error) {
	plain := `false`
	if slices.ContainsFunc(columns, isHash) {
		plain = `count(raw_sha256) = count(*)`
	}
	err = d.conn.QueryRow(ctx, `SELECT pg_relation_size($1::oid), min(ts), max(ts),
		coalesce(to_json(min(ts))#>>'{}', ''), coalesce(to_json(max(ts))#>>'{}', ''), `+plain+` FROM `+d.table, d.oid).
		Scan(&r.bytes, &r.first, &r.last, &r.firstText, &r.lastText, &r.plain)
	if err == nil {
		err = d.conn.QueryRow(ctx, slicedSQL, d.oid).Scan(&r.found)
	}
	if err == nil {
		_, err = d.conn.Exec(ctx, sortingSQL, sliceMemory)
	}
	if err == nil {
		_, err = d.conn.Exec(ctx, aloneSQL)
	}
	return r, err
}

// slice is a part of a day.
type slice struct{ from, to time.Time }

// slices returns the slices of a day, of about so many bytes each, in order. They have each moment of it.
func (r dayRows) slices(day archive.Day, bytes int64) (all []slice) {
	n, first, last := r.bytes/bytes, day.Time, day.Next().Time
	switch {
	case !r.found && r.bytes > sortedAtOnce:
		n = mostSlices
	case !r.found:
		n = 1
	case r.first != nil && r.last != nil:
		first, last = later(first, r.first.UTC()), r.last.UTC()
		if end := day.Next().Time; last.After(end) { // out of the table, a day can have rows of others
			last = end
		}
	}
	n = min(max(n, 1), mostSlices)
	from := day.Time
	for i := range n {
		to := day.Next().Time
		if i < n-1 {
			to = first.Add(last.Sub(first) / time.Duration(n) * time.Duration(i+1)).Truncate(time.Microsecond)
		}
		if to.After(from) {
			all = append(all, slice{from, to})
			from = to
		}
	}
	return all
}
