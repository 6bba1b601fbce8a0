package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"docket/internal/ledger"
)

// Claims finds the letters whose value claims a decision_id, at most n, newest failure first, without payloads.
func (l *Ledger) Claims(ctx context.Context, decisionID string, n int) (found []ledger.Entry, err error) {
	err = l.look(ctx, "look for dead letters of a decision", func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT `+entrySQL+` FROM dead_letters d JOIN dead_letter_groups g USING (group_id)
			WHERE d.decision_id = $1::text ORDER BY d.last_failed_at DESC, d.dead_letter_id LIMIT $2::int`, ledgerText(decisionID), n)
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, scanListed)
		return err
	})
	return found, err
}
