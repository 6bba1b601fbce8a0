package ledgerdb

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/db"
)

// actableSQL is the condition that rule r acts on dead_letters d. [ledger.Governing] and [ledger.Rule.Due] are the same in memory.
const actableSQL = `d.group_id = r.group_id AND r.topic IN ('', d.origin_topic) AND d.changed_at <= clock_timestamp() - r.wait
	AND (r.act = 'retried' AND d.state = 'PENDING' OR r.act = 'closed' AND d.state IN ('PENDING', 'FAILED'))
	AND NOT EXISTS (SELECT FROM dead_letter_rule_acts a WHERE a.rule_id = r.rule_id AND a.dead_letter_id = d.dead_letter_id AND (r.act = 'closed' OR a.attempts >= d.attempts))
	AND NOT EXISTS (SELECT FROM dead_letter_rules o WHERE o.topic <> '' AND r.topic = '' AND o.topic = d.origin_topic AND o.group_id = d.group_id AND o.act <> 'snoozed'
		AND o.state = 'ACTIVE' AND o.ends_at > now())
	AND NOT ` + snoozedOfRuleSQL

// snoozedOfRuleSQL is snoozedSQL beside a rule r.
const snoozedOfRuleSQL = `(EXISTS (SELECT FROM dead_letter_cases c WHERE c.dead_letter_id = d.dead_letter_id AND c.snoozed_until > now())
	OR EXISTS (SELECT FROM dead_letter_rules z WHERE z.act = 'snoozed' AND z.state = 'ACTIVE' AND z.ends_at > now() AND z.group_id = d.group_id AND z.topic IN ('', d.origin_topic)))`

const (
	chosenByRuleSQL = `SELECT d.dead_letter_id FROM dead_letter_rules r JOIN dead_letters d USING (group_id)
		WHERE r.rule_id = $1::bigint AND d.state <> 'RESOLVED' AND ` + actableSQL + ` ORDER BY d.first_failed_at, d.dead_letter_id LIMIT $2::int`
	stillByRuleSQL = `SELECT d.dead_letter_id FROM dead_letter_rules r JOIN dead_letters d USING (group_id)
		WHERE r.rule_id = $1::bigint AND d.dead_letter_id = ANY($2::text[]) AND ` + actableSQL + ` ORDER BY d.dead_letter_id`
	ruleEndsSQL = `SELECT o.outcome FROM dead_letter_rule_acts a JOIN dead_letter_outbox o USING (outbox_id)
		WHERE a.rule_id = $1::bigint AND o.ended_at IS NOT NULL AND o.outcome <> 'withdrawn' ORDER BY o.ended_at DESC, o.outbox_id DESC LIMIT $2::int`
	ruleOpenSQL = `SELECT count(*) FROM dead_letter_rule_acts a JOIN dead_letter_outbox o USING (outbox_id) WHERE a.rule_id = $1::bigint AND o.ended_at IS NULL`
	// Its key refuses a second act for one failure.
	ruleActsSQL = `INSERT INTO dead_letter_rule_acts (rule_id, dead_letter_id, attempts, outbox_id) SELECT $1::bigint, d.dead_letter_id, d.attempts, o.outbox_id
		FROM dead_letters d LEFT JOIN dead_letter_outbox o ON o.dead_letter_id = d.dead_letter_id AND o.outbox_id = ANY($3::bigint[]) WHERE d.dead_letter_id = ANY($2::text[])`
	// With a rate acted_at moves on by the time of these letters alone. The rest of what was earned stays for the next turn.
	ruleActedSQL = `UPDATE dead_letter_rules SET acted = acted + $2::bigint, acted_at = CASE WHEN rate > 0 AND acted_at IS NOT NULL
		THEN least(clock_timestamp(), greatest(acted_at, clock_timestamp() - make_interval(secs => greatest($3::float8, 1 / rate))) + make_interval(secs => $2::bigint / rate))
		ELSE clock_timestamp() END WHERE rule_id = $1::bigint`
)

// ActRule implements [ledger.Cases]. The lock on the rule has two desks take turns. Its moves and its counters are one transaction.
func (l *Ledger) ActRule(ctx context.Context, id int64, n int, lease time.Duration) (a ledger.Acting, err error) {
	if lease <= 0 {
		return a, ledger.ErrNoLease
	}
	err = l.within(ctx, "apply a rule", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		a = ledger.Acting{}
		r, err := oneRule(ctx, tx, id, lockRule)
		if err != nil {
			return err
		}
		now, err := clock(ctx, tx)
		if err != nil || !r.Holds(now) || r.Act == ledger.Snoozed {
			return err
		}
		room, stop, err := roomOf(ctx, tx, r)
		if err != nil {
			return err
		}
		if stop != "" {
			a.Stopped = stop
			_, err := tx.Exec(ctx, endRuleSQL, id, string(ledger.RuleStopped), db.Text(r.Actor().Name), stop)
			return err
		}
		if n = min(r.Allows(now, n), room); n <= 0 {
			return nil
		}
		a.Moved, err = act(ctx, tx, r, n, lease)
		return err
	})
	return a, err
}

// roomOf says how many more letters a rule may move, or why it stops.
func roomOf(ctx context.Context, tx pgx.Tx, r ledger.Rule) (room int, stop string, err error) {
	if r.Acted >= r.Most {
		return 0, "it moved as many letters as it may", nil
	}
	if r.Act != ledger.Retried {
		return int(r.Most), "", nil
	}
	texts, err := textsOf(tx.Query(ctx, ruleEndsSQL, r.ID, r.Failures))
	if err != nil {
		return 0, "", err
	}
	var open int
	if err := tx.QueryRow(ctx, ruleOpenSQL, r.ID).Scan(&open); err != nil {
		return 0, "", err
	}
	ends := make([]ledger.SendingOutcome, len(texts))
	for i, text := range texts {
		ends[i] = ledger.SendingOutcome(text)
	}
	room, stop = r.Judge(ends, open)
	return room, stop, nil
}

// act moves letters. They are locked first, so that the next statement sees what others committed while this one waited.
func act(ctx context.Context, tx pgx.Tx, r ledger.Rule, n int, lease time.Duration) (moved int, err error) {
	ids, err := textsOf(tx.Query(ctx, chosenByRuleSQL, r.ID, n))
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	if _, err := lockLetters(ctx, tx, ids); err != nil {
		return 0, err
	}
	if ids, err = textsOf(tx.Query(ctx, stillByRuleSQL, r.ID, ids)); err != nil || len(ids) == 0 {
		return 0, err
	}
	var sent []int64
	if r.Act == ledger.Retried {
		sent, err = retry(ctx, tx, ids, lease, r.Actor())
		moved = len(sent)
	} else {
		moved, err = resolve(ctx, tx, ids, r.Actor())
	}
	if err != nil {
		return 0, err
	}
	if _, err := tx.Exec(ctx, ruleActsSQL, r.ID, ids, sent); err != nil {
		return 0, err
	}
	_, err = tx.Exec(ctx, ruleActedSQL, r.ID, moved, ledger.LongestSaved.Seconds())
	return moved, err
}
