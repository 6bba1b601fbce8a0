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

// waitingRightsSQL says whether the server takes writes, whether this login may read the ledger, and whether it may read its
// counters.
const waitingRightsSQL = `
SELECT NOT pg_is_in_recovery(), coalesce((
	SELECT bool_and(coalesce(has_table_privilege(t, 'SELECT'), false))
	  FROM unnest(ARRAY[to_regclass('dead_letters'), to_regclass('dead_letter_surplus'), to_regclass('dead_letter_decisions'), to_regclass('dead_letter_outbox')]) AS t), false),
	coalesce(has_table_privilege(to_regclass('dead_letter_counts'), 'SELECT'), false)`

// errNotReadable says that this login may not read the ledger any more.
var errNotReadable = errors.New("the ledger is not readable")

// Waiting is that of [complete.Books]. A letter that holds several decisions counts each. A closed one counts while a retry of it
// is on its way, as that can still store it. One statement counts all, so a letter that a desk enters from the surplus meanwhile
// is seen once at least.
func (r *Reader) Waiting(ctx context.Context, of complete.Range) (n int64, known, primary bool, err error) {
	var counters bool
	if !r.ledger.Load() { // the statement would fail, and the server's log would have each failure
		err = r.atOnce(ctx, r.patience(ctx), pgx.RepeatableRead, func(b *pgx.Batch) { b.Queue(waitingRightsSQL) }, func(answers pgx.BatchResults) error {
			return answers.QueryRow().Scan(&primary, &known, &counters)
		})
		if err != nil {
			return 0, false, false, db.Clean("look whether the ledger is readable", err)
		}
		if !known {
			return 0, false, primary, nil
		}
		r.counters.Store(counters)
		r.ledger.Store(true)
	}
	var args []any
	statement := waitingSQL(of, r.counters.Load(), &args)
	err = r.atOnce(ctx, r.patience(ctx), pgx.RepeatableRead, func(b *pgx.Batch) {
		b.Queue(waitingRightsSQL)
		b.Queue(statement, args...)
	}, func(answers pgx.BatchResults) error {
		if err := answers.QueryRow().Scan(&primary, &known, &counters); err != nil {
			return err
		}
		if !known || !counters && r.counters.Load() {
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

// mostOpen limits the open letters that are looked at one by one for a span of time. If more are in it, and more are outside it,
// the count is unknown: it would take longer than an answer waits for it.
const mostOpen = 20_000

// waitingSQL counts open dead letters that may be in a range, and says whether the ledger has all of them. It does not join what
// letters hold to each of a million letters: few hold several decisions. The counters of the ledger tell of all times, where this
// login may read them. Of a span of time either the letters in it are looked at, or those outside it.
func waitingSQL(of complete.Range, counters bool, args *[]any) string {
	most, open := db.Arg(args, mostUnderWay)+"::int", db.Arg(args, mostOpen)+"::int"
	var within, without []string
	if !of.Since.IsZero() {
		since := db.Arg(args, of.Since) + "::timestamptz"
		within, without = append(within, "d.decision_ts >= "+since), append(without, "d.decision_ts < "+since)
	}
	if !of.Until.IsZero() {
		until := db.Arg(args, of.Until) + "::timestamptz"
		within = append(within, "d.decision_ts < "+until)
		if !of.Since.IsZero() && of.Until.Before(of.Since) {
			until = db.Arg(args, of.Since) + "::timestamptz" // no letter is outside twice
		}
		without = append(without, "d.decision_ts >= "+until)
	}
	// The ledger has no path of a letter that could not be read, and the beginning of a long one. It has no services.
	path := "true"
	if condition := pathsSQL(of.Paths, args); condition != "" {
		path = "(d.path = '' OR octet_length(d.path) >= 1000 OR " + condition + ")"
	}
	chosen := path
	if len(within) > 0 {
		chosen += " AND (d.decision_ts IS NULL OR " + strings.Join(within, " AND ") + ")"
	}
	// looked is how many open letters of some times are looked at, by the index of times, and how many of them are chosen.
	looked := func(times ...string) string {
		for i, time := range times {
			times[i] = "SELECT d.path FROM dead_letters d WHERE d.state <> 'RESOLVED' AND " + time
		}
		return "SELECT count(*) AS n, count(*) FILTER (WHERE " + path + ") AS chosen FROM (" + strings.Join(times, " UNION ALL ") + " LIMIT " + open + " + 1) d"
	}
	const all, allKnown = "(SELECT chosen FROM inside)", "(SELECT n FROM inside) <= "
	inside, outside := looked("true"), "SELECT 0 AS n, 0 AS chosen"
	if len(within) > 0 {
		inside, outside = looked("d.decision_ts IS NULL", strings.Join(within, " AND ")), looked(without...)
	}
	counted := "SELECT " + all + " AS n, " + allKnown + open + " AS known"
	if counters {
		total := "(SELECT coalesce(sum(d.n), 0) FROM dead_letter_counts d WHERE d.state <> 'RESOLVED' AND " + path + ")"
		counted = "SELECT CASE WHEN " + allKnown + open + " THEN " + all + " ELSE " + total + " - (SELECT chosen FROM outside) END AS n, " +
			allKnown + open + " OR (SELECT n FROM outside) <= " + open + " AS known"
		if len(within) == 0 {
			counted = "SELECT " + total + " AS n, true AS known"
		}
	}
	return `WITH o AS MATERIALIZED (SELECT dead_letter_id FROM dead_letter_outbox WHERE published_at IS NOT NULL AND ended_at IS NULL LIMIT ` + most + ` + 1),
	few AS MATERIALIZED (SELECT count(*) <= ` + most + ` AS few FROM o),
	inside AS MATERIALIZED (` + inside + `),
	outside AS MATERIALIZED (` + outside + `),
	counted AS MATERIALIZED (` + counted + `)
	SELECT ((SELECT n FROM counted)
		+ (SELECT coalesce(sum(greatest(1, x.refused) - 1), 0) FROM dead_letter_decisions x JOIN dead_letters d USING (dead_letter_id) WHERE d.state <> 'RESOLVED' AND ` + chosen + `)
		+ (SELECT coalesce(sum(greatest(1, x.refused)), 0) FROM (SELECT DISTINCT dead_letter_id FROM o WHERE (SELECT few FROM few)) o
			JOIN dead_letters d USING (dead_letter_id) LEFT JOIN dead_letter_decisions x USING (dead_letter_id) WHERE d.state = 'RESOLVED' AND ` + chosen + `))::bigint,
	(SELECT few FROM few) AND (SELECT known FROM counted) AND NOT EXISTS (SELECT FROM dead_letter_surplus WHERE state = 'open')`
}
