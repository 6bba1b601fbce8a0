package ledgerdb

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/db"
)

// ruleSQL are the columns of dead_letter_rules r of dead_letter_groups g.
const ruleSQL = `r.rule_id, g.fingerprint, r.topic, r.act, extract(epoch FROM r.wait)::float8, r.rate, r.most, r.failures, r.why,
	CASE WHEN r.state IN ('ACTIVE', 'PROPOSED') AND r.ends_at <= clock_timestamp() THEN 'OVER' ELSE r.state END, r.made_by, r.vouched, r.login::text, r.created_at, r.ends_at,
	coalesce(r.approved_by, ''), coalesce(r.approved_why, ''), coalesce(r.approved_login::text, ''), r.approved_at, r.acted, r.acted_at,
	coalesce(r.ended_by, ''), coalesce(r.ended_why, ''), r.ended_at`

func scanRule(row pgx.CollectableRow) (r ledger.Rule, err error) {
	var wait float64
	var approved, acted, ended *time.Time
	err = row.Scan(&r.ID, &r.Fingerprint, &r.Topic, &r.Act, &wait, &r.Rate, &r.Most, &r.Failures, &r.Why, &r.State, &r.By, &r.Vouched, &r.Login, &r.CreatedAt, &r.EndsAt,
		&r.Approved.By, &r.Approved.Why, &r.Approved.Login, &approved, &r.Acted, &acted, &r.Ended.By, &r.Ended.Why, &ended)
	r.After = time.Duration(wait * float64(time.Second)).Round(time.Microsecond)
	r.CreatedAt, r.EndsAt, r.Approved.At, r.ActedAt, r.Ended.At = r.CreatedAt.UTC(), r.EndsAt.UTC(), utc(approved), utc(acted), utc(ended)
	return r, err
}

func rules(ctx context.Context, tx pgx.Tx, where string, args ...any) ([]ledger.Rule, error) {
	rows, err := tx.Query(ctx, `SELECT `+ruleSQL+` FROM dead_letter_rules r JOIN dead_letter_groups g USING (group_id) `+where, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanRule)
}

func oneRule(ctx context.Context, tx pgx.Tx, id int64, lock string) (ledger.Rule, error) {
	found, err := rules(ctx, tx, `WHERE r.rule_id = $1::bigint `+lock, id)
	if err == nil && len(found) == 0 {
		err = ledger.ErrNotFound
	}
	if err != nil {
		return ledger.Rule{}, err
	}
	return found[0], nil
}

// lockRule has others wait that change or apply the rule.
const lockRule = `FOR UPDATE OF r`

const (
	// A rule whose time has passed makes room for the next.
	rulesOverSQL = `UPDATE dead_letter_rules SET state = 'REMOVED', ended_by = $3::text, ended_why = 'its time had passed' WHERE group_id = $1::int AND topic = $2::text
		AND state IN ('PROPOSED', 'ACTIVE') AND ends_at <= clock_timestamp()`
	snoozeOverSQL = `UPDATE dead_letter_rules SET state = 'REMOVED', ended_by = $3::text, ended_why = 'another snooze took its place' WHERE group_id = $1::int AND topic = $2::text
		AND state IN ('PROPOSED', 'ACTIVE') AND act = 'snoozed'`
	ruleThereSQL = `SELECT rule_id FROM dead_letter_rules WHERE group_id = $1::int AND topic = $2::text AND state IN ('PROPOSED', 'ACTIVE') AND (act = 'snoozed') = $3::boolean`
	addRuleSQL   = `INSERT INTO dead_letter_rules (group_id, topic, act, wait, rate, most, failures, why, made_by, vouched, ends_at)
		VALUES ($1::int, $2::text, $3::text, $4::interval, $5::float8, $6::bigint, $7::int, $8::text, $9::text, $10::boolean, $11::timestamptz) RETURNING rule_id`
	// vouched says how the second person is known; the trigger puts it back.
	approveRuleSQL = `UPDATE dead_letter_rules SET state = 'ACTIVE', approved_by = $2::text, approved_why = $3::text, vouched = $4::boolean WHERE rule_id = $1::bigint`
	endRuleSQL     = `UPDATE dead_letter_rules SET state = $2::text, ended_by = $3::text, ended_why = $4::text WHERE rule_id = $1::bigint AND state IN ('PROPOSED', 'ACTIVE')`
)

// ruleLock has persons who add rules wait for each other.
const ruleLock = 0x646f636b65740021

