package historydb

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/history/archive"
	"docket/internal/postgres/db"
)

const (
	leftReadableSQL = `SELECT coalesce(has_table_privilege(to_regclass('decision_counts_left')::oid, 'SELECT'), false)`
	leftDaysSQL     = `SELECT day FROM decision_counts_left WHERE isfinite(day) ORDER BY day`
)

// errLeftUnread says that the days are not known. A statement that this role may not send is not sent, as the server's log would
// have each failure.
var errLeftUnread = errors.New("this login may not read decision_counts_left, or the database has no such table; run docket migrate, and docs/grants.sql where you use it")

// Left returns the days that archives took out of the table, in order. A day that was restored is not among them. It takes
// a quarter of the time of ctx at most, as archives are read after it.
func (r *Reader) Left(ctx context.Context) ([]archive.Day, error) {
	ctx, cancel := context.WithTimeout(ctx, r.patience(ctx)/4)
	defer cancel()
	if !r.leftReadable.Load() {
		var readable bool
		if err := r.db.Pool().QueryRow(ctx, leftReadableSQL).Scan(&readable); err != nil {
			return nil, db.Clean("look for archived days", err)
		}
		if !readable {
			return nil, errLeftUnread
		}
		r.leftReadable.Store(true)
	}
	rows, err := r.db.Pool().Query(ctx, leftDaysSQL)
	if err != nil {
		return nil, db.Clean("look for archived days", err)
	}
	days, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (archive.Day, error) {
		var at time.Time
		err := row.Scan(&at)
		return archive.DayOf(at), err
	})
	if err != nil {
		return nil, db.Clean("look for archived days", err)
	}
	return days, nil
}
