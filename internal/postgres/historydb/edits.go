package historydb

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"

	"docket/internal/history/reader"
	"docket/internal/postgres/db"
)

var _ reader.Editions = (*Reader)(nil)

// editsSQL finds the edits of rows by their mark, and by the place of a retry whose rows are not marked yet. A mark that the audit has no
// line for has no time: the row was restored from another database, or somebody made it up.
const editsSQL = `
SELECT i.n - 1, coalesce(i.audit_id, p.audit_id), a.at, coalesce(a.dead_letter_id, ''), coalesce(a.actor, ''), coalesce(a.why, ''), CASE WHEN $5 THEN coalesce(a.diff, '') ELSE '' END, f.original, y.actor, y.at, y.why
  FROM unnest($1::text[], $2::int4[], $3::int8[], $4::int8[]) WITH ORDINALITY AS i(topic, partition, place, audit_id, n)
  LEFT JOIN LATERAL (SELECT e.audit_id FROM dead_letter_outbox o JOIN dead_letter_edits e USING (outbox_id)
      WHERE i.audit_id IS NULL AND o.topic = i.topic AND o.published_partition = i.partition AND o.published_offset = i.place AND o.published_at IS NOT NULL AND e.marked_at IS NULL
      ORDER BY e.outbox_id LIMIT 1) AS p ON true
  LEFT JOIN dead_letter_audit a ON a.audit_id = coalesce(i.audit_id, p.audit_id) AND (a.act = 'edited' OR a.original IS NOT NULL)
  LEFT JOIN LATERAL (SELECT b.original FROM dead_letter_audit b WHERE $5 AND b.dead_letter_id = a.dead_letter_id AND b.audit_id <= a.audit_id AND b.original IS NOT NULL
      ORDER BY b.audit_id LIMIT 1) AS f ON true
  LEFT JOIN LATERAL (SELECT b.actor, b.at, b.why FROM dead_letter_audit b WHERE b.dead_letter_id = a.dead_letter_id AND b.audit_id < a.audit_id AND b.act = 'approved'
      ORDER BY b.audit_id DESC LIMIT 1) AS y ON true
 WHERE coalesce(i.audit_id, p.audit_id) IS NOT NULL`

// Edits is that of [reader.Editions].
func (r *Reader) Edits(ctx context.Context, decisions []reader.Decision, whole bool) (map[int]reader.Edit, error) {
	topics, partitions, offsets, marks := make([]string, len(decisions)), make([]int32, len(decisions)), make([]int64, len(decisions)), make([]*int64, len(decisions))
	for i, d := range decisions {
		topics[i], partitions[i], offsets[i], marks[i] = d.Topic, d.Partition, d.Offset, d.EditedAuditID
	}
	found := map[int]reader.Edit{}
	err := r.atOnce(ctx, r.patience(ctx), pgx.RepeatableRead, func(b *pgx.Batch) {
		b.Queue(editsSQL, topics, partitions, offsets, marks, whole)
	}, func(answers pgx.BatchResults) error {
		rows, err := answers.Query()
		if err != nil {
			return err
		}
		var n int
		var e reader.Edit
		var by, why *string
		var at *time.Time
		_, err = pgx.ForEachRow(rows, []any{&n, &e.AuditID, &e.At, &e.DeadLetter, &e.By, &e.Why, &e.Diff, &e.Bytes, &by, &at, &why}, func() error {
			if by != nil {
				e.Approved = &reader.Approval{By: *by, At: at.UTC(), Why: *why}
			}
			found[n] = e
			e = reader.Edit{}
			return nil
		})
		return err
	})
	if s, ok := db.AsServerError(err); ok && (s.SQLState() == pgerrcode.InsufficientPrivilege || s.SQLState() == pgerrcode.UndefinedTable) {
		return nil, fmt.Errorf("%w (SQLSTATE %s)", reader.ErrEdits, s.SQLState())
	}
	if err != nil {
		return nil, db.Clean("look for edits", err)
	}
	return found, nil
}
