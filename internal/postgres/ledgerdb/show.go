package ledgerdb

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/db"
)

var _ ledger.Reader = (*Ledger)(nil)

const (
	// entrySQL are the columns of an entry without its payload, of dead_letters d and dead_letter_groups g.
	entrySQL = entryHeadSQL + `coalesce(d.decision_id, ''), d.decision_ts, ` + entryOriginSQL + `coalesce(d.origin_index, -1), ` + entryRestSQL
	// heldEntrySQL are those of one decision h of a letter that holds several: with its place, id and time.
	heldEntrySQL = entryHeadSQL + `h.id, h.ts, ` + entryOriginSQL + `h.place, ` + entryRestSQL
	entryHeadSQL = `d.dead_letter_id, d.state::text, g.fingerprint, g.kind, g.code, g."table", g."column", g."constraint", d.message, d.path, `

	entryOriginSQL = `d.origin_topic, d.origin_partition, d.origin_offset, `
	entryRestSQL   = `d.origin_timestamp, d.found_topic, d.found_partition, d.found_offset, d.found_at, d.attempts, d.edited, d.first_failed_at, d.last_failed_at, d.seen_at,
	d.changed_at, d.changed_by, d.why, coalesce(d.owner, ''), d.lease_until, coalesce(d.job_id, 0), coalesce(d.parent_id, ''), coalesce(d.archived_in, ''), ` + assignedSQL + `, ` + untilSQL
	payloadSQL = entrySQL + `, d.key, d.value, d.headers::text`
)

const (
	minPrefix = 6
	idLength  = 64
	// mostCandidates is how many ids are named that begin alike.
	mostCandidates = 10
)

// scanEntry reads what entrySQL asked for, and what it is followed by into more.
func scanEntry(r pgx.CollectableRow, more ...any) (e ledger.Entry, err error) {
	var decided, origin, lease, snoozed *time.Time
	c := &e.Cause
	err = r.Scan(append([]any{
		&e.ID, &e.State, &e.Fingerprint, &c.Kind, &c.Code, &c.Table, &c.Column, &c.Constraint, &c.Message,
		&e.Path, &e.DecisionID, &decided, &e.Origin.Topic, &e.Origin.Partition, &e.Origin.Offset, &e.Origin.Index, &origin,
		&e.Found.Topic, &e.Found.Partition, &e.Found.Offset, &e.Found.Stamp, &e.Attempts, &e.Edited, &e.FirstFailedAt, &e.FailedAt, &e.SeenAt,
		&e.ChangedAt, &e.ChangedBy, &e.Why, &e.Owner, &lease, &e.Job, &e.Parent, &e.ArchivedIn, &e.Assigned, &snoozed,
	}, more...)...)
	e.DecisionTime, e.Origin.Timestamp, e.LeaseUntil, e.SnoozedUntil = utc(decided), utc(origin), utc(lease), utc(snoozed)
	for _, t := range []*time.Time{&e.Found.Stamp, &e.FirstFailedAt, &e.FailedAt, &e.SeenAt, &e.ChangedAt} {
		*t = t.UTC()
	}
	return e, err
}

func scanListed(r pgx.CollectableRow) (ledger.Entry, error) { return scanEntry(r) }

func scanWhole(r pgx.CollectableRow) (ledger.Entry, error) {
	var key, value []byte
	var headers *string
	e, err := scanEntry(r, &key, &value, &headers)
	if err != nil {
		return e, err
	}
	e.Key, e.Value = key, value
	if headers != nil && json.Unmarshal([]byte(*headers), &e.Headers) != nil {
		return e, &db.AnswerError{Problem: "headers of a dead letter that are not as they are written"}
	}
	return e, nil
}

// utc is a time that may be missing: zero.
func utc(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// Show finds a letter by its id or the first characters of it.
func (l *Ledger) Show(ctx context.Context, id string) (ledger.Entry, error) {
	id = strings.ToLower(id)
	if len(id) < minPrefix || len(id) > idLength || strings.Trim(id, "0123456789abcdef") != "" {
		return ledger.Entry{}, ledger.ErrNotFound
	}
	var found []ledger.Entry
	var ids []string
	err := l.look(ctx, "show a dead letter", func(ctx context.Context, tx pgx.Tx) (err error) {
		// All ids are of 0-9 and a-f, in the order of bytes: g is after every one that begins like this.
		ids, err = textsOf(tx.Query(ctx, `SELECT d.dead_letter_id FROM dead_letters d WHERE d.dead_letter_id >= $1 AND d.dead_letter_id < $2 ORDER BY d.dead_letter_id LIMIT $3::int`, id, id+"g", mostCandidates))
		if err != nil || len(ids) != 1 {
			return err
		}
		rows, err := tx.Query(ctx, `SELECT `+payloadSQL+` FROM dead_letters d JOIN dead_letter_groups g USING (group_id) WHERE d.dead_letter_id = $1`, ids[0])
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, scanWhole)
		return err
	})
	switch {
	case err != nil:
		return ledger.Entry{}, err
	case len(ids) > 1:
		return ledger.Entry{}, &ledger.AmbiguousError{IDs: ids}
	case len(found) == 0:
		return ledger.Entry{}, ledger.ErrNotFound
	}
	return found[0], nil
}

