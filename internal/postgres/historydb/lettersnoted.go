package historydb

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/history/archive"
	"docket/internal/postgres/db"
)

const (
	archivesReadableSQL = `SELECT to_regclass('dead_letters') IS NULL, coalesce(has_table_privilege(to_regclass('dead_letter_archives')::oid, 'SELECT'), false)`
	archivesNotedSQL    = `SELECT archive, noted_at, forgotten_at, coalesce(forgotten_by, ''), coalesce(forgotten_reason, '') FROM dead_letter_archives ORDER BY archive`
	// lettersUnarchivedSQL has letters of the ledger archived again whose archive is given up.
	lettersUnarchivedSQL = `UPDATE dead_letters SET archived_in = NULL WHERE state = 'RESOLVED' AND archived_in = ANY ($1::text[])`
	forgetArchivesSQL    = `
UPDATE dead_letter_archives SET forgotten_at = clock_timestamp(), forgotten_by = $2, forgotten_reason = $3 WHERE archive = ANY ($1::text[]) AND forgotten_at IS NULL`
)

// LettersNoted returns the archives of dead letters that the ledger noted, by name. It takes a quarter of the time of ctx at
// most, as archives are read after it.
func (r *Reader) LettersNoted(ctx context.Context) ([]archive.Noted, error) {
	ctx, cancel := context.WithTimeout(ctx, r.patience(ctx)/4)
	defer cancel()
	if !r.notedReadable.Load() {
		var none, readable bool
		if err := r.db.Pool().QueryRow(ctx, archivesReadableSQL).Scan(&none, &readable); err != nil {
			return nil, db.Clean("look for archives of dead letters", err)
		}
		switch {
		case none: // a database without the ledger
			return nil, nil
		case !readable:
			return nil, archive.ErrNotedUnread
		}
		r.notedReadable.Store(true)
	}
	noted, err := notedArchives(ctx, r.db.Pool())
	if err != nil {
		return nil, db.Clean("look for archives of dead letters", err)
	}
	return noted, nil
}

func notedArchives(ctx context.Context, from querier) ([]archive.Noted, error) {
	rows, err := from.Query(ctx, archivesNotedSQL)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (n archive.Noted, err error) {
		var at *time.Time
		var f archive.Forgotten
		err = row.Scan(&n.Archive, &n.At, &at, &f.By, &f.Reason)
		if at != nil {
			f.At, n.Forgotten = at.UTC(), &f
		}
		return n, err
	})
}

// Noted is that of [archive.LettersSession].
func (d *letterDay) Noted(ctx context.Context) ([]archive.Noted, error) {
	var none, readable bool
	if err := d.conn.QueryRow(ctx, archivesReadableSQL).Scan(&none, &readable); err != nil {
		return nil, d.of.failed("look for archives of dead letters", err)
	}
	if !readable {
		return nil, archive.ErrNotedUnread
	}
	noted, err := notedArchives(ctx, d.conn)
	return noted, d.of.failed("look for archives of dead letters", err)
}

// Archived is that of [archive.LettersSession].
func (d *letterDay) Archived(ctx context.Context) (bool, error) { return d.of.archived(ctx, d.conn) }

// Forget is that of [archive.LettersSession].
func (d *letterDay) Forget(ctx context.Context, archives []string, by, reason string) error {
	err := db.Durably(ctx, d.conn, pgx.TxOptions{}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT set_config('docket.actor', $1, true)`, db.Text(by)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, lettersUnarchivedSQL, archives); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, forgetArchivesSQL, archives, db.Text(by), db.Text(reason))
		return err
	})
	return d.of.failed("forget archives of dead letters", err)
}
