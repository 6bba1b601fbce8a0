package historydb

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/history/archive"
	"docket/internal/history/reader"
	"docket/internal/postgres/db"
)

// An archive counts the decisions of a day before it drops them. A decision of that day that is stored later may be one of them: no
// row is left that it could duplicate, and the server does not know what is in archives. So decision_counts_left has the days that were
// archived, and whoever counts leaves their late decisions out. They are counted where the archives are read: by the next archive of
// the day, or by a restore.

const (
	// lateSQL says of a row of decision_logs d that it is late.
	lateSQL = `EXISTS (SELECT FROM decision_counts_left l WHERE l.day = date_trunc('day', d.ts, 'UTC') AND d.stored_at >= l.left_at)`
	// leaveSQL notes that the day leaves.
	leaveSQL = `
INSERT INTO decision_counts_left (day, left_at) VALUES ($1, clock_timestamp()) ON CONFLICT (day) DO UPDATE SET leaves_at = clock_timestamp()`
	// leaveKnownSQL is leaveSQL where the archives of a day are noted: none is needed yet, and NULL is for a day that an earlier
	// release dropped.
	leaveKnownSQL = `
INSERT INTO decision_counts_left (day, left_at, archives) VALUES ($1, clock_timestamp(), '{}') ON CONFLICT (day) DO UPDATE SET leaves_at = clock_timestamp()`
	// leftSQL notes that it was dropped, and with it what was late until then.
	leftSQL = `UPDATE decision_counts_left SET left_at = leaves_at, leaves_at = NULL WHERE day = $1 AND leaves_at IS NOT NULL`
	// notedSQL notes the archives that the day needs from now on, beside those that it needed before.
	notedSQL = `
UPDATE decision_counts_left SET archives = (
	SELECT coalesce(array_agg(DISTINCT a ORDER BY a), '{}') FROM unnest(archives || $2::text[]) AS a WHERE a <> ALL ($3::text[])) WHERE day = $1`
	// notesSQL tells whether the archives of a day are noted. A database that was not migrated yet has no place for them.
	notesSQL = `SELECT count(*) = 2 FROM pg_attribute WHERE attrelid = 'decision_counts_left'::regclass AND attname IN ('archives', 'forgotten_archives') AND NOT attisdropped`
	// backSQL notes that it is back.
	backSQL = `DELETE FROM decision_counts_left WHERE day = $1`
	// newestLateSQL is when the newest late decision of the day was stored.
	newestLateSQL = `
SELECT max(d.stored_at) FROM %rows% AND d.stored_at >= (SELECT l.left_at FROM decision_counts_left l WHERE l.day = $1::timestamptz) AND $1::timestamptz < $2::timestamptz`
	// rowsOfDaySQL are the rows of a day in the table. A partition of the day has no others. A condition on ts would make the
	// server read a partition that it has no statistics of by its index, row by row.
	rowsOfDaySQL = `decision_logs d WHERE d.ts >= $1::timestamptz AND d.ts < $2::timestamptz`
	// unsortedSQL has the server count rows by a hash table. It expects many groups without statistics, and sorts all rows.
	unsortedSQL = `SELECT set_config('enable_sort', 'off', true), set_config('jit', 'off', true)`
	// lateRowsSQL reads the late decisions of a day that was taken out again.
	lateRowsSQL = `
SELECT d.decision_id, d.ts, d.stored_at, d.path, d.service, ` + verdictSQL + ` FROM decision_counts_left l, %table% d
 WHERE l.day = $1::timestamptz AND l.leaves_at IS NOT NULL AND d.stored_at >= l.left_at AND (d.ts, d.decision_id COLLATE "C") > ($2::timestamptz, $3::text)
 ORDER BY d.ts, d.decision_id COLLATE "C" LIMIT $4`
	// countNewSQL counts lines that come as columns.
	countNewSQL = `
WITH fresh AS MATERIALIZED (
SELECT hour, path, service, sum(n) FILTER (WHERE v = 'allowed') AS allowed, sum(n) FILTER (WHERE v = 'denied') AS denied, sum(n) FILTER (WHERE v = 'undefined') AS undefined,
       sum(n) FILTER (WHERE v = 'error') AS error, sum(n) FILTER (WHERE v = 'other') AS other
  FROM (SELECT h AS hour, p AS path, s AS service, x.v, CASE WHEN x.v = u.v THEN n ELSE 0 END AS n
          FROM unnest($1::timestamptz[], $2::text[], $3::text[], $4::text[], $5::bigint[]) AS u (h, p, s, v, n),
               (VALUES ('allowed'), ('denied'), ('undefined'), ('error'), ('other')) AS x (v)) AS u
 GROUP BY 1, 2, 3)` + keepSQL
)

