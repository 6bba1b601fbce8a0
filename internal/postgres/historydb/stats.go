package historydb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"docket/internal/history/archive"
	"docket/internal/history/reader"
	"docket/internal/postgres/db"
)

const defaultStep = time.Hour

// readableSQL says whether this role may read the counts by the day, those by the hour, and the days that were archived.
const readableSQL = `
SELECT coalesce(has_table_privilege(to_regclass('decision_counts_days')::oid, 'SELECT') AND mark, false),
       coalesce(has_table_privilege(to_regclass('decision_counts')::oid, 'SELECT') AND mark, false),
       coalesce(has_table_privilege(to_regclass('decision_counts_left')::oid, 'SELECT'), false)
  FROM (SELECT has_table_privilege(to_regclass('decision_counts_mark')::oid, 'SELECT') AS mark) AS m`

// Stats is that of [reader.Store]. Steps of whole days and hours are answered from the counts. Rows that were stored
// since are counted beside them. Other steps are counted one by one, in the time there is. A late decision may be counted twice: see
// [Reader.StatsLate].
func (r *Reader) Stats(ctx context.Context, q reader.StatsQuery) ([]reader.Stats, error) {
	all, late, err := r.StatsLate(ctx, q)
	var parts reader.Parts
	if err := parts.Pass(err); err != nil {
		return nil, err
	}
	if late.All > 0 {
		_ = parts.Pass(&reader.PartialError{Missed: []reader.Missed{reader.LateGap(late.All, "archives were not read")}})
	}
	return all, reader.Told(ctx, parts.Err())
}

// StatsLate is Stats, and returns the decisions that were stored after their day was archived. They are in the counts, and an archive that
// has one, too, was counted before. A [reader.PartialError] comes with an answer.
func (r *Reader) StatsLate(ctx context.Context, q reader.StatsQuery) ([]reader.Stats, reader.Lates, error) {
	if q.Step <= 0 {
		q.Step = defaultStep
	}
	var sums map[statsLine]*reader.Stats
	var found reader.Lates
	counts := ""
	begin := func(int) { sums, found, counts = map[statsLine]*reader.Stats{}, reader.Lates{}, "" }
	missed, err := r.whole(ctx, span{q.Since, q.Until}, begin, func(s source) (err error) {
		if s.leaving() && counts != "" { // it was counted when it was taken out, but for what was late
			return r.scan(ctx, r.patience(ctx), func(ctx context.Context, tx pgx.Tx) error {
				if _, left, err := countedIn(ctx, tx, q); err != nil || !left {
					return err
				}
				return late(ctx, tx, q, s, sums, &found)
			})
		}
		counts, err = r.statsOf(ctx, &q, s, sums, &found)
		return err
	})
	if err != nil {
		return nil, reader.Lates{}, db.Clean("count decisions", err)
	}
	var parts reader.Parts
	_ = parts.Pass(missed) // it takes it
	if counts == "" {
		why, err := r.uncounted(ctx, q)
		if err != nil {
			return nil, reader.Lates{}, err
		}
		parts.Miss("days that may have left the table", why)
	}
	all := make([]reader.Stats, 0, len(sums))
	for _, s := range sums {
		all = append(all, *s)
	}
	slices.SortFunc(all, reader.Stats.Compare)
	return all, found, parts.Err()
}

// Why an answer that was counted row by row lacks decisions.
var (
	errPartHours = errors.New("these count by whole hours alone: take a step of whole hours (--step 1h)")
	errNoCounts  = errors.New("this login may not read the counts that have them: see docs/grants.sql")
)

// uncounted says why decisions of days that left the table may lack, if the rows of the table alone were counted. It asks nothing
// of times that no archive takes. It fails only if the question was given up.
func (r *Reader) uncounted(ctx context.Context, q reader.StatsQuery) (why, err error) {
	if !archive.DayOf(q.Since).Settled(time.Now()) {
		return nil, nil
	}
	gone, err := r.Gone(ctx, q.Since, q.Until)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return fmt.Errorf("it is not known whether days of that time left: %w", err), nil
	case !gone:
		return nil, nil
	case wholeHours(q):
		return errNoCounts, nil
	}
	return errPartHours, nil
}

// statsOf adds up the lines of one table. It returns the counts that it took them from; empty: none.
func (r *Reader) statsOf(ctx context.Context, q *reader.StatsQuery, s source, sums map[statsLine]*reader.Stats, found *reader.Lates) (from string, err error) {
	err = r.scan(ctx, r.patience(ctx), func(ctx context.Context, tx pgx.Tx) error {
		if q.Until.IsZero() {
			if err := tx.QueryRow(ctx, `SELECT now()`).Scan(&q.Until); err != nil {
				return err
			}
		}
		if part := q.Until.Sub(q.Since) % q.Step; part > 0 {
			q.Until = q.Until.Add(q.Step - part)
		}
		mark := pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}
		var left bool
		if from, left, err = countedIn(ctx, tx, *q); err != nil {
			return err
		}
		if from != "" {
			if err := tx.QueryRow(ctx, markSQL).Scan(&mark); err != nil {
				return err
			}
			// Before there is a mark they have what was archived.
			if err := counted(ctx, tx, *q, from, sums); err != nil {
				return err
			}
		}
		if left = left && from != ""; left {
			if err := late(ctx, tx, *q, s, sums, found); err != nil {
				return err
			}
		}
		return live(ctx, tx, *q, s, mark, left, sums)
	})
	return from, err
}

// statsLine is which line of an answer.
type statsLine struct {
	from int64 // in microseconds
	name string
}

