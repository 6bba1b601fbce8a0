package historydb

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"docket/internal/history/complete"
	"docket/internal/postgres/db"
)

var _ complete.Books = (*Reader)(nil)

// waitingRightsSQL says whether the server takes writes, and whether this login may read the ledger.
const waitingRightsSQL = `
SELECT NOT pg_is_in_recovery(), coalesce((
	SELECT bool_and(coalesce(has_table_privilege(t, 'SELECT'), false))
	  FROM unnest(ARRAY[to_regclass('dead_letters'), to_regclass('dead_letter_surplus'), to_regclass('dead_letter_decisions'), to_regclass('dead_letter_outbox')]) AS t), false)`

// errNotReadable says that this login may not read the ledger any more.
var errNotReadable = errors.New("the ledger is not readable")

// Waiting is that of [complete.Books]. A letter that holds several decisions counts each. A closed one counts while a retry of it
// is on its way, as that can still store it. One statement counts all, so a letter that a desk enters from the surplus meanwhile
// is seen once at least.
func (r *Reader) Waiting(ctx context.Context, of complete.Range) (n int64, known, primary bool, err error) {
	var args []any
	statement := waitingSQL(of, &args)
	if !r.ledger.Load() { // the statement would fail, and the server's log would have each failure
		err = r.atOnce(ctx, r.patience(ctx), pgx.RepeatableRead, func(b *pgx.Batch) { b.Queue(waitingRightsSQL) }, func(answers pgx.BatchResults) error {
			return answers.QueryRow().Scan(&primary, &known)
		})
		if err != nil {
			return 0, false, false, db.Clean("look whether the ledger is readable", err)
		}
		if !known {
			return 0, false, primary, nil
		}
		r.ledger.Store(true)
	}
	err = r.atOnce(ctx, r.patience(ctx), pgx.RepeatableRead, func(b *pgx.Batch) {
		b.Queue(waitingRightsSQL)
		b.Queue(statement, args...)
	}, func(answers pgx.BatchResults) error {
		if err := answers.QueryRow().Scan(&primary, &known); err != nil {
			return err
		}
		if !known {
			return errNotReadable // and the other statement failed
		}
		return answers.QueryRow().Scan(&n, &known)
	})
	if errors.Is(err, errNotReadable) {
		r.ledger.Store(false)
		return 0, false, primary, nil
	}
	if err != nil {
		return 0, false, false, db.Clean("count open dead letters", err)
	}
	return n, known, primary, nil
}

// mostUnderWay limits the retries that are looked through for closed letters. With more of them the count is unknown, as it would
// take longer than an answer waits for it.
const mostUnderWay = 10_000

// waitingSQL counts open dead letters that may be in a range, and says whether the ledger has all of them.
func waitingSQL(of complete.Range, args *[]any) string {
	var where []string
	var times []string
	if !of.Since.IsZero() {
		times = append(times, "d.decision_ts >= "+db.Arg(args, of.Since)+"::timestamptz")
	}
	if !of.Until.IsZero() {
		times = append(times, "d.decision_ts < "+db.Arg(args, of.Until)+"::timestamptz")
	}
	if len(times) > 0 {
		where = append(where, "(d.decision_ts IS NULL OR "+strings.Join(times, " AND ")+")")
	}
	// The ledger has no path of a letter that could not be read, and the beginning of a long one. It has no services.
	if condition := pathsSQL(of.Paths, args); condition != "" {
		where = append(where, "(d.path = '' OR octet_length(d.path) >= 1000 OR "+condition+")")
	}
	rest := ""
	if len(where) > 0 {
		rest = " AND " + strings.Join(where, " AND ")
	}
	most := db.Arg(args, mostUnderWay) + "::int"
	return `WITH o AS MATERIALIZED (SELECT dead_letter_id FROM dead_letter_outbox WHERE published_at IS NOT NULL AND ended_at IS NULL LIMIT ` + most + ` + 1),
	few AS MATERIALIZED (SELECT count(*) <= ` + most + ` AS few FROM o)
	SELECT (SELECT coalesce(sum(greatest(1, x.refused)), 0)::bigint
	FROM (SELECT d.dead_letter_id FROM dead_letters d WHERE d.state <> 'RESOLVED'` + rest + `
		UNION ALL
		SELECT d.dead_letter_id FROM (SELECT DISTINCT dead_letter_id FROM o WHERE (SELECT few FROM few)) o
			JOIN dead_letters d USING (dead_letter_id) WHERE d.state = 'RESOLVED'` + rest + `) d
	LEFT JOIN dead_letter_decisions x USING (dead_letter_id)),
	(SELECT few FROM few) AND NOT EXISTS (SELECT FROM dead_letter_surplus WHERE state = 'open')`
}