// mostLate is how many late decisions are in memory at a time.
const mostLate = 500_000

// lateLine is a line of counts of late decisions.
type lateLine struct {
	hour                   int64 // in microseconds
	path, service, verdict string
	hasPath, hasService    bool
}

// Late finds the late decisions that no earlier archive has, for [archiveDay.Drop].
func (d *archiveDay) Late(ctx context.Context, again func(ctx context.Context, late map[archive.Identity]bool) error) error {
	d.fresh = map[lateLine]int64{}
	if counts, err := d.countable(ctx); err != nil || !counts {
		return d.of.failed("look for late decisions of the day", err)
	}
	from, fromID := time.Time{}, ""
	for {
		late, lines := map[archive.Identity]bool{}, map[archive.Identity]lateLine{}
		n, err := d.lateRows(ctx, from, fromID, func(of archive.Identity, line lateLine) {
			late[of], lines[of] = true, line
			from, fromID = time.UnixMicro(of.Time), of.ID
		})
		if err != nil {
			return d.of.failed("look for late decisions of the day", err)
		}
		if n == 0 {
			return nil
		}
		if err := again(ctx, late); err != nil {
			return err
		}
		for of := range late {
			d.fresh[lines[of]]++
		}
		if n < mostLate {
			return nil
		}
	}
}

// lateRows reads a portion of them, in order.
func (d *archiveDay) lateRows(ctx context.Context, from time.Time, fromID string, each func(archive.Identity, lateLine)) (n int, err error) {
	rows, err := d.conn.Query(ctx, strings.ReplaceAll(lateRowsSQL, "%table%", d.table), d.day.Time, from, fromID, mostLate)
	if err != nil {
		return 0, err
	}
	var id, verdict string
	var at, stored time.Time
	var path, service *string
	_, err = pgx.ForEachRow(rows, []any{&id, &at, &stored, &path, &service, &verdict}, func() error {
		n++
		line := lateLine{hour: at.Truncate(time.Hour).UnixMicro(), verdict: verdict, hasPath: path != nil, hasService: service != nil}
		if path != nil {
			line.path = *path
		}
		if service != nil {
			line.service = *service
		}
		each(archive.Identity{ID: id, Time: at.UnixMicro(), Stored: stored.UnixMicro()}, line)
		return nil
	})
	return n, err
}

// countLate counts what Late found, and notes that the day is dropped. It is for the transaction that drops it.
func (d *archiveDay) countLate(ctx context.Context, tx pgx.Tx, needs archive.Needs) error {
	if counts, err := d.countable(ctx); err != nil || !counts {
		return err
	}
	if _, err := tx.Exec(ctx, countWaitSQL); err != nil {
		return err
	}
	if len(d.fresh) > 0 {
		var hours []time.Time
		var paths, services []*string
		var verdicts []string
		var counts []int64
		for line, n := range d.fresh {
			hours, verdicts, counts = append(hours, time.UnixMicro(line.hour)), append(verdicts, line.verdict), append(counts, n)
			paths, services = append(paths, orNone(line.path, line.hasPath)), append(services, orNone(line.service, line.hasService))
		}
		if _, err := tx.Exec(ctx, countNewSQL, hours, paths, services, verdicts, counts); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, leftSQL, d.day.Time); err != nil {
		return err
	}
	var notes bool
	if err := tx.QueryRow(ctx, notesSQL).Scan(&notes); err != nil || !notes {
		return err
	}
	_, err := tx.Exec(ctx, notedSQL, d.day.Time, needs.Archives, append([]string{}, needs.Superseded...))
	return err
}

