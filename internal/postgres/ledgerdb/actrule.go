package ledgerdb

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/db"
)

// decidedSQL are the topics for which something else decides: snoozes of group $2, and its rules of one topic.
const decidedSQL = `h AS MATERIALIZED (SELECT coalesce(array_agg(o.topic) FILTER (WHERE o.act = 'snoozed'), '{}') AS snoozed,
		coalesce(array_agg(o.topic) FILTER (WHERE o.act <> 'snoozed' AND o.topic <> ''), '{}') AS ruled
	FROM dead_letter_rules o WHERE o.group_id = $2::int AND o.state = 'ACTIVE' AND o.ends_at > now())`

// dueSQL is the condition that rule $1 acts on letter d beside h. The rule is of topic $3 and waits for $4. [ledger.Governing] and
// [ledger.Rule.Due] are the same in memory. The state is for the caller. OFFSET 0 has each look-up use an index, however wrong the planner is about a table that has just grown.
const dueSQL = `d.changed_at <= clock_timestamp() - $4::interval AND '' <> ALL(h.snoozed) AND d.origin_topic <> ALL(h.snoozed)
	AND CASE $3::text WHEN '' THEN d.origin_topic <> ALL(h.ruled) ELSE d.origin_topic = $3::text END
	AND NOT EXISTS (SELECT FROM dead_letter_cases c WHERE c.dead_letter_id = d.dead_letter_id AND c.snoozed_until > now() OFFSET 0)
	AND NOT EXISTS (SELECT FROM dead_letter_rule_acts a WHERE a.rule_id = $1::bigint AND a.dead_letter_id = d.dead_letter_id AND `

// The earlier acts of a rule that keep it from acting again.
const (
	retriedBeforeSQL = `a.attempts >= d.attempts OFFSET 0)`
	closedBeforeSQL  = `true OFFSET 0)`
)

// windowSQL reads the next $7 letters of group $2 in one state behind the place $5, $6. The state is a constant, so that the planner sees that
// dead_letters_first has all of them in order.
const windowSQL = `(SELECT d.dead_letter_id, d.first_failed_at, d.origin_topic, d.changed_at, d.attempts FROM dead_letters d
	WHERE d.group_id = $2::int AND d.state = '%s' AND d.first_failed_at >= $5::timestamptz AND (d.first_failed_at, d.dead_letter_id) > ($5::timestamptz, $6::text)
	ORDER BY d.first_failed_at, d.dead_letter_id LIMIT $7::int)`

// chosenSQL takes a window and the condition. It returns the oldest $8 due letters, how many letters it looked at, and the last of these.
const chosenSQL = `WITH ` + decidedSQL + `, w AS MATERIALIZED (SELECT * FROM (%s) x ORDER BY first_failed_at, dead_letter_id LIMIT $7::int),
	due AS MATERIALIZED (SELECT d.dead_letter_id, d.first_failed_at FROM w d, h WHERE ` + dueSQL + `%s ORDER BY d.first_failed_at, d.dead_letter_id LIMIT $8::int)
	SELECT ARRAY(SELECT dead_letter_id FROM due ORDER BY first_failed_at, dead_letter_id), count(*), max(first_failed_at),
		coalesce(max(dead_letter_id) FILTER (WHERE first_failed_at = (SELECT max(first_failed_at) FROM w)), '') FROM w`

// stillSQL takes the states and the condition. It returns those of the locked letters $5 that are due yet.
const stillSQL = `WITH ` + decidedSQL + ` SELECT d.dead_letter_id FROM dead_letters d, h WHERE d.dead_letter_id = ANY($5::text[]) AND d.group_id = $2::int AND d.state IN (%s)
	AND ` + dueSQL + `%s ORDER BY d.dead_letter_id`

// The statements of each act.
var (
	chosenToRetrySQL = fmt.Sprintf(chosenSQL, fmt.Sprintf(windowSQL, "PENDING"), retriedBeforeSQL)
	chosenToCloseSQL = fmt.Sprintf(chosenSQL, fmt.Sprintf(windowSQL, "PENDING")+` UNION ALL `+fmt.Sprintf(windowSQL, "FAILED"), closedBeforeSQL)
	stillToRetrySQL  = fmt.Sprintf(stillSQL, "'PENDING'", retriedBeforeSQL)
	stillToCloseSQL  = fmt.Sprintf(stillSQL, "'PENDING', 'FAILED'", closedBeforeSQL)
)

const (
	// Both read dead_letter_outbox_rule, whose condition is this one.
	ruleEndsSQL = `SELECT o.outcome FROM dead_letter_outbox o WHERE o.rule_id = $1::bigint AND o.outcome IS DISTINCT FROM 'withdrawn' AND o.ended_at IS NOT NULL
		ORDER BY o.ended_at DESC, o.outbox_id DESC LIMIT $2::int`
	// No more are counted than keep the rule from beginning another.
	ruleOpenSQL = `SELECT count(*) FROM (SELECT FROM dead_letter_outbox o WHERE o.rule_id = $1::bigint AND o.outcome IS DISTINCT FROM 'withdrawn' AND o.ended_at IS NULL LIMIT $2::int) x`
	// Its key refuses a second act for one failure.
	ruleActsSQL = `INSERT INTO dead_letter_rule_acts (rule_id, dead_letter_id, attempts, outbox_id) SELECT $1::bigint, d.dead_letter_id, d.attempts, o.outbox_id
		FROM dead_letters d LEFT JOIN dead_letter_outbox o ON o.dead_letter_id = d.dead_letter_id AND o.outbox_id = ANY($3::bigint[]) WHERE d.dead_letter_id = ANY($2::text[])`
	// With a rate acted_at moves on by the time of these letters alone. The rest of what was earned stays for the next turn.
	ruleActedSQL = `UPDATE dead_letter_rules SET acted = acted + $2::bigint, acted_at = CASE WHEN rate > 0 AND acted_at IS NOT NULL
		THEN least(clock_timestamp(), greatest(acted_at, clock_timestamp() - make_interval(secs => greatest($3::float8, 1 / rate))) + make_interval(secs => $2::bigint / rate))
		ELSE clock_timestamp() END WHERE rule_id = $1::bigint`
)