// History is the audit of a letter and its retries, both oldest first. Payloads are not in the retries.
func (l *Ledger) History(ctx context.Context, id string) (audit []ledger.Audit, sendings []ledger.Sending, err error) {
	err = l.look(ctx, "read the audit of a dead letter", func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT audit_id, at, dead_letter_id, act, coalesce(from_state::text, ''), coalesce(to_state::text, ''), actor, why,
			attempts, coalesce(job_id, 0), original, coalesce(diff, ''), coalesce(login::text, ''), coalesce(application, ''), coalesce(host(client), ''),
			ARRAY(SELECT jsonb_object_keys(was) AS k ORDER BY k), was::text FROM dead_letter_audit WHERE dead_letter_id = $1 ORDER BY audit_id`, id)
		if err != nil {
			return err
		}
		audit, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (a ledger.Audit, err error) {
			err = r.Scan(&a.ID, &a.At, &a.LetterID, &a.Act, &a.From, &a.To, &a.By, &a.Why, &a.Attempts, &a.Job, &a.Original, &a.Diff, &a.Login, &a.Application, &a.Client, &a.Columns, &a.Was)
			a.At = a.At.UTC()
			return a, err
		})
		if err != nil {
			return err
		}
		rows, err = tx.Query(ctx, `SELECT `+sentSQL+` FROM dead_letter_outbox o WHERE o.dead_letter_id = $1 ORDER BY o.outbox_id`, id)
		if err != nil {
			return err
		}
		sendings, err = pgx.CollectRows(rows, scanRetry)
		return err
	})
	if err == nil && len(audit) == 0 {
		err = ledger.ErrNotFound
	}
	return audit, sendings, err
}

// sentSQL are the columns of a retry without what is sent and without its mark, of dead_letter_outbox o.
const sentSQL = `o.outbox_id, o.dead_letter_id, o.topic, o.tries, o.actor, coalesce(o.job_id, 0), o.created_at, o.published_at,
	coalesce(o.published_partition, 0), coalesce(o.published_offset, 0), coalesce(o.outcome, ''), o.ended_at, o.code`

func scanRetry(r pgx.CollectableRow) (s ledger.Sending, err error) {
	var published, ended *time.Time
	err = r.Scan(&s.ID, &s.LetterID, &s.Topic, &s.Tries, &s.By, &s.Job, &s.CreatedAt, &published,
		&s.Published.Partition, &s.Published.Offset, &s.Outcome, &ended, &s.Code)
	s.CreatedAt, s.EndedAt = s.CreatedAt.UTC(), utc(ended)
	if published != nil {
		s.Published.Topic, s.Published.Stamp = s.Topic, utc(published)
	}
	return s, err
}

// portionBytes bounds the values of a portion; the last may exceed it.
const portionBytes = 16 << 20

// Values gives whole letters by id, each portion in a transaction of its own, so that nothing is held while each works.
func (l *Ledger) Values(ctx context.Context, f ledger.Filter, n, limit int, each func([]ledger.Entry) error) error {
	if err := f.Validate(); err != nil {
		return err
	}
	for after, given := "", 0; limit <= 0 || given < limit; {
		portion := max(n, 1)
		if limit > 0 {
			portion = min(portion, limit-given)
		}
		entries, more, err := l.values(ctx, f, after, portion)
		if err != nil || len(entries) == 0 {
			return err
		}
		if err := each(entries); err != nil || !more {
			return err
		}
		given += len(entries)
		after = entries[len(entries)-1].ID
	}
	return nil
}

// values gives at most n letters behind after, and no more than fit together in memory. more says that there may be others.
func (l *Ledger) values(ctx context.Context, f ledger.Filter, after string, n int) (entries []ledger.Entry, more bool, err error) {
	err = l.look(ctx, "read dead letters", func(ctx context.Context, tx pgx.Tx) error {
		var args []any
		where := wholeSQL(f, &args)
		rows, err := tx.Query(ctx, `SELECT d.dead_letter_id, coalesce(octet_length(d.value), 0)::bigint FROM dead_letters d JOIN dead_letter_groups g USING (group_id)
			WHERE d.dead_letter_id > `+db.Arg(&args, after)+` AND `+where+` ORDER BY d.dead_letter_id LIMIT `+db.Arg(&args, n), args...)
		if err != nil {
			return err
		}
		var id string
		var size, total int64
		var ids []string
		found := 0
		if _, err = pgx.ForEachRow(rows, []any{&id, &size}, func() error {
			if found++; total < portionBytes {
				ids = append(ids, id)
			}
			total += size
			return nil
		}); err != nil {
			return err
		}
		more = found == n || len(ids) < found
		rows, err = tx.Query(ctx, `SELECT `+payloadSQL+` FROM dead_letters d JOIN dead_letter_groups g USING (group_id)
			WHERE d.dead_letter_id = ANY($1::text[]) ORDER BY d.dead_letter_id`, ids)
		if err != nil {
			return err
		}
		entries, err = pgx.CollectRows(rows, scanWhole)
		return err
	})
	return entries, more, err
}