func orNone(text string, has bool) *string {
	if !has {
		return nil
	}
	return &text
}

// back says that the day is in the table again, with all that its archives have. It returns [errAhead] where a late decision is not
// behind the mark yet, as it would be counted again by whoever counts.
func (d *archiveDay) back(ctx context.Context, tx pgx.Tx) error {
	rows := rowsOfDaySQL
	if d.table != "" {
		rows = d.table + ` d WHERE true`
	}
	if _, err := tx.Exec(ctx, unsortedSQL); err != nil {
		return err
	}
	var newest *time.Time
	if err := tx.QueryRow(ctx, strings.ReplaceAll(newestLateSQL, "%rows%", rows), d.day.Time, d.day.Next().Time).Scan(&newest); err != nil {
		return err
	}
	if err := d.behind(ctx, tx, newest); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, strings.ReplaceAll(countLackingSQL, "%rows%", rows), d.day.Time, d.day.Next().Time); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, backSQL, d.day.Time)
	return err
}

// late adds the late decisions of one table to the lines, and lists some of them.
func late(ctx context.Context, tx pgx.Tx, q reader.StatsQuery, s source, sums map[statsLine]*reader.Stats, found *reader.Lates) error {
	var args []any
	from := ` FROM (SELECT d.decision_id, d.ts, d.stored_at, date_bin(` + db.Arg(&args, q.Step) + `::interval, d.ts, ` + db.Arg(&args, q.Since) + `::timestamptz) AS at, ` +
		named(q) + ` AS name, ` + verdictSQL + ` AS v FROM decision_counts_left l CROSS JOIN LATERAL (SELECT * FROM decision_logs d WHERE d.ts >= l.day AND d.ts < l.day + interval '1 day' AND d.stored_at >= l.left_at AND d.ts >= ` +
		db.Arg(&args, q.Since) + `::timestamptz AND d.ts < ` + db.Arg(&args, q.Until) + `::timestamptz OFFSET 0) AS d WHERE l.day > ` + db.Arg(&args, q.Since) +
		`::timestamptz - interval '1 day' AND l.day < ` + db.Arg(&args, q.Until) + `::timestamptz AND ` + conditions(reader.Filter{Paths: q.Paths, Services: q.Services}, &args) + `) AS d`
	rows, err := tx.Query(ctx, in(s.name, `SELECT decision_id, ts, stored_at, at, name, v`+from+` LIMIT `+db.Arg(&args, reader.MostLates+1)), args...)
	if err != nil {
		return err
	}
	some, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l reader.Late, err error) {
		var v string
		err = row.Scan(&l.ID, &l.Time, &l.StoredAt, &l.From, &l.Name, &v)
		l.Time, l.StoredAt, l.From, l.Verdict = l.Time.UTC(), l.StoredAt.UTC(), l.From.UTC(), reader.Verdict(v)
		return l, err
	})
	if err != nil {
		return err
	}
	if len(some) <= reader.MostLates {
		for _, l := range some {
			at := statsLine{l.From.UnixMicro(), l.Name}
			if sums[at] == nil {
				sums[at] = &reader.Stats{From: l.From, Name: l.Name, Counts: map[reader.Verdict]int64{}}
			}
			sums[at].Counts[l.Verdict]++
		}
		found.Some, found.All = append(found.Some, some...), found.All+int64(len(some))
		return nil
	}
	args = args[:len(args)-1]
	var many int64
	if err := tx.QueryRow(ctx, in(s.name, `SELECT count(*)`+from), args...).Scan(&many); err != nil {
		return err
	}
	found.All += many
	return collectStats(sums)(tx.Query(ctx, in(s.name, `SELECT at, name, `+tallySQL+from+` GROUP BY 1, 2`), args...))
}
