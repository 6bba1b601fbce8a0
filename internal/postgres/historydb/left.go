package historydb

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/history/archive"
	"docket/internal/postgres/db"
)

const (
	leftReadableSQL = `SELECT coalesce(has_table_privilege(to_regclass('decision_counts_left')::oid, 'SELECT'), false)`
	// leftDaysSQL reads columns by their names in JSON, as a database that was not migrated yet does not have them.
	leftDaysSQL = `
SELECT l.day, (j.l->>'forgotten_at')::timestamptz, coalesce(j.l->>'forgotten_by', ''), coalesce(j.l->>'forgotten_reason', ''),
       CASE WHEN jsonb_typeof(j.l->'forgotten_archives') = 'array' THEN array(SELECT jsonb_array_elements_text(j.l->'forgotten_archives')) END,
       CASE WHEN jsonb_typeof(j.l->'archives') = 'array' THEN array(SELECT jsonb_array_elements_text(j.l->'archives')) END
  FROM decision_counts_left l, to_jsonb(l) AS j(l) WHERE isfinite(l.day) ORDER BY l.day`
	// forgetSQL changes no earlier note.
	forgetSQL = `
UPDATE decision_counts_left SET forgotten_at = clock_timestamp(), forgotten_by = $2, forgotten_reason = $3 WHERE day = $1 AND forgotten_at IS NULL`
	// forgetAllSQL is forgetSQL where the archives of a day are noted. Those that come later are noted again, and a later note
	// gives them up. NULL says that the archives are not known, and stays.
	forgetAllSQL = `
UPDATE decision_counts_left SET forgotten_at = clock_timestamp(), forgotten_by = $2, forgotten_reason = $3,
       forgotten_archives = array(SELECT DISTINCT a FROM unnest(forgotten_archives || archives) AS a ORDER BY a), archives = CASE WHEN archives IS NOT NULL THEN '{}'::text[] END
 WHERE day = $1 AND (forgotten_at IS NULL OR archives <> '{}')`
)

// Left returns the days that archives took out of the table, in order. A day that was restored is not among them. It takes
// a quarter of the time of ctx at most, as archives are read after it.
func (r *Reader) Left(ctx context.Context) ([]archive.Left, error) {
	ctx, cancel := context.WithTimeout(ctx, r.patience(ctx)/4)
	defer cancel()
	if !r.leftReadable.Load() {
		var readable bool
		if err := r.db.Pool().QueryRow(ctx, leftReadableSQL).Scan(&readable); err != nil {
			return nil, db.Clean("look for archived days", err)
		}
		if !readable {
			return nil, archive.ErrLeftUnread
		}
		r.leftReadable.Store(true)
	}
	days, err := leftDays(ctx, r.db.Pool())
	if err != nil {
		return nil, db.Clean("look for archived days", err)
	}
	return days, nil
}

func leftDays(ctx context.Context, from querier) ([]archive.Left, error) {
	rows, err := from.Query(ctx, leftDaysSQL)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (archive.Left, error) {
		var day time.Time
		var at *time.Time
		var f archive.Forgotten
		var names []string
		err := row.Scan(&day, &at, &f.By, &f.Reason, &f.Archives, &names)
		left := archive.Left{Day: archive.DayOf(day), Archives: names}
		if at != nil {
			f.At, left.Forgotten = at.UTC(), &f
		}
		return left, err
	})
}

// Left is that of [archive.OpenDay].
func (d *archiveDay) Left(ctx context.Context) (*archive.Left, error) {
	var readable bool
	if err := d.conn.QueryRow(ctx, leftReadableSQL).Scan(&readable); err != nil {
		return nil, d.of.failed("look whether the day left the table", err)
	}
	if !readable {
		return nil, archive.ErrLeftUnread
	}
	days, err := leftDays(ctx, d.conn)
	for i := range days {
		if days[i].Day == d.day {
			return &days[i], nil
		}
	}
	return nil, d.of.failed("look whether the day left the table", err)
}

// Archived is that of [archive.OpenDay].
func (d *archiveDay) Archived(ctx context.Context) (bool, error) { return d.of.archived(ctx, d.conn) }

// archived reports whether the database needs an archive, as far as this role may know.
func (a *Archives) archived(ctx context.Context, conn *pgx.Conn) (some bool, err error) {
	const act = "look whether anything was archived"
	var days, letters bool
	if err := conn.QueryRow(ctx, leftReadableSQL).Scan(&days); err != nil {
		return false, a.failed(act, err)
	}
	if err := conn.QueryRow(ctx, archivesReadableSQL).Scan(nil, &letters); err != nil {
		return false, a.failed(act, err)
	}
	if days {
		left, err := leftDays(ctx, conn)
		if err != nil || archive.AnyNeeded(left) {
			return true, a.failed(act, err)
		}
	}
	if letters {
		err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM dead_letter_archives WHERE forgotten_at IS NULL)`).Scan(&some)
	}
	return some, a.failed(act, err)
}

// Forget is that of [archive.OpenDay].
func (d *archiveDay) Forget(ctx context.Context, by, reason string) error {
	var notes bool
	err := d.conn.QueryRow(ctx, notesSQL).Scan(&notes)
	switch {
	case err != nil:
	case notes:
		_, err = d.conn.Exec(ctx, forgetAllSQL, d.day.Time, by, reason)
	default:
		_, err = d.conn.Exec(ctx, forgetSQL, d.day.Time, by, reason)
	}
	return d.of.failed("forget the day", err)
}
