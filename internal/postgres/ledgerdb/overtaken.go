package ledgerdb

import (
	"context"

	"github.com/jackc/pgx/v5"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/db"
	"docket/internal/record/envelope"
)

// overtakenSQL reads the letters of these ids, and the retries that they would be the ends of.
const overtakenSQL = `SELECT n.i, o.outbox_id, o.dead_letter_id, g.group_id, g.fingerprint, g.kind, g.code, g."constraint", d.message, d.last_failed_at,
		d.found_topic, d.found_partition, d.found_offset, d.found_at
	FROM unnest($1::int[], $2::bigint[], $3::text[]) AS n(i, sending, letter)
	CROSS JOIN LATERAL (SELECT * FROM dead_letters WHERE dead_letter_id = n.letter OFFSET 0) d
	JOIN dead_letter_groups g USING (group_id)
	JOIN dead_letter_outbox o ON o.outbox_id = n.sending AND o.published_at IS NOT NULL AND o.ended_at IS NULL AND o.dead_letter_id <> d.dead_letter_id`

// Overtaken implements [ledger.Watch].
func (l *Ledger) Overtaken(ctx context.Context, possible []ledger.Possible, maxAttempts int, by ledger.Actor) (ended int, err error) {
	switch {
	case by.Name == "":
		return 0, ledger.ErrNobody
	case len(possible) == 0:
		return 0, nil
	}
	at, sendings, ids := make([]int32, len(possible)), make([]int64, len(possible)), make([]string, len(possible))
	for i, p := range possible {
		at[i], sendings[i], ids[i] = int32(i), p.SendingID, db.Text(p.LetterID) //nolint:gosec // some thousands
	}
	err = l.within(ctx, "end overtaken retries", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		h := reentry{tx: tx, most: maxAttempts, by: by, groups: make(map[string]int32), sendings: make(map[int64]*returning), letters: make(map[string]*ledger.Standing)}
		rows, err := tx.Query(ctx, overtakenSQL, at, sendings, ids)
		if err != nil {
			return err
		}
		hints := make(map[int][]int64)
		there := make(map[int]*entering)
		var i int
		var s returning
		var group int32
		var e entering
		var was ledger.Letter
		c, f := &was.Cause, &was.Found
		if _, err := pgx.ForEachRow(rows, []any{&i, &s.id, &s.letter, &group, &e.fingerprint, &c.Kind, &c.Code, &c.Constraint, &c.Message, &was.FailedAt, &f.Topic, &f.Partition, &f.Offset, &f.Stamp}, func() error {
			e.Letter = new(was)
			there[i], hints[i] = new(e), []int64{s.id}
			h.groups[e.fingerprint], h.sendings[s.id] = group, &returning{id: s.id, letter: s.letter}
			return nil
		}); err != nil || len(there) == 0 {
			return err
		}
		if err := h.lock(ctx, hints); err != nil {
			return err
		}
		var died deaths
		for i, p := range possible {
			if len(hints[i]) == 0 {
				continue
			}
			s := h.sendings[p.SendingID]
			if s.outcome != nil {
				continue // it ended since, or by a letter before
			}
			if p.Index != envelope.NoIndex {
				s.children = append(s.children, int32(p.Index)) //nolint:gosec // below the number of parts
				continue
			}
			if after, counts := h.end(s, there[i]); counts {
				died.add(death{there[i], s.letter, after})
			}
			ended++
		}
		return h.close(ctx, died)
	})
	if err != nil {
		return 0, err
	}
	return ended, nil
}
