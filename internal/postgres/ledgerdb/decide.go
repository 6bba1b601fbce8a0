package ledgerdb

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/db"
	"docket/internal/record/decision"
)

var _ ledger.Decider = (*Ledger)(nil)

// retrySQL takes the ids of letters that are locked and PENDING or FAILED. They go back in the order in which they came. No two retries of a letter wait in the outbox, also
// where somebody moved it by hand.
const (
	withdrawSQL = `UPDATE dead_letter_outbox o SET outcome = 'withdrawn', ended_at = clock_timestamp(), claimed_by = NULL, claimed_until = NULL
		FROM (SELECT outbox_id FROM dead_letter_outbox
			WHERE dead_letter_id = ANY($1::text[]) AND published_at IS NULL AND ended_at IS NULL ORDER BY outbox_id FOR UPDATE) n
		WHERE o.outbox_id = n.outbox_id`
	// A retry that was given up is looked for no longer than its letter is FAILED for it.
	forgetSQL = `UPDATE dead_letter_outbox o SET look_at = NULL
		FROM (SELECT outbox_id FROM dead_letter_outbox
			WHERE dead_letter_id = ANY($1::text[]) AND outcome = 'refused' AND look_at IS NOT NULL ORDER BY outbox_id FOR UPDATE) n
		WHERE o.outbox_id = n.outbox_id`
	retrySQL = movedSQL + `
	INSERT INTO dead_letter_outbox (dead_letter_id, topic, key_hash, value_hash, actor, job_id) ` + toSendSQL + toSendOrderSQL
	// A retry of a rule says which, so that its end is found by an index.
	retryByRuleSQL = movedSQL + `
	INSERT INTO dead_letter_outbox (dead_letter_id, topic, key_hash, value_hash, actor, job_id, rule_id) ` + toSendSQL + `, $6::bigint` + toSendOrderSQL
	movedSQL = `WITH moved AS (
		UPDATE dead_letters SET state = 'PROCESSING', changed_at = clock_timestamp(), changed_by = $2::text, changed_act = 'retried', why = $3::text,
			owner = $2::text, lease_until = clock_timestamp() + $4::interval, job_id = coalesce(nullif($5::bigint, 0), job_id)
		WHERE dead_letter_id = ANY($1::text[]) AND state IN ('PENDING', 'FAILED')
		RETURNING dead_letter_id, origin_topic, origin_partition, origin_offset, origin_index, key, value)`
	toSendSQL      = `SELECT dead_letter_id, origin_topic, hashtextextended(encode(key, 'hex'), 0), coalesce(sha256(value), ''), $2::text, nullif($5::bigint, 0)`
	toSendOrderSQL = `
	FROM moved ORDER BY origin_topic, origin_partition, origin_offset, origin_index, dead_letter_id
	RETURNING outbox_id`
	resolveSQL = `UPDATE dead_letters SET state = 'RESOLVED', changed_at = clock_timestamp(), changed_by = $2::text, changed_act = 'closed', why = $3::text,
			owner = NULL, lease_until = NULL, job_id = coalesce(nullif($4::bigint, 0), job_id)
		WHERE dead_letter_id = ANY($1::text[]) AND state IN ('PENDING', 'FAILED')`
)

// Retry implements [ledger.Decider].
func (l *Ledger) Retry(ctx context.Context, ids []string, lease time.Duration, by ledger.Actor) ([]ledger.Outcome, error) {
	switch {
	case by.Name == "":
		return nil, ledger.ErrNobody
	case lease <= 0:
		return nil, ledger.ErrNoLease
	}
	return l.decide(ctx, "retry dead letters", ids, func(ctx context.Context, tx pgx.Tx, free []string) error {
		_, err := retry(ctx, tx, free, lease, by)
		return err
	})
}

// Resolve implements [ledger.Decider].
func (l *Ledger) Resolve(ctx context.Context, ids []string, by ledger.Actor) ([]ledger.Outcome, error) {
	switch {
	case by.Name == "":
		return nil, ledger.ErrNobody
	case by.Why == "":
		return nil, ledger.ErrNoReason
	}
	return l.decide(ctx, "resolve dead letters", ids, func(ctx context.Context, tx pgx.Tx, free []string) error {
		_, err := resolve(ctx, tx, free, by)
		return err
	})
}

// decide locks letters, in the order of their ids, and moves those that are PENDING or FAILED.
func (l *Ledger) decide(ctx context.Context, act string, ids []string, move func(context.Context, pgx.Tx, []string) error) ([]ledger.Outcome, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	outcomes := make([]ledger.Outcome, len(ids))
	err := l.within(ctx, act, pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		there, err := lockLetters(ctx, tx, ids)
		if err != nil {
			return err
		}
		var free []string
		for i, id := range ids {
			outcomes[i] = ledger.Outcome{ID: id}
			switch letter, ok := there[id]; {
			case !ok:
				outcomes[i].Err = ledger.ErrNotFound
			case !letter.State.Decidable():
				outcomes[i].Err = &letter.RefusedError
			default:
				free = append(free, id)
			}
		}
		slices.Sort(free)
		if free = slices.Compact(free); len(free) == 0 {
			return nil
		}
		return move(ctx, tx, free)
	})
	if err != nil {
		return nil, err
	}
	return outcomes, nil
}

// locked is a letter that nobody else moves.
type locked struct {
	ledger.RefusedError // the answer where it cannot be decided about
}

