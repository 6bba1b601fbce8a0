package ledgerdb

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/desk/ledger"
)

var _ ledger.Prover = (*Ledger)(nil)

const (
	ledgerThereSQL  = `SELECT to_regclass('dead_letters') IS NOT NULL`
	proofLettersSQL = `
SELECT dead_letter_id, state::text, attempts, changed_at, changed_by, seen_at
  FROM dead_letters WHERE changed_at >= $1 ORDER BY changed_at DESC, dead_letter_id LIMIT $2`
	// Of letters that were removed the audit is looked at where one of its lines was written since.
	proofLinesSQL = `
SELECT audit_id, at, dead_letter_id, act, coalesce(from_state::text, ''), coalesce(to_state::text, ''), actor, attempts, coalesce(job_id, 0)
  FROM dead_letter_audit
 WHERE dead_letter_id = ANY ($1)
    OR $2 AND dead_letter_id IN (SELECT a.dead_letter_id FROM dead_letter_audit a WHERE a.act = 'removed' AND a.at >= $3
                                  AND NOT EXISTS (SELECT FROM dead_letters d WHERE d.dead_letter_id = a.dead_letter_id))
 ORDER BY audit_id`
	proofSendingsSQL = `
SELECT outbox_id, dead_letter_id, mark::text, topic, tries, coalesce(job_id, 0), created_at, published_at, coalesce(published_partition, 0),
       coalesce(published_offset, 0), coalesce(outcome, ''), code
  FROM dead_letter_outbox WHERE dead_letter_id = ANY ($1) ORDER BY outbox_id`
	proofStatesSQL = `
SELECT s::text, (SELECT count(*) FROM dead_letters d WHERE d.state = s), (SELECT coalesce(sum(n), 0)::bigint FROM dead_letter_counts c WHERE c.state = s)
  FROM unnest(enum_range(NULL::dead_letter_state)) s`
	knowsSQL = `
SELECT t.n - 1
  FROM unnest($1::text[], $2::text[], $3::text[], $4::int[], $5::bigint[]) WITH ORDINALITY AS t(id, mark, topic, partition, "offset", n)
 WHERE EXISTS (SELECT FROM dead_letters d WHERE d.dead_letter_id = t.id)
    OR EXISTS (SELECT FROM dead_letter_audit a WHERE a.dead_letter_id = t.id)
    OR EXISTS (SELECT FROM dead_letter_outbox o WHERE o.mark = CASE WHEN t.mark ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN t.mark::uuid END)
    OR EXISTS (SELECT FROM dead_letter_outbox o WHERE o.topic = t.topic AND o.published_partition = t.partition AND o.published_offset = t."offset" AND o.published_at IS NOT NULL)`
)

// Proof implements [ledger.Prover]. All of it is of one snapshot.
func (l *Ledger) Proof(ctx context.Context, since time.Time, most int) (ledger.Proof, error) {
	var p ledger.Proof
	err := l.look(ctx, "read the ledger", func(ctx context.Context, tx pgx.Tx) error {
		p = ledger.Proof{Rows: map[ledger.State]int64{}, Counted: map[ledger.State]int64{}}
		var there bool
		if err := tx.QueryRow(ctx, ledgerThereSQL).Scan(&there); err != nil {
			return err
		}
		if !there {
			return ledger.ErrNotFound
		}
		ids, err := proofLetters(ctx, tx, &p, since, most)
		if err != nil {
			return err
		}
		if err := proofLines(ctx, tx, &p, ids, since); err != nil {
			return err
		}
		if err := proofSendings(ctx, tx, &p, ids); err != nil {
			return err
		}
		return proofStates(ctx, tx, &p)
	})
	return p, err
}

func proofLetters(ctx context.Context, tx pgx.Tx, p *ledger.Proof, since time.Time, most int) ([]string, error) {
	rows, err := tx.Query(ctx, proofLettersSQL, since, most+1)
	if err != nil {
		return nil, err
	}
	p.Letters, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (e ledger.Entry, err error) {
		err = r.Scan(&e.ID, &e.State, &e.Attempts, &e.ChangedAt, &e.ChangedBy, &e.SeenAt)
		return e, err
	})
	if len(p.Letters) > most {
		p.Letters, p.Cut = p.Letters[:most], true
	}
	ids := make([]string, len(p.Letters))
	for i := range p.Letters {
		ids[i] = p.Letters[i].ID
	}
	return ids, err
}

func proofLines(ctx context.Context, tx pgx.Tx, p *ledger.Proof, ids []string, since time.Time) error {
	rows, err := tx.Query(ctx, proofLinesSQL, ids, !p.Cut, since)
	if err != nil {
		return err
	}
	p.Lines, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (a ledger.Audit, err error) {
		err = r.Scan(&a.ID, &a.At, &a.LetterID, &a.Act, &a.From, &a.To, &a.By, &a.Attempts, &a.Job)
		return a, err
	})
	return err
}

func proofSendings(ctx context.Context, tx pgx.Tx, p *ledger.Proof, ids []string) error {
	rows, err := tx.Query(ctx, proofSendingsSQL, ids)
	if err != nil {
		return err
	}
	p.Sendings, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (s ledger.Sending, err error) {
		var at *time.Time
		err = r.Scan(&s.ID, &s.LetterID, &s.Mark, &s.Topic, &s.Tries, &s.Job, &s.CreatedAt, &at, &s.Published.Partition, &s.Published.Offset, &s.Outcome, &s.Code)
		if at != nil {
			s.Published.Topic, s.Published.Stamp = s.Topic, *at
		}
		return s, err
	})
	return err
}

func proofStates(ctx context.Context, tx pgx.Tx, p *ledger.Proof) error {
	rows, err := tx.Query(ctx, proofStatesSQL)
	if err != nil {
		return err
	}
	var s ledger.State
	var there, counted int64
	_, err = pgx.ForEachRow(rows, []any{&s, &there, &counted}, func() error {
		p.Rows[s], p.Counted[s] = there, counted
		return nil
	})
	return err
}

// Knows implements [ledger.Prover].
func (l *Ledger) Knows(ctx context.Context, traces []ledger.Trace) ([]bool, error) {
	const portion = 5000
	known := make([]bool, len(traces))
	for from := 0; from < len(traces); from += portion {
		part := traces[from:min(from+portion, len(traces))]
		var ids, marks, topics []string
		var partitions []int32
		var offsets []int64
		for _, t := range part {
			ids, marks, topics = append(ids, t.ID), append(marks, t.Mark), append(topics, t.Topic)
			partitions, offsets = append(partitions, t.Partition), append(offsets, t.Offset)
		}
		err := l.within(ctx, "ask the ledger", pgx.ReadOnly, func(ctx context.Context, tx pgx.Tx) error {
			rows, err := tx.Query(ctx, knowsSQL, ids, marks, topics, partitions, offsets)
			if err != nil {
				return err
			}
			var n int64
			_, err = pgx.ForEachRow(rows, []any{&n}, func() error { known[from+int(n)] = true; return nil })
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return known, nil
}
