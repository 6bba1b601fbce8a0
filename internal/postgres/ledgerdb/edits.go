package ledgerdb

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/desk/ledger"
)

var _ ledger.Marker = (*Ledger)(nil)

const (
	// unmarkedSQL are the letters of which rows are yet to be marked as edited.
	unmarkedSQL = `SELECT o.dead_letter_id FROM dead_letter_edits e JOIN dead_letter_outbox o USING (outbox_id) WHERE e.marked_at IS NULL AND o.outcome = 'stored'`

	unmarkedDueSQL = `SELECT o.outbox_id, o.dead_letter_id, o.audit_id, ` + sentValueSQL + `, o.children, o.marks
	FROM (SELECT n.*, sum(size) OVER (ORDER BY mark_at, outbox_id) - size AS before FROM (
			SELECT o.*, e.audit_id, e.mark_at, e.tries AS marks, coalesce(octet_length(d.value), 0) AS size
			FROM dead_letter_edits e JOIN dead_letter_outbox o USING (outbox_id) JOIN dead_letters d USING (dead_letter_id)
			WHERE e.marked_at IS NULL AND e.mark_at <= clock_timestamp() AND o.outcome = 'stored' ORDER BY e.mark_at, o.outbox_id LIMIT $1::int) n) o
		JOIN dead_letters d USING (dead_letter_id)
	WHERE o.before < $2::bigint
	ORDER BY o.mark_at, o.outbox_id`
	waitingSQL = `SELECT count(*) FROM (` + unmarkedSQL + `) AS u`
)

// Unmarked implements [ledger.Marker].
func (l *Ledger) Unmarked(ctx context.Context, n int) (due []ledger.Unmarked, all int64, err error) {
	err = l.within(ctx, "list retries of edited dead letters", pgx.ReadOnly, func(ctx context.Context, tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, waitingSQL).Scan(&all); err != nil || all == 0 {
			due = nil
			return err
		}
		rows, err := tx.Query(ctx, unmarkedDueSQL, n, awaitedBytes)
		if err != nil {
			return err
		}
		due, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (u ledger.Unmarked, err error) {
			var children []int32
			err = row.Scan(&u.ID, &u.LetterID, &u.AuditID, &u.Value, &children, &u.Tries)
			for _, at := range children {
				u.Children = append(u.Children, int(at))
			}
			return u, err
		})
		return err
	})
	return due, all, err
}

// MarkEdited implements [ledger.Marker].
func (l *Ledger) MarkEdited(ctx context.Context, id int64, rows []ledger.RowName) (marked, missing int, err error) {
	ids, times, came := make([]string, len(rows)), make([]time.Time, len(rows)), make([][]byte, len(rows))
	for i, r := range rows {
		ids[i], times[i], came[i] = r.ID, r.Time.UTC().Truncate(time.Microsecond), r.Came
	}
	err = l.within(ctx, "mark edited rows", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT marked, missing FROM dead_letters_mark_edited($1::bigint, $2::text[], $3::timestamptz[], $4::bytea[])`, id, ids, times, came).Scan(&marked, &missing)
	})
	return marked, missing, err
}
