package ledgerdb

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/db"
)

// linesSQL is what letterLineSQL would be of letters that entered now, in the order in which they are given. The arguments up to $23 are those of
// enterSQL; its groups are not looked at.
const linesSQL = `SELECT (SELECT row_to_json(r)::text FROM (SELECT n.id AS dead_letter_id, g.fingerprint, g.kind, g.code, g."table", g."column", g."constraint", g.message AS group_message,
		now() AS group_first_seen, n.path, n.decision_id, n.decision_ts, n.origin_topic, n.origin_partition, n.origin_offset, n.origin_index, n.origin_timestamp,
		n.found_topic, n.found_partition, n.found_offset, n.found_at, n.key, n.value, n.headers::jsonb AS headers, n.message, 0 AS attempts, false AS edited, n.first_failed_at,
		n.last_failed_at, now() AS seen_at, now() AS changed_at, $21::text AS changed_by, 'entered' AS changed_act, $31::text AS why, NULL::bigint AS job_id, n.parent_id,
		g.decisions::jsonb AS decisions) AS r)
	FROM unnest($1::text[], $2::int[], $3::text[], $4::text[], $5::timestamptz[],
		$6::text[], $7::int[], $8::bigint[], $9::int[], $10::timestamptz[],
		$11::text[], $12::int[], $13::bigint[], $14::timestamptz[], $15::bytea[], $16::bytea[], $17::text[], $18::text[],
		$19::timestamptz[], $20::timestamptz[], $22::text[], $23::text[])
		WITH ORDINALITY AS n(id, group_id, path, decision_id, decision_ts, origin_topic, origin_partition, origin_offset, origin_index, origin_timestamp,
		found_topic, found_partition, found_offset, found_at, key, value, headers, message, first_failed_at, last_failed_at, failed, parent_id, at)
	JOIN unnest($24::text[], $25::text[], $26::text[], $27::text[], $28::text[], $29::text[], $18::text[], $30::text[])
		WITH ORDINALITY AS g(fingerprint, kind, code, "table", "column", "constraint", message, decisions, at) USING (at)
	ORDER BY n.at`

// Lines are letters as lines of an archive. They need not be in the ledger; one that was given twice is one line.
func (l *Ledger) Lines(ctx context.Context, letters []ledger.Letter, by ledger.Actor) (lines [][]byte, err error) {
	batch := inOrder(letters)
	args, err := letterColumns(batch, nil, by)
	if err != nil {
		return nil, err
	}
	var of [6][]string
	decisions := make([]*string, len(batch))
	for i := range batch {
		c := batch[i].Cause
		for j, text := range []string{batch[i].fingerprint, string(c.Kind), c.Code, c.Table, c.Column, c.Constraint} {
			of[j] = append(of[j], db.Text(text))
		}
		if decisions[i], err = heldOf(batch[i].Letter); err != nil {
			return nil, err
		}
	}
	args = append(args, of[0], of[1], of[2], of[3], of[4], of[5], decisions, db.Text(by.Why))
	err = l.within(ctx, "write dead letters as lines", pgx.ReadOnly, func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, linesSQL, args...)
		if err != nil {
			return err
		}
		lines, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) ([]byte, error) {
			var line string
			err := r.Scan(&line)
			return []byte(line), err
		})
		return err
	})
	return lines, err
}

// heldOf is what a line says of the decisions that a letter holds; nil: it is not a rest.
func heldOf(l *ledger.Letter) (*string, error) {
	if l.Refused == 0 {
		return nil, nil //nolint:nilnil // NULL
	}
	held := struct {
		Refused int          `json:"refused"`
		Places  []int        `json:"places"`
		IDs     []string     `json:"ids"`
		Times   []*time.Time `json:"times"`
	}{l.Refused, []int{}, []string{}, []*time.Time{}}
	for _, h := range l.Held {
		held.Places, held.IDs, held.Times = append(held.Places, h.Place), append(held.IDs, db.Text(h.ID)), append(held.Times, timeOrNull(h.Time))
	}
	b, err := json.Marshal(held)
	if err != nil {
		return nil, err
	}
	return new(string(b)), nil
}