func lockLetters(ctx context.Context, tx pgx.Tx, ids []string) (map[string]*locked, error) {
	sent := make([]string, len(ids))
	for i, id := range ids {
		sent[i] = db.Text(id)
	}
	rows, err := tx.Query(ctx, `SELECT dead_letter_id, state, changed_act, changed_by, changed_at FROM dead_letters
		WHERE dead_letter_id = ANY($1::text[]) ORDER BY dead_letter_id FOR UPDATE`, sent)
	if err != nil {
		return nil, err
	}
	there := make(map[string]*locked)
	var r ledger.RefusedError
	_, err = pgx.ForEachRow(rows, []any{&r.ID, &r.State, &r.Act, &r.By, &r.At}, func() error {
		there[r.ID] = &locked{RefusedError: r}
		return nil
	})
	return there, err
}

// takeBack ends what waits of letters that somebody moves on.
func takeBack(ctx context.Context, tx pgx.Tx, ids []string) error {
	if _, err := tx.Exec(ctx, withdrawSQL, ids); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, forgetSQL, ids)
	return err
}

func retry(ctx context.Context, tx pgx.Tx, ids []string, lease time.Duration, by ledger.Actor) ([]int64, error) {
	if err := takeBack(ctx, tx, ids); err != nil {
		return nil, err
	}
	sql, args := retrySQL, []any{ids, db.Text(by.Name), db.Text(by.Why), lease, by.Job}
	if by.Rule != 0 {
		sql, args = retryByRuleSQL, append(args, by.Rule)
	}
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

func resolve(ctx context.Context, tx pgx.Tx, ids []string, by ledger.Actor) (int, error) {
	if err := takeBack(ctx, tx, ids); err != nil {
		return 0, err
	}
	tag, err := tx.Exec(ctx, resolveSQL, ids, db.Text(by.Name), db.Text(by.Why), by.Job)
	return int(tag.RowsAffected()), err
}

// Edit implements [ledger.Decider]. A value that is the one there is changes nothing. The database says what needs a second person.
func (l *Ledger) Edit(ctx context.Context, id string, seen ledger.Version, value []byte, diff string, lease time.Duration, by ledger.Actor) error {
	switch {
	case by.Name == "":
		return ledger.ErrNobody
	case lease < 0:
		return ledger.ErrNoLease
	}
	err := l.within(ctx, "edit a dead letter", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		if err := lockFree(ctx, tx, id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `SELECT set_config('docket.diff', $1, true)`, db.Text(diff)); err != nil {
			return err
		}
		path, decisionID, decided := saysOf(value)
		was, err := valueNow(ctx, tx, id)
		switch {
		case err != nil:
			return err
		case seen != "" && seen != ledger.VersionOfHash(was) && !bytes.Equal(was, hashOf(value)): // an edit that is made again has its value
			return &ledger.EditedError{ID: id}
		}
		if _, err := tx.Exec(ctx, `UPDATE dead_letters SET value = $2::bytea, edited = true, path = $3::text, decision_id = $4::text, decision_ts = $5::timestamptz,
				changed_at = clock_timestamp(), changed_by = $6::text, why = $7::text, job_id = coalesce(nullif($8::bigint, 0), job_id)
			WHERE dead_letter_id = $1::text AND value IS DISTINCT FROM $2::bytea`,
			id, value, path, decisionID, decided, db.Text(by.Name), db.Text(by.Why), by.Job); err != nil {
			return err
		}
		if err := editKept(ctx, tx, id, was, hashOf(value)); err != nil || lease == 0 {
			return err
		}
		_, err = retry(ctx, tx, []string{id}, lease, by)
		return err
	})
	if violated(err) == "dead_letters_four_eyes" {
		return &ledger.SecondPersonError{ID: id}
	}
	return err
}

// valueNow is what a letter has, as hashOf has it.
func valueNow(ctx context.Context, tx pgx.Tx, id string) (hash []byte, err error) {
	err = tx.QueryRow(ctx, `SELECT sha256(value) FROM dead_letters WHERE dead_letter_id = $1::text`, id).Scan(&hash)
	return hash, err
}

// editKept is an error where a letter does not have its new value, or where the audit lacks the one that was overwritten. Both are given
// as hashOf has them. A trigger of somebody else's can swallow either without an error.
func editKept(ctx context.Context, tx pgx.Tx, id string, was, is []byte) error {
	var changed, kept bool
	err := tx.QueryRow(ctx, `SELECT sha256(d.value) IS NOT DISTINCT FROM $3::bytea,
			$2::bytea IS NULL OR $2 = $3::bytea OR EXISTS (SELECT FROM dead_letter_audit a WHERE a.dead_letter_id = d.dead_letter_id AND sha256(a.original) = $2)
		FROM dead_letters d WHERE d.dead_letter_id = $1::text`, id, was, is).Scan(&changed, &kept)
	switch {
	case err != nil:
		return err
	case !changed:
		return swallowed("an edit was neither made nor refused: a trigger on dead_letters swallows or alters it")
	case !kept:
		return swallowed("an edit would lose the original: a trigger on dead_letter_audit swallows or alters its line")
	}
	return nil
}

// lockFree locks a letter that is PENDING or FAILED.
func lockFree(ctx context.Context, tx pgx.Tx, id string) error {
	there, err := lockLetters(ctx, tx, []string{id})
	if err != nil {
		return err
	}
	letter, ok := there[id]
	switch {
	case !ok:
		return ledger.ErrNotFound
	case !letter.State.Decidable():
		return &letter.RefusedError
	}
	return nil
}

// saysOf is what a value says where it is one decision that reads as such.
func saysOf(value []byte) (path string, id *string, at *time.Time) {
	r, refusal := decision.Decode(value, valueBytes)
	if refusal != nil || !r.Sole || r.Parts[0].Err != nil {
		return "", nil, nil
	}
	log := r.Parts[0].Log
	return pathText(log.Path.V), new(db.Text(log.ID)), timeOrNull(log.Time)
}
