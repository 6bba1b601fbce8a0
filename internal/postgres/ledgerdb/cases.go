package ledgerdb

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/db"
)

var _ ledger.Cases = (*Ledger)(nil)

const (
	assignSQL = `INSERT INTO dead_letter_cases AS c (dead_letter_id, assigned_to, changed_by, why) VALUES ($1::text, nullif($2::text, ''), $3::text, $4::text)
		ON CONFLICT (dead_letter_id) DO UPDATE SET assigned_to = EXCLUDED.assigned_to, changed_by = EXCLUDED.changed_by, why = EXCLUDED.why
		WHERE c.assigned_to IS DISTINCT FROM EXCLUDED.assigned_to`
	assignGroupSQL = `INSERT INTO dead_letter_group_cases AS c (group_id, assigned_to, changed_by, why) VALUES ($1::int, nullif($2::text, ''), $3::text, $4::text)
		ON CONFLICT (group_id) DO UPDATE SET assigned_to = EXCLUDED.assigned_to, changed_by = EXCLUDED.changed_by, why = EXCLUDED.why
		WHERE c.assigned_to IS DISTINCT FROM EXCLUDED.assigned_to`
	snoozeSQL = `INSERT INTO dead_letter_cases AS c (dead_letter_id, snoozed_until, changed_by, why) SELECT id, $2::timestamptz, $3::text, $4::text FROM unnest($1::text[]) AS id
		WHERE $2::timestamptz IS NOT NULL OR EXISTS (SELECT FROM dead_letter_cases o WHERE o.dead_letter_id = id)
		ON CONFLICT (dead_letter_id) DO UPDATE SET snoozed_until = EXCLUDED.snoozed_until, changed_by = EXCLUDED.changed_by, why = EXCLUDED.why`
	reopenSQL = `UPDATE dead_letters SET state = 'PENDING', changed_at = clock_timestamp(), changed_by = $2::text, changed_act = 'reopened', why = $3::text
		WHERE dead_letter_id = ANY($1::text[]) AND state = 'RESOLVED'`
	// The content of an archive is that of a closed letter. One that is open could be edited, and would be taken for archived.
	// doneSQL are letters that stay resolved: an archive has them, or the news that a retry was stored came late.
	doneSQL = `SELECT d.dead_letter_id FROM dead_letters d WHERE d.dead_letter_id = ANY($1::text[]) AND (d.archived_in IS NOT NULL
		OR EXISTS (SELECT FROM dead_letter_outbox o WHERE o.dead_letter_id = d.dead_letter_id AND o.outcome = 'stored'))`
)

// signed says what is missing of a person who changes something.
func signed(by ledger.Actor) error {
	switch {
	case by.Name == "":
		return ledger.ErrNobody
	case by.Why == "":
		return ledger.ErrNoReason
	}
	return nil
}

// personOf says whether somebody of that name can be assigned.
func personOf(name string) error {
	if len(name) > ledger.LongestName || name == ledger.Nobody {
		return &ledger.InvalidError{Field: "to", Problem: "give a name of at most 64 bytes, or none"}
	}
	return nil
}

// Assign implements [ledger.Cases].
func (l *Ledger) Assign(ctx context.Context, id, to string, by ledger.Actor) error {
	if err := errors.Join(signed(by), personOf(to)); err != nil {
		return err
	}
	return l.within(ctx, "assign a dead letter", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		there, err := lockLetters(ctx, tx, []string{id})
		if err == nil && there[id] == nil {
			err = ledger.ErrNotFound
		}
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, assignSQL, id, db.Text(to), db.Text(by.Name), db.Text(by.Why))
		return err
	})
}

// AssignGroup implements [ledger.Cases].
func (l *Ledger) AssignGroup(ctx context.Context, fingerprint, to string, by ledger.Actor) error {
	if err := errors.Join(signed(by), personOf(to)); err != nil {
		return err
	}
	return l.within(ctx, "assign a group of dead letters", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		group, err := groupOf(ctx, tx, fingerprint)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, assignGroupSQL, group, db.Text(to), db.Text(by.Name), db.Text(by.Why))
		return err
	})
}

