package historydb

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/history/archive"
	"docket/internal/postgres/db"
)

// holdingsPatience limits a look at the days. Rows in the default partition are counted one by one.
const holdingsPatience = 3 * time.Second

const (
	daySumsSQL = `SELECT day, sum(allowed + denied + undefined + error + other)::bigint FROM decision_counts_days GROUP BY day`
	// workingDaysSQL finds the days whose lock a process has.
	workingDaysSQL = `
SELECT d FROM unnest($1::text[]) AS d JOIN pg_locks l ON l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
   AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND (l.classid::bigint << 32) | l.objid::bigint = hashtextextended('docket archive ' || 'decision_logs'::regclass::oid || ' ' || d, 0)`
)

// Holdings returns the days that the database knows, up to today. It changes nothing and waits for no archive.
func (r *Reader) Holdings(ctx context.Context, today archive.Day) (h archive.Holdings, err error) {
	err = r.scan(ctx, min(r.patience(ctx), holdingsPatience), func(ctx context.Context, tx pgx.Tx) (err error) {
		h = archive.Holdings{}
		if h.Held, err = heldDays(ctx, tx.Conn(), today.Next()); err != nil {
			return err
		}
		var days, hours, left bool
		if err := tx.QueryRow(ctx, readableSQL).Scan(&days, &hours, &left); err != nil {
			return err
		}
		if days {
			if h.Counted, err = countedDays(ctx, tx); err != nil {
				return err
			}
		} else {
			h.Lacks = append(h.Lacks, "Counts of days cannot be read, so a day that left the table and has no archive here is not noticed.")
		}
		if left {
			if h.Left, err = leftDays(ctx, tx); err != nil {
				return err
			}
		}
		h.Working, err = workingDays(ctx, tx, today)
		return err
	})
	if err != nil {
		return archive.Holdings{}, db.Clean("look for the days of decisions", err)
	}
	return h, nil
}

func countedDays(ctx context.Context, tx pgx.Tx) (map[archive.Day]int64, error) {
	rows, err := tx.Query(ctx, daySumsSQL)
	if err != nil {
		return nil, err
	}
	all := map[archive.Day]int64{}
	var at time.Time
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&at, &n}, func() error {
		if y := at.UTC().Year(); y > 1 && y < 9999 {
			all[archive.DayOf(at)] += n
		}
		return nil
	})
	return all, err
}

// workingDays asks for the last ten years: a lock tells its day by a hash alone.
func workingDays(ctx context.Context, tx pgx.Tx, today archive.Day) (all []archive.Day, err error) {
	var some bool
	if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1)`).Scan(&some); err != nil || !some {
		return nil, err
	}
	names := make([]string, 3660)
	for i := range names {
		names[i] = today.AddDate(0, 0, -i).Format(time.DateOnly)
	}
	rows, err := tx.Query(ctx, workingDaysSQL, names)
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, name := range found {
		if day, err := archive.ParseDay(name); err == nil {
			all = append(all, day)
		}
	}
	return all, err
}