func named(q reader.StatsQuery) string {
	if q.ByPath {
		return "coalesce(d.path, '')"
	}
	return "coalesce(d.service, '')"
}

const (
	byDay  = `(SELECT c.day AS at, c.* FROM decision_counts_days c)`
	byHour = `(SELECT c.hour AS at, c.* FROM decision_counts c)`
)

// wholeHours reports whether each step is one of whole hours.
func wholeHours(q reader.StatsQuery) bool {
	return q.Step%time.Hour == 0 && q.Since.Equal(q.Since.Truncate(time.Hour))
}

// countedIn says which counts answer q: the coarsest whose lines are each of one step, and that this role may read. It is empty if
// there are none. left says whether this role may read which days were archived.
func countedIn(ctx context.Context, tx pgx.Tx, q reader.StatsQuery) (from string, left bool, err error) {
	if !wholeHours(q) {
		return "", false, nil
	}
	var days, hours bool
	err = tx.QueryRow(ctx, readableSQL).Scan(&days, &hours, &left)
	switch {
	case days && q.Step%(24*time.Hour) == 0 && q.Since.Equal(q.Since.Truncate(24*time.Hour)): // which is midnight UTC
		return byDay, left, err
	case hours:
		return byHour, left, err
	}
	return "", left, err
}

// counted adds what the counts say.
func counted(ctx context.Context, tx pgx.Tx, q reader.StatsQuery, from string, sums map[statsLine]*reader.Stats) error {
	var args []any
	fits, name := countedName(q, &args)
	sql := `SELECT date_bin(` + db.Arg(&args, q.Step) + `::interval, d.at, ` + db.Arg(&args, q.Since) + `::timestamptz), ` + name +
		`, sum(d.allowed)::bigint, sum(d.denied)::bigint, sum(d.undefined)::bigint, sum(d.error)::bigint, sum(d.other)::bigint
		FROM ` + from + ` AS d WHERE d.at >= ` + db.Arg(&args, q.Since) + `::timestamptz AND d.at < ` + db.Arg(&args, q.Until) + `::timestamptz AND ` +
		fits + ` GROUP BY 1, 2`
	return collectStats(sums)(tx.Query(ctx, sql, args...))
}

// countedName is which lines of the counts q means, and the name that each has in the answer. Lines of OtherPaths are meant, too,
// where decisions that fit can be in them.
func countedName(q reader.StatsQuery, args *[]any) (fits, name string) {
	of, name := []string{"TRUE"}, named(q)
	if len(q.Paths) > 0 {
		services, all := []string{reader.OtherPaths}, false
		for _, p := range q.Paths {
			service, _, _ := strings.Cut(strings.TrimLeft(p, "/"), "/") // as it is stored
			services, all = append(services, service), all || service == "*" || service == ""
		}
		other := "d.path = " + db.Arg(args, reader.OtherPaths) + "::text"
		theirs := other
		if !all {
			theirs += " AND d.service = ANY(" + db.Arg(args, services) + "::text[])"
		}
		of = append(of, "("+pathsSQL(q.Paths, args)+" OR "+theirs+")")
		if !slices.Contains(q.Paths, reader.OtherPaths) {
			name = "CASE WHEN " + other + " THEN d.path ELSE " + name + " END"
		}
	}
	if len(q.Services) > 0 {
		of = append(of, "d.service = ANY("+db.Arg(args, append([]string{reader.OtherPaths}, q.Services...))+"::text[])")
	}
	return strings.Join(of, " AND "), name
}

// live adds what was stored from the mark on; with left, without what was late.
func live(ctx context.Context, tx pgx.Tx, q reader.StatsQuery, s source, mark pgtype.Timestamptz, left bool, sums map[statsLine]*reader.Stats) error {
	var args []any
	since := "TRUE"
	if mark.InfinityModifier == pgtype.Finite {
		since = "d.stored_at >= " + db.Arg(&args, mark) + "::timestamptz"
	}
	if left {
		since += " AND NOT " + lateSQL
	}
	sql := `SELECT at, name, ` + tallySQL + ` FROM (SELECT date_bin(` + db.Arg(&args, q.Step) + `::interval, d.ts, ` + db.Arg(&args, q.Since) + `::timestamptz) AS at, ` +
		named(q) + ` AS name, ` + verdictSQL + ` AS v FROM decision_logs d WHERE ` + since + ` AND d.ts >= ` + db.Arg(&args, q.Since) + `::timestamptz AND d.ts < ` +
		db.Arg(&args, q.Until) + `::timestamptz AND ` + conditions(reader.Filter{Paths: q.Paths, Services: q.Services}, &args) + `) AS d GROUP BY 1, 2`
	return collectStats(sums)(tx.Query(ctx, in(s.name, sql), args...))
}

// collectStats adds up lines.
func collectStats(sums map[statsLine]*reader.Stats) func(pgx.Rows, error) error {
	return func(rows pgx.Rows, err error) error {
		if err != nil {
			return err
		}
		var from time.Time
		var name string
		var n [5]int64
		_, err = pgx.ForEachRow(rows, []any{&from, &name, &n[0], &n[1], &n[2], &n[3], &n[4]}, func() error {
			l := statsLine{from.UnixMicro(), name}
			if sums[l] == nil {
				sums[l] = &reader.Stats{From: from.UTC(), Name: name, Counts: map[reader.Verdict]int64{}}
			}
			for i, v := range []reader.Verdict{reader.Allowed, reader.Denied, reader.Undefined, reader.Error, reader.Other} {
				if n[i] > 0 {
					sums[l].Counts[v] += n[i]
				}
			}
			return nil
		})
		return err
	}
}