// groupOf finds a group by its whole fingerprint.
func groupOf(ctx context.Context, tx pgx.Tx, fingerprint string) (id int32, err error) {
	err = tx.QueryRow(ctx, `SELECT group_id FROM dead_letter_groups WHERE fingerprint = $1::text`, db.Text(fingerprint)).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, ledger.ErrNotFound
	}
	return id, err
}

// Snooze implements [ledger.Cases].
func (l *Ledger) Snooze(ctx context.Context, ids []string, until time.Time, by ledger.Actor) ([]ledger.Outcome, error) {
	if err := signed(by); err != nil {
		return nil, err
	}
	return l.decide(ctx, "snooze dead letters", ids, func(ctx context.Context, tx pgx.Tx, free []string) error {
		if !until.IsZero() {
			now, err := clock(ctx, tx)
			if err != nil {
				return err
			}
			if err := ledger.Holdable(until, now); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, snoozeSQL, free, timeOrNull(until), db.Text(by.Name), db.Text(by.Why))
		return err
	})
}

// clock is the time of the database.
func clock(ctx context.Context, tx pgx.Tx) (now time.Time, err error) {
	err = tx.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now)
	return now, err
}

// Reopen implements [ledger.Cases].
func (l *Ledger) Reopen(ctx context.Context, ids []string, by ledger.Actor) ([]ledger.Outcome, error) {
	if err := signed(by); err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, nil
	}
	outcomes := make([]ledger.Outcome, len(ids))
	err := l.within(ctx, "reopen dead letters", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		there, err := lockLetters(ctx, tx, ids)
		if err != nil {
			return err
		}
		done, err := textsOf(tx.Query(ctx, doneSQL, ids))
		if err != nil {
			return err
		}
		var closed []string
		for i, id := range ids {
			outcomes[i] = ledger.Outcome{ID: id}
			switch letter := there[id]; {
			case letter == nil:
				outcomes[i].Err = ledger.ErrNotFound
			case letter.State != ledger.Resolved || letter.Act != ledger.Closed || slices.Contains(done, id):
				outcomes[i].Err = &letter.RefusedError
			default:
				closed = append(closed, id)
			}
		}
		slices.Sort(closed)
		_, err = tx.Exec(ctx, reopenSQL, slices.Compact(closed), db.Text(by.Name), db.Text(by.Why))
		return err
	})
	if err != nil {
		return nil, err
	}
	return outcomes, nil
}

// snoozedSQL is the condition that dead_letters d is snoozed now. A snooze of its group is a rule.
const snoozedSQL = `(EXISTS (SELECT FROM dead_letter_cases c WHERE c.dead_letter_id = d.dead_letter_id AND c.snoozed_until > now())
	OR EXISTS (SELECT FROM dead_letter_rules r WHERE r.act = 'snoozed' AND r.state = 'ACTIVE' AND r.ends_at > now() AND r.group_id = d.group_id AND r.topic IN ('', d.origin_topic)))`

// ruledSQL is the condition that a rule decides about dead_letters d.
const ruledSQL = `EXISTS (SELECT FROM dead_letter_rules r WHERE r.act <> 'snoozed' AND r.state = 'ACTIVE' AND r.ends_at > now() AND r.group_id = d.group_id AND r.topic IN ('', d.origin_topic))`

// assignedSQL is who looks after dead_letters d, or after its group.
const assignedSQL = `coalesce((SELECT c.assigned_to FROM dead_letter_cases c WHERE c.dead_letter_id = d.dead_letter_id),
	(SELECT c.assigned_to FROM dead_letter_group_cases c WHERE c.group_id = d.group_id), '')`

