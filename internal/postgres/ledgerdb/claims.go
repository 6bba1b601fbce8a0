package ledgerdb

import (
	"context"

	"github.com/jackc/pgx/v5"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/db"
)

// Claims finds the letters whose value claims a decision_id, at most n, newest failure first, without payloads. Of a letter that holds several
// decisions each that claims it is one, with its place inside the upload.
func (l *Ledger) Claims(ctx context.Context, decisionID string, n int) (found []ledger.Entry, err error) {
	err = l.atOnce(ctx, "look for dead letters of a decision", func(b *pgx.Batch) {
		b.Queue(`SELECT * FROM (
			(SELECT `+entrySQL+`, d.last_failed_at AS failed FROM dead_letters d JOIN dead_letter_groups g USING (group_id)
				WHERE d.decision_id = $1::text ORDER BY d.last_failed_at DESC, d.dead_letter_id LIMIT $2::int)
			UNION ALL
			(SELECT `+heldEntrySQL+`, d.last_failed_at AS failed FROM dead_letter_decisions x JOIN dead_letters d USING (dead_letter_id) JOIN dead_letter_groups g USING (group_id)
				CROSS JOIN LATERAL unnest(x.places, x.decision_ids, x.decision_ts) AS h(place, id, ts)
				WHERE x.hashes @> ARRAY[hashtextextended($1::text, 0)] AND h.id = $1::text ORDER BY d.last_failed_at DESC, d.dead_letter_id, h.place LIMIT $2::int)
			) AS c ORDER BY failed DESC, dead_letter_id LIMIT $2::int`, db.Text(decisionID), n)
	}, func(answers pgx.BatchResults) error {
		rows, err := answers.Query()
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (ledger.Entry, error) { return scanEntry(r, nil) })
		return err
	})
	return found, err
}
