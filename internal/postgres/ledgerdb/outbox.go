package ledgerdb

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/db"
)

var _ ledger.Relay = (*Ledger)(nil)

// claimLock serialises claims: each look for rows sees all claims before, and all rows that were put off.
const claimLock = 0x646f636b65740001

// claimedBytes bounds the values that are claimed together; the last may exceed it.
const claimedBytes = 16 << 20

// claimSQL claims rows that are due at one moment: were a claim to end between two looks at the clock, the rows behind it would
// overtake it. Of a key nothing is taken while an earlier row is claimed or waits. Which keys these are is found once, among the few
// rows that are claimed or were tried: a million rows behind one are passed by and not looked into one by one. A row before those is
// one of the few itself.
const claimSQL = `WITH held AS MATERIALIZED (
		SELECT e.key_hash, min(e.outbox_id) AS first FROM dead_letter_outbox e
		WHERE (e.tries > 0 OR e.claimed_until IS NOT NULL) AND e.published_at IS NULL AND e.ended_at IS NULL AND e.key_hash IS NOT NULL
			AND (e.next_try_at > statement_timestamp() OR e.claimed_until > statement_timestamp())
		GROUP BY e.key_hash),
	due AS (
		SELECT o.outbox_id, o.dead_letter_id FROM dead_letter_outbox o
		WHERE o.published_at IS NULL AND o.ended_at IS NULL AND o.next_try_at <= statement_timestamp()
			AND (o.claimed_until IS NULL OR o.claimed_until <= statement_timestamp())
			AND CASE WHEN o.key_hash IN (SELECT key_hash FROM held) THEN (o.tries > 0 OR o.claimed_until IS NOT NULL) AND o.outbox_id < (SELECT first FROM held h WHERE h.key_hash = o.key_hash) ELSE true END
			AND EXISTS (SELECT FROM dead_letters d WHERE d.dead_letter_id = o.dead_letter_id AND d.state = 'PROCESSING')
		ORDER BY o.outbox_id LIMIT $3::int FOR UPDATE),
	fit AS (
		SELECT due.outbox_id, sum(coalesce(octet_length(d.value), 0)) OVER (ORDER BY due.outbox_id) - coalesce(octet_length(d.value), 0) AS before
		FROM due JOIN dead_letters d USING (dead_letter_id)),
	taken AS (
		UPDATE dead_letter_outbox o SET claimed_by = $1::text, claimed_until = clock_timestamp() + $2::interval FROM fit
		WHERE o.outbox_id = fit.outbox_id AND fit.before < $4::bigint
		RETURNING o.outbox_id, o.dead_letter_id, o.mark, o.topic, o.tries, o.actor, o.job_id, o.created_at)
	SELECT t.outbox_id, t.dead_letter_id, t.mark, t.topic, d.key, d.value, d.headers, t.tries, t.actor, coalesce(t.job_id, 0), t.created_at
	FROM taken t JOIN dead_letters d USING (dead_letter_id) ORDER BY t.outbox_id`