// AddRule implements [ledger.Cases].
func (l *Ledger) AddRule(ctx context.Context, r ledger.Rule, by ledger.Actor) (made ledger.Rule, err error) {
	if err := signed(by); err != nil {
		return made, err
	}
	if r.Act == ledger.Snoozed {
		r.After, r.Rate, r.Most, r.Failures = 0, 0, 0, ledger.DefaultFailures
	}
	return l.onRule(ctx, "add a rule", 0, func(ctx context.Context, tx pgx.Tx) (int64, error) {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1::bigint)`, int64(ruleLock)); err != nil {
			return 0, err
		}
		now, err := clock(ctx, tx)
		if err == nil {
			err = r.Validate(now)
		}
		if err != nil {
			return 0, err
		}
		group, err := groupOf(ctx, tx, r.Fingerprint)
		if err != nil {
			return 0, err
		}
		topic, name := db.Text(r.Topic), db.Text(by.Name)
		if _, err := tx.Exec(ctx, rulesOverSQL, group, topic, name); err != nil {
			return 0, err
		}
		if r.Act == ledger.Snoozed {
			if _, err := tx.Exec(ctx, snoozeOverSQL, group, topic, name); err != nil {
				return 0, err
			}
		}
		var id int64
		err = tx.QueryRow(ctx, ruleThereSQL, group, topic, r.Act == ledger.Snoozed).Scan(&id)
		if err == nil {
			return 0, &ledger.RuleExistsError{ID: id}
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return 0, err
		}
		err = tx.QueryRow(ctx, addRuleSQL, group, topic, string(r.Act), r.After, r.Rate, r.Most, r.Failures, db.Text(by.Why), name, by.Vouched, r.EndsAt).Scan(&id)
		return id, err
	})
}

// ApproveRule implements [ledger.Cases].
func (l *Ledger) ApproveRule(ctx context.Context, id int64, by ledger.Actor) (ledger.Rule, error) {
	if err := signed(by); err != nil {
		return ledger.Rule{}, err
	}
	return l.onRule(ctx, "approve a rule", id, func(ctx context.Context, tx pgx.Tx) (int64, error) {
		r, err := oneRule(ctx, tx, id, lockRule)
		if err == nil && r.State != ledger.RuleProposed {
			because := ledger.BecauseEnded
			if r.State == ledger.RuleOver {
				because = ledger.BecauseExpired
			}
			err = &ledger.ProposalError{ID: id, Because: because, Of: "rule"}
		}
		if err != nil {
			return 0, err
		}
		_, err = tx.Exec(ctx, approveRuleSQL, id, db.Text(by.Name), db.Text(by.Why), by.Vouched)
		return id, err
	})
}

// RemoveRule implements [ledger.Cases].
func (l *Ledger) RemoveRule(ctx context.Context, id int64, by ledger.Actor) (ledger.Rule, error) {
	if err := signed(by); err != nil {
		return ledger.Rule{}, err
	}
	return l.onRule(ctx, "remove a rule", id, func(ctx context.Context, tx pgx.Tx) (int64, error) {
		if _, err := oneRule(ctx, tx, id, lockRule); err != nil {
			return 0, err
		}
		_, err := tx.Exec(ctx, endRuleSQL, id, string(ledger.RuleRemoved), db.Text(by.Name), db.Text(by.Why))
		return id, err
	})
}

// onRule does a step and returns the rule as it is then.
func (l *Ledger) onRule(ctx context.Context, act string, id int64, do func(context.Context, pgx.Tx) (int64, error)) (r ledger.Rule, err error) {
	err = l.within(ctx, act, pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		done, err := do(ctx, tx)
		if err == nil {
			r, err = oneRule(ctx, tx, done, "")
		}
		return err
	})
	if why, is := strings.CutPrefix(violated(err), secondPrefix); is {
		return ledger.Rule{}, &ledger.ProposalError{ID: id, Because: ledger.Because(why), Of: "rule"}
	}
	return r, err
}

// secondPrefix begins the names of the constraints by which the database refuses the same person.
const secondPrefix = "dead_letter_seconds_"

// Rules implements [ledger.Cases].
func (l *Ledger) Rules(ctx context.Context, fingerprint string, all bool, n int) (list []ledger.Rule, err error) {
	err = l.look(ctx, "list rules", func(ctx context.Context, tx pgx.Tx) error {
		list, err = rules(ctx, tx, `WHERE ($1::text = '' OR g.fingerprint = $1::text) AND ($2::boolean OR r.state IN ('PROPOSED', 'ACTIVE') AND r.ends_at > clock_timestamp())
			ORDER BY r.rule_id DESC LIMIT $3::int`, db.Text(fingerprint), all, max(n, 0))
		return err
	})
	return list, err
}

// GroupHistory implements [ledger.Cases].
func (l *Ledger) GroupHistory(ctx context.Context, fingerprint string, n int) (events []ledger.GroupEvent, err error) {
	err = l.look(ctx, "read the audit of a group", func(ctx context.Context, tx pgx.Tx) error {
		group, err := groupOf(ctx, tx, fingerprint)
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `SELECT audit_id, at, act, coalesce(rule_id, 0), actor, why, login::text, coalesce(application, ''), coalesce(host(client), '')
			FROM dead_letter_group_audit WHERE group_id = $1::int ORDER BY audit_id DESC LIMIT $2::int`, group, max(n, 0))
		if err != nil {
			return err
		}
		events, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e ledger.GroupEvent, err error) {
			err = row.Scan(&e.ID, &e.At, &e.Act, &e.Rule, &e.By, &e.Why, &e.Login, &e.Program, &e.FromHost)
			e.At = e.At.UTC()
			return e, err
		})
		return err
	})
	return events, err
}

// ApproveJob implements [ledger.Cases].
func (l *Ledger) ApproveJob(ctx context.Context, id int64, by ledger.Actor) (j ledger.Job, err error) {
	if err := signed(by); err != nil {
		return j, err
	}
	err = l.within(ctx, "approve a job", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := jobIn(ctx, tx, id); err != nil {
			return err
		}
		j, err = changed(ctx, tx, &ledger.ProposalError{ID: id, Because: ledger.BecauseEnded, Of: "job"}, `UPDATE dead_letter_jobs SET state = 'WAITING', approved_by = $2::text,
			vouched = $4::boolean, reason = reason || '; approved by ' || $2::text || ': ' || $3::text, note = 'approved by ' || $2::text
			WHERE job_id = $1::bigint AND state = 'PROPOSED'`, id, db.Text(by.Name), db.Text(by.Why), by.Vouched)
		return err
	})
	if why, is := strings.CutPrefix(violated(err), secondPrefix); is {
		return ledger.Job{}, &ledger.ProposalError{ID: id, Because: ledger.Because(why), Of: "job"}
	}
	return j, err
}