// ActRule implements [ledger.Cases]. The lock on the rule has two desks take turns. Its moves and its counters are one transaction.
func (l *Ledger) ActRule(ctx context.Context, id int64, t ledger.Turn) (a ledger.Acting, err error) {
	switch {
	case t.Lease <= 0:
		return a, ledger.ErrNoLease
	case t.Look <= 0 || t.Move <= 0:
		return ledger.Acting{Next: t.After}, nil
	}
	err = l.within(ctx, "apply a rule", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		a = ledger.Acting{Next: t.After}
		r, err := oneRule(ctx, tx, id, lockRule)
		if err != nil {
			return err
		}
		now, err := clock(ctx, tx)
		if err != nil || !r.Holds(now) || r.Act == ledger.Snoozed {
			return err
		}
		if _, err := tx.Exec(ctx, orderedSQL); err != nil {
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
		n := min(r.Allows(now, t.Move), room)
		if n <= 0 {
			return nil
		}
		w := ruleTurn{tx: tx, rule: r, turn: t}
		a.Moved, err = w.act(ctx, n)
		a.Next, a.More = w.next, n == t.Move && !w.over
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
	if err := tx.QueryRow(ctx, ruleOpenSQL, r.ID, r.Failures).Scan(&open); err != nil {
		return 0, "", err
	}
	ends := make([]ledger.SendingOutcome, len(texts))
	for i, text := range texts {
		ends[i] = ledger.SendingOutcome(text)
	}
	room, stop = r.Judge(ends, open)
	return room, stop, nil
}

// ruleTurn is a turn of a rule that may move letters.
type ruleTurn struct {
	tx   pgx.Tx
	rule ledger.Rule
	turn ledger.Turn
	args []any // of the rule, for all conditions
	next ledger.Mark
	over bool // it looked at the last letter
}

// act moves n letters. They are locked first, so that the next statement sees what others committed while this one waited.
func (w *ruleTurn) act(ctx context.Context, n int) (moved int, err error) {
	group, err := groupOf(ctx, w.tx, w.rule.Fingerprint)
	if err != nil {
		return 0, err
	}
	w.args = []any{w.rule.ID, group, db.Text(w.rule.Topic), w.rule.After}
	ids, err := w.choose(ctx, n)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	if _, err := lockLetters(ctx, w.tx, ids); err != nil {
		return 0, err
	}
	still := stillToCloseSQL
	if w.rule.Act == ledger.Retried {
		still = stillToRetrySQL
	}
	if ids, err = textsOf(w.tx.Query(ctx, still, append(slices.Clone(w.args), ids)...)); err != nil || len(ids) == 0 {
		return 0, err
	}
	return w.move(ctx, ids)
}

// choose returns the oldest due letters behind the place where the turn begins.
func (w *ruleTurn) choose(ctx context.Context, n int) (ids []string, err error) {
	from := pgtype.Timestamptz{Valid: true, InfinityModifier: pgtype.NegativeInfinity}
	if w.turn.After != (ledger.Mark{}) {
		from = pgtype.Timestamptz{Valid: true, Time: w.turn.After.FirstFailed}
	}
	chosen := chosenToCloseSQL
	if w.rule.Act == ledger.Retried {
		chosen = chosenToRetrySQL
	}
	var looked int
	var last *time.Time
	var lastID string
	// Planned for these very arguments each time.
	args := append([]any{pgx.QueryExecModeDescribeExec}, w.args...)
	args = append(args, from, db.Text(w.turn.After.LetterID), w.turn.Look, n)
	if err = w.tx.QueryRow(ctx, chosen, args...).Scan(&ids, &looked, &last, &lastID); err != nil {
		return nil, err
	}
	switch {
	case len(ids) == n: // others of these may be due
		w.next = w.turn.After
	case looked == w.turn.Look:
		w.next = ledger.Mark{FirstFailed: *last, LetterID: lastID}
	default:
		w.over = true
	}
	return ids, nil
}

func (w *ruleTurn) move(ctx context.Context, ids []string) (moved int, err error) {
	var sent []int64
	if w.rule.Act == ledger.Retried {
		sent, err = retry(ctx, w.tx, ids, w.turn.Lease, w.rule.Actor())
		moved = len(sent)
	} else {
		moved, err = resolve(ctx, w.tx, ids, w.rule.Actor())
	}
	if err != nil {
		return 0, err
	}
	if _, err := w.tx.Exec(ctx, ruleActsSQL, w.rule.ID, ids, sent); err != nil {
		return 0, err
	}
	_, err = w.tx.Exec(ctx, ruleActedSQL, w.rule.ID, moved, ledger.LongestSaved.Seconds())
	return moved, err
}