// untilSQL is when the snooze of dead_letters d ends; NULL: there is none.
const untilSQL = `CASE WHEN d.state <> 'RESOLVED' THEN greatest(
	(SELECT c.snoozed_until FROM dead_letter_cases c WHERE c.dead_letter_id = d.dead_letter_id AND c.snoozed_until > now()),
	(SELECT max(r.ends_at) FROM dead_letter_rules r WHERE r.act = 'snoozed' AND r.state = 'ACTIVE' AND r.ends_at > now() AND r.group_id = d.group_id AND r.topic IN ('', d.origin_topic))) END`

// casesSQL is the condition of a filter on snoozes, persons and rules.
func casesSQL(f ledger.Filter, args *[]any) string {
	var of []string
	switch f.Snoozed {
	case ledger.NotSnoozed:
		of = append(of, "(d.state = 'RESOLVED' OR NOT "+snoozedSQL+")")
	case ledger.OnlySnoozed:
		of = append(of, "d.state <> 'RESOLVED' AND "+snoozedSQL)
	}
	switch f.Assigned {
	case "":
	case ledger.Nobody:
		of = append(of, assignedSQL+" = ''")
	default:
		of = append(of, assignedSQL+" = "+db.Arg(args, db.Text(f.Assigned))+"::text")
	}
	if f.Free {
		of = append(of, "NOT "+snoozedSQL+" AND NOT "+ruledSQL)
	}
	return allOf(of)
}

// looked says that a filter asks for what no counter knows.
func looked(f ledger.Filter) bool {
	return f.Snoozed != ledger.SnoozedToo || f.Assigned != "" || f.Free
}

// Snoozed implements [ledger.Cases]. Those of whole groups are taken from the counters.
func (l *Ledger) Snoozed(ctx context.Context) (n int64, err error) {
	err = l.look(ctx, "count snoozed dead letters", func(ctx context.Context, tx pgx.Tx) error {
		found, err := snoozedByGroup(ctx, tx)
		n = 0
		for _, g := range found {
			n += g.letters
		}
		return err
	})
	return n, err
}

// snoozedGroup is what is snoozed of a group.
type snoozedGroup struct {
	letters int64
	until   time.Time // of the whole group; zero: letters or topics of it are snoozed
}

// snoozedByGroupSQL counts by group. A letter that is snoozed itself and by its group counts once. A topic of a group is counted by day.
const snoozedByGroupSQL = `WITH r AS MATERIALIZED (SELECT group_id, topic, ends_at FROM dead_letter_rules WHERE act = 'snoozed' AND state = 'ACTIVE' AND ends_at > now()),
	whole AS (SELECT group_id, ends_at FROM r WHERE topic = ''),
	part AS (SELECT group_id, topic FROM r WHERE group_id NOT IN (SELECT group_id FROM whole))
	SELECT w.group_id, (SELECT coalesce(sum(c.n), 0) FROM dead_letter_counts c WHERE c.group_id = w.group_id AND c.state <> 'RESOLVED')::bigint, w.ends_at FROM whole w
	UNION ALL
	SELECT p.group_id, (SELECT coalesce(sum(y.n), 0) FROM dead_letter_days y WHERE y.group_id = p.group_id AND y.origin_topic = p.topic AND y.state <> 'RESOLVED')::bigint, NULL FROM part p
	UNION ALL
	SELECT d.group_id, count(*), NULL FROM dead_letter_cases c JOIN dead_letters d USING (dead_letter_id)
	 WHERE c.snoozed_until > now() AND d.state <> 'RESOLVED' AND NOT EXISTS (SELECT FROM r WHERE r.group_id = d.group_id AND r.topic IN ('', d.origin_topic)) GROUP BY 1`

func snoozedByGroup(ctx context.Context, tx pgx.Tx) (map[int32]snoozedGroup, error) {
	rows, err := tx.Query(ctx, snoozedByGroupSQL)
	if err != nil {
		return nil, err
	}
	found := map[int32]snoozedGroup{}
	var group int32
	var n int64
	var until *time.Time
	_, err = pgx.ForEachRow(rows, []any{&group, &n, &until}, func() error {
		g := found[group]
		g.letters += n
		if until != nil {
			g.until = until.UTC()
		}
		found[group] = g
		return nil
	})
	return found, err
}
