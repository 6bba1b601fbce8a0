package ledgerdb

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/db"
)

var _ ledger.Watch = (*Ledger)(nil)

const awaitedSQL = `SELECT o.outbox_id, o.dead_letter_id, o.mark, o.topic, d.key, ` + sentValueSQL + `, d.headers, o.tries, o.actor, coalesce(o.job_id, 0), o.created_at,
		coalesce(o.published_partition, 0), coalesce(o.published_offset, 0), coalesce(o.published_at, o.ended_at), o.code, d.state, o.children, o.looks
	FROM (SELECT n.*, sum(size) OVER (ORDER BY look_at, outbox_id) - size AS before FROM (
			SELECT o.*, coalesce(octet_length(d.value), 0) AS size FROM (
				(SELECT * FROM dead_letter_outbox WHERE published_at IS NOT NULL AND ended_at IS NULL AND look_at <= now() ORDER BY look_at LIMIT $1::int)
				UNION ALL
				(SELECT * FROM dead_letter_outbox WHERE outcome = 'refused' AND look_at <= now() ORDER BY look_at LIMIT $1::int)) o
			JOIN dead_letters d USING (dead_letter_id)
			WHERE o.outcome IS NULL OR d.state = 'FAILED' ORDER BY o.look_at, o.outbox_id LIMIT $1::int) n) o
		JOIN dead_letters d USING (dead_letter_id)
	WHERE o.before < $2::bigint
	ORDER BY o.look_at, o.outbox_id`

// awaitedBytes bounds the values that are looked for together; the last may exceed it.
const awaitedBytes = 16 << 20

// Awaited implements [ledger.Watch]. The value is the one that was sent, also where the letter was edited since. Among them are
// those that were given up and whose letter is FAILED for it: a broker may have taken the record and lost the answer.
func (l *Ledger) Awaited(ctx context.Context, n int) ([]ledger.Awaited, error) {
	var awaited []ledger.Awaited
	err := l.within(ctx, "list published retries", pgx.ReadOnly, func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, awaitedSQL, n, awaitedBytes)
		if err != nil {
			return err
		}
		awaited, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (a ledger.Awaited, err error) {
			var headers []byte
			var children []int32
			p := &a.Published
			if err := row.Scan(&a.ID, &a.LetterID, &a.Mark, &a.Topic, &a.Key, &a.Value, &headers, &a.Tries, &a.By, &a.Job, &a.CreatedAt,
				&p.Partition, &p.Offset, &p.Stamp, &a.Code, &a.State, &children, &a.Looks); err != nil {
				return a, err
			}
			p.Topic = a.Topic
			for _, at := range children {
				a.Children = append(a.Children, int(at))
			}
			a.Headers, err = sentHeaders(headers)
			return a, err
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return awaited, nil
}

// endStoredSQL ends the retries of letters that are stored, whether they were looked for or not. One that was published with other
// bytes, before an edit or after it, is another record: its end is still to come.
const (
	storedSQL = `UPDATE dead_letters d SET state = 'RESOLVED', changed_at = clock_timestamp(), changed_by = $3::text, changed_act = 'stored', why = n.why,
			owner = NULL, lease_until = NULL
		FROM (SELECT DISTINCT ON (o.dead_letter_id) o.dead_letter_id, w.why FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS w(id, why, at)
			JOIN dead_letter_outbox o ON o.outbox_id = w.id ORDER BY o.dead_letter_id, w.at) n
		WHERE d.dead_letter_id = n.dead_letter_id AND d.state <> 'RESOLVED'`
	endStoredSQL = `UPDATE dead_letter_outbox o SET outcome = CASE WHEN o.published_at IS NULL AND NOT o.outbox_id = ANY($2::bigint[]) THEN 'withdrawn' ELSE 'stored' END,
			ended_at = clock_timestamp(), claimed_by = NULL, claimed_until = NULL
		FROM (SELECT e.outbox_id FROM dead_letter_outbox e WHERE e.dead_letter_id = ANY($1::text[]) AND e.ended_at IS NULL
				AND (e.published_at IS NULL OR e.value_hash IN (
					SELECT s.value_hash FROM dead_letter_outbox s WHERE s.dead_letter_id = e.dead_letter_id AND s.outbox_id = ANY($2::bigint[])))
			ORDER BY e.outbox_id FOR UPDATE) n
		WHERE o.outbox_id = n.outbox_id`
)

// Stored implements [ledger.Watch].
func (l *Ledger) Stored(ctx context.Context, ids []int64, why []string, by ledger.Actor) error {
	switch {
	case by.Name == "":
		return ledger.ErrNobody
	case len(ids) != len(why):
		return errors.New("not one line for each retry that ended stored")
	case len(ids) == 0:
		return nil
	}
	lines := make([]string, len(why))
	for i := range why {
		lines[i] = db.Text(why[i])
	}
	return l.within(ctx, "end stored retries", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		letters, err := lockSendings(ctx, tx, ids)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, storedSQL, ids, lines, db.Text(by.Name)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, endStoredSQL, letters, ids); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, forgetSQL, letters)
		return err
	})
}

// LookAgain implements [ledger.Watch].
func (l *Ledger) LookAgain(ctx context.Context, ids []int64, after time.Duration) error {
	if len(ids) == 0 {
		return nil
	}
	return l.within(ctx, "put off a look at retries", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE dead_letter_outbox o SET looks = looks + 1, look_at = clock_timestamp() +
				CASE WHEN outcome = 'refused' THEN ($3::interval[])[least(looks + 1, cardinality($3::interval[]))] ELSE $2::interval END
			FROM (SELECT outbox_id FROM dead_letter_outbox WHERE outbox_id = ANY($1::bigint[]) AND (ended_at IS NULL OR outcome = 'refused') ORDER BY outbox_id FOR UPDATE) n
			WHERE o.outbox_id = n.outbox_id`, ids, after, ledger.GivenUpPauses())
		return err
	})
}