// Claim implements [ledger.Relay].
func (l *Ledger) Claim(ctx context.Context, holder string, n int, lease time.Duration) ([]ledger.Sending, error) {
	var claimed []ledger.Sending
	err := l.within(ctx, "claim retries", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		// By itself, so that the next statement sees what was committed while this one waited.
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1::bigint)`, int64(claimLock)); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, claimSQL, db.Text(holder), lease, n, claimedBytes)
		if err != nil {
			return err
		}
		claimed, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (s ledger.Sending, err error) {
			var headers []byte
			if err := row.Scan(&s.ID, &s.LetterID, &s.Mark, &s.Topic, &s.Key, &s.Value, &headers, &s.Tries, &s.By, &s.Job, &s.CreatedAt); err != nil {
				return s, err
			}
			s.Headers, err = sentHeaders(headers)
			return s, err
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

func sentHeaders(b []byte) (headers []ledger.Header, err error) {
	if b == nil {
		return nil, nil
	}
	if err := json.Unmarshal(b, &headers); err != nil {
		return nil, &db.AnswerError{Problem: "the headers of a dead letter are no longer what was written"}
	}
	return headers, nil
}

// lockSendings locks the letters of sendings and then these; it gives the letters' ids.
func lockSendings(ctx context.Context, tx pgx.Tx, ids []int64) ([]string, error) {
	rows, err := tx.Query(ctx, `SELECT dead_letter_id FROM dead_letters
		WHERE dead_letter_id IN (SELECT dead_letter_id FROM dead_letter_outbox WHERE outbox_id = ANY($1::bigint[])) ORDER BY dead_letter_id FOR UPDATE`, ids)
	if err != nil {
		return nil, err
	}
	letters, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	_, err = tx.Exec(ctx, `SELECT FROM dead_letter_outbox WHERE outbox_id = ANY($1::bigint[]) ORDER BY outbox_id FOR UPDATE`, ids)
	return letters, err
}

// A retry that had been given up and is in the topic after all is watched like any other.
const (
	publishedSQL = `UPDATE dead_letter_outbox o SET published_at = clock_timestamp(), published_partition = n.partition, published_offset = n.place,
			claimed_by = NULL, claimed_until = NULL, look_at = clock_timestamp() + $4::interval,
			outcome = CASE WHEN o.outcome NOT IN ('withdrawn', 'refused') THEN o.outcome END,
			ended_at = CASE WHEN o.outcome NOT IN ('withdrawn', 'refused') THEN o.ended_at END,
			code = CASE WHEN o.outcome IN ('withdrawn', 'refused') THEN '' ELSE o.code END
		FROM unnest($1::bigint[], $2::int[], $3::bigint[]) AS n(id, partition, place)
		WHERE o.outbox_id = n.id AND o.published_at IS NULL`
	extendSQL = `UPDATE dead_letters SET lease_until = greatest(lease_until, clock_timestamp() + $2::interval)
		WHERE dead_letter_id = ANY($1::text[]) AND state = 'PROCESSING'`
)

// Published implements [ledger.Relay]. Of several places of one row the first stays.
func (l *Ledger) Published(ctx context.Context, _ string, placed []ledger.Placed, extend time.Duration) error {
	if len(placed) == 0 {
		return nil
	}
	var ids, offsets []int64
	var partitions []int32
	seen := make(map[int64]bool)
	for _, p := range placed {
		if !seen[p.SendingID] {
			seen[p.SendingID] = true
			ids, partitions, offsets = append(ids, p.SendingID), append(partitions, p.Partition), append(offsets, p.Offset)
		}
	}
	return l.within(ctx, "note published retries", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		letters, err := lockSendings(ctx, tx, ids)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, publishedSQL, ids, partitions, offsets, ledger.FirstLook); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, extendSQL, letters, extend)
		return err
	})
}

const (
	// An answer may have been lost, so what is given up is looked for as well.
	unpublishedSQL = `UPDATE dead_letter_outbox SET tries = tries + 1, code = $3::text, claimed_by = NULL, claimed_until = NULL,
			look_at = CASE WHEN $5::boolean THEN clock_timestamp() END, looks = 0, next_try_at = clock_timestamp() + $4::interval,
			outcome = CASE WHEN $5::boolean THEN 'refused' END, ended_at = CASE WHEN $5::boolean THEN clock_timestamp() END
		WHERE outbox_id = $1::bigint AND claimed_by = $2::text AND published_at IS NULL AND ended_at IS NULL`
	notTakenSQL = `UPDATE dead_letters SET state = 'FAILED', changed_at = clock_timestamp(), changed_by = $2::text, changed_act = 'refused', why = $3::text,
			owner = NULL, lease_until = NULL
		WHERE dead_letter_id = ANY($1::text[]) AND state = 'PROCESSING'`
)

// Unpublished implements [ledger.Relay].
func (l *Ledger) Unpublished(ctx context.Context, holder string, id int64, code string, pause time.Duration, giveUp bool) error {
	if holder == "" {
		return ledger.ErrNobody
	}
	holder, code = db.Text(holder), db.Text(code)
	return l.within(ctx, "note an unpublished retry", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		// A claim that only waited for this row would take those behind it, which it found before.
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock_shared($1::bigint)`, int64(claimLock)); err != nil {
			return err
		}
		letters, err := lockSendings(ctx, tx, []int64{id})
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, unpublishedSQL, id, holder, code, pause, giveUp)
		switch {
		case err != nil:
			return err
		case tag.RowsAffected() == 0:
			return fmt.Errorf("%w: retry %d", ledger.ErrLost, id)
		case !giveUp:
			return nil
		}
		_, err = tx.Exec(ctx, notTakenSQL, letters, holder, "it was not published: "+code)
		return err
	})
}
